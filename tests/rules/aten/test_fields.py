"""The form of native_functions.yaml: entries, fields, their types."""

from __future__ import annotations

import pytest

from tests.rules.aten.entry_findings import entry, fixed, lines

TANH = "tanh(Tensor self) -> Tensor"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: b\n", ["ATN101 'a': native_functions.yaml is a list of entries (`- func: ...`), and this is a mapping"]),
        ("- a\n", ["ATN101 'a': an entry is a mapping with the field `func`, and this is text"]),
        ("- [a]\n", ["ATN101 '[a]': an entry is a mapping with the field `func`, and this is a list"]),
        ("- {}\n", ["ATN101 '{}': the entry has no field `func`, which holds the operator's schema"]),
        (
            "- variants: method\n- func: f(Tensor x) -> Tensor\n",
            ["ATN101 'variants': the entry has no field `func`, which holds the operator's schema"],
        ),
        (
            "- func:\n- func: f(Tensor x) -> Tensor\n",
            ["ATN101 'func': `func` is empty; it holds the operator's schema"],
        ),
        (
            "- fun: f(Tensor x) -> Tensor\n- func: f(Tensor x) -> Tensor\n",
            ["ATN102 'fun': torchgen has no field `fun`; did you mean `func`?"],
        ),
        ("- func: 1\n- func: f(Tensor x) -> Tensor\n", ["ATN104 '1': `func` must be text, and is a number: `1`"]),
    ],
)
def test_files(text: str, expected: list[str]) -> None:
    assert lines(text) == expected


@pytest.mark.parametrize(
    ("fields", "schema", "expected"),
    [
        ("variant: method", TANH, ["ATN102 'variant': torchgen has no field `variant`; did you mean `variants`?"]),
        ("varaints: method", TANH, ["ATN102 'varaints': torchgen has no field `varaints`; did you mean `variants`?"]),
        (
            "use_c10_dispatcher: full",
            TANH,
            ["ATN102 'use_c10_dispatcher': torchgen has no field `use_c10_dispatcher`"],
        ),
        ("1: x", TANH, ["ATN102 '1': torchgen has no field `1`"]),
        ("null: x", TANH, ["ATN102 'null': torchgen has no field `null`"]),
        ("variants: function\nvariants: method", TANH, ["ATN103 'variants': `variants` appears twice; keep one"]),
        ("variants: method\nvariants: method", TANH, ["ATN103 'variants': `variants` appears twice; keep one"]),
        ("dispatch: {CPU: a, CPU: a}", TANH, ["ATN103 'CPU': `CPU` appears twice; keep one"]),
        (
            "ufunc_inner_loop: {Generic: a (All), Generic: a (All)}",
            TANH,
            [
                "ATN172 'ufunc_inner_loop': `ufunc_inner_loop` needs `structured: True`",
                "ATN103 'Generic': `Generic` appears twice; keep one",
            ],
        ),
        (
            "device_guard: 'True'",
            TANH,
            ["ATN104 \"'True'\": `device_guard` must be true or false, and is text: `'True'`"],
        ),
        (
            "device_guard: Ture",
            TANH,
            ["ATN104 'Ture': `device_guard` must be true or false, and is text: `Ture`; did you mean `True`?"],
        ),
        ("device_guard: 1", TANH, ["ATN104 '1': `device_guard` must be true or false, and is a number: `1`"]),
        ("device_guard:", TANH, ["ATN104 'device_guard': `device_guard` must be true or false, and is empty"]),
        ("structured: [True]", TANH, ["ATN104 '[True]': `structured` must be true or false, and is a list: `[True]`"]),
        (
            "manual_cpp_binding: {}",
            TANH,
            ["ATN104 '{}': `manual_cpp_binding` must be true or false, and is a mapping: `{}`"],
        ),
        ("python_module: 1", TANH, ["ATN104 '1': `python_module` must be text, and is a number: `1`"]),
        ("python_module: on", TANH, ["ATN104 'on': `python_module` must be text, and is true or false: `on`"]),
        (
            "python_module: 2020-01-01",
            TANH,
            ["ATN104 '2020-01-01': `python_module` must be text, and is a date: `2020-01-01`"],
        ),
        ("python_module: [nn]", TANH, ["ATN104 '[nn]': `python_module` must be text, and is a list: `[nn]`"]),
        (
            "variants: [function, method]",
            TANH,
            ["ATN104 '[function, method]': `variants` must be text, and is a list: `[function, method]`"],
        ),
        ("variants:", TANH, ["ATN104 'variants': `variants` must be text, and is empty"]),
        ("autogen:", TANH, ["ATN104 'autogen': `autogen` must be text, and is empty"]),
        ("cpp_no_default_args: dim", TANH, ["ATN104 'dim': `cpp_no_default_args` must be a list, and is text: `dim`"]),
        (
            "cpp_no_default_args:",
            TANH,
            ["ATN104 'cpp_no_default_args': `cpp_no_default_args` must be a list, and is empty"],
        ),
        ("tags:", TANH, ["ATN104 'tags': `tags` must be text or a list, and is empty"]),
        ("tags: {a: b}", TANH, ["ATN104 '{a: b}': `tags` must be text or a list, and is a mapping: `{a: b}`"]),
        ("tags: 1", TANH, ["ATN104 '1': `tags` must be text or a list, and is a number: `1`"]),
        ("dispatch: relu", TANH, ["ATN104 'relu': `dispatch` must be a mapping, and is text: `relu`"]),
        ("dispatch: [CPU]", TANH, ["ATN104 '[CPU]': `dispatch` must be a mapping, and is a list: `[CPU]`"]),
        (
            "ufunc_inner_loop: 1",
            TANH,
            ["ATN104 '1': `ufunc_inner_loop` must be text or a mapping, and is a number: `1`"],
        ),
        (
            "ufunc_inner_loop: [a]",
            TANH,
            ["ATN104 '[a]': `ufunc_inner_loop` must be text or a mapping, and is a list: `[a]`"],
        ),
        (
            "precomputed: x",
            "tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
            [
                "ATN161 'precomputed': `precomputed` needs `structured: True`",
                "ATN104 'x': `precomputed` must be a list, and is text: `x`",
            ],
        ),
        (
            "<<: {variants: method}",
            TANH,
            ["ATN105 '<<': torchgen's loader does not support merges (`<<`); write the fields out"],
        ),
        ("? [a]\n: x", TANH, ["ATN105 '[a]': a key cannot be a list"]),
        ("python_module: !foo nn", TANH, ["ATN105 '!foo nn': torchgen's loader refuses the tag `!foo`; leave it out"]),
        ("dispatch: {[a]: b}", TANH, ["ATN105 '[a]': a key cannot be a list"]),
    ],
)
def test_faults(fields: str, schema: str, expected: list[str]) -> None:
    assert lines(entry(fields, schema)) == expected


@pytest.mark.parametrize(
    ("fields", "schema"),
    [
        ("category_override: ~", TANH),
        ("python_module: !!str 1", TANH),
    ],
)
def test_sound_entries(fields: str, schema: str) -> None:
    assert lines(entry(fields, schema)) == []


@pytest.mark.parametrize(
    ("fields", "schema", "expected"),
    [
        ("variant: method", TANH, "variants: method"),
        ("varaints: method", TANH, "variants: method"),
        ("variants: method\nvariants: method", TANH, "variants: method"),
        ("device_guard: 'True'", TANH, "device_guard: True"),
        ("device_guard: Ture", TANH, "device_guard: True"),
        ("variants: [function, method]", TANH, "variants: function, method"),
        ("cpp_no_default_args: dim", TANH, "cpp_no_default_args: [dim]"),
    ],
)
def test_fixes(fields: str, schema: str, expected: str) -> None:
    assert fixed(entry(fields, schema)) == entry(expected, schema)
