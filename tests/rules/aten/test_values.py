"""Variants, device check, tags, arguments without default in C++."""

from __future__ import annotations

import pytest

from tests.rules.aten.entry_findings import entry, fixed, lines

OUT = "tanh.out(Tensor self, int dim=1, *, Tensor(a!) out) -> Tensor(a!)"

TANH = "tanh(Tensor self) -> Tensor"


@pytest.mark.parametrize(
    ("fields", "schema", "expected"),
    [
        (
            "variants: function,method",
            TANH,
            ["ATN111 'function,method': variants are separated by a comma and one space"],
        ),
        (
            "variants: method function",
            TANH,
            ["ATN111 'method function': `method function` is not a variant; there are `function` and `method`"],
        ),
        (
            "variants: methods, function",
            TANH,
            ["ATN111 'methods': `methods` is not a variant; there are `function` and `method`"],
        ),
        (
            "variants: function, method, function",
            TANH,
            ["ATN111 'function, method, function': a variant appears twice"],
        ),
        ("variants: ''", TANH, ["ATN111 \"''\": `variants` is empty; the default is `function`"]),
        ("variants: function,", TANH, ["ATN111 'function,': variants are separated by a comma and one space"]),
        ("variants: func", TANH, ["ATN111 'func': `func` is not a variant; there are `function` and `method`"]),
        (
            "variants: function, method",
            OUT,
            ["ATN112 'function, method': an operator with out arguments can only be a `function`"],
        ),
        ("variants: method", OUT, ["ATN112 'method': an operator with out arguments can only be a `function`"]),
        (
            "python_module: nn\nvariants: function, method",
            TANH,
            ["ATN113 'method': an operator of the Python module `nn` cannot be a method"],
        ),
        (
            "device_check: nocheck",
            TANH,
            ["ATN114 'nocheck': `nocheck` is not a device check; there are `NoCheck` and `ExactSame`"],
        ),
        (
            "device_check: None",
            TANH,
            ["ATN114 'None': `None` is not a device check; there are `NoCheck` and `ExactSame`"],
        ),
        (
            "device_check: Samee",
            TANH,
            ["ATN114 'Samee': `Samee` is not a device check; there are `NoCheck` and `ExactSame`"],
        ),
        (
            "",
            "_foreach_tanh(Tensor[] self) -> Tensor[]",
            ["ATN115 '_foreach_tanh': a `_foreach` operator needs `device_check: NoCheck`: its tensors may lie…"],
        ),
        (
            "device_check: ExactSame",
            "_foreach_tanh(Tensor[] self) -> Tensor[]",
            ["ATN115 'ExactSame': a `_foreach` operator needs `device_check: NoCheck`: its tensors may lie on …"],
        ),
        (
            "device_check:",
            "_foreach_tanh(Tensor[] self) -> Tensor[]",
            ["ATN115 'device_check': a `_foreach` operator needs `device_check: NoCheck`: its tensors may lie …"],
        ),
        (
            "",
            "mine::_foreach_tanh(Tensor[] self) -> Tensor[]",
            ["ATN115 'mine::_foreach_tanh': a `_foreach` operator needs `device_check: NoCheck`: its tensors m…"],
        ),
        ("tags: [core, core]", TANH, ["ATN116 'core': the tag `core` appears twice"]),
        (
            "tags: pointwis",
            TANH,
            ["ATN116 'pointwis': `tags.yaml` declares no tag `pointwis`; did you mean `pointwise`?"],
        ),
        ("tags: core, pointwise", TANH, ["ATN116 'core, pointwise': several tags are a list: `[core, pointwise]`"]),
        ("tags: [1]", TANH, ["ATN116 '1': a tag is a name, and this is a number"]),
        ("tags: [[core]]", TANH, ["ATN116 '[core]': a tag is a name, and this is a list"]),
        ("tags: unknown", TANH, ["ATN116 'unknown': `tags.yaml` declares no tag `unknown`"]),
        (
            "tags: [core, nondeterministic_seded]",
            "rand_it(Tensor self) -> Tensor",
            ["ATN116 'nondeterministic_seded': `tags.yaml` declares no tag `nondeterministic_seded`; did you m…"],
        ),
        (
            "",
            "rand_it(Tensor self) -> Tensor",
            ["ATN117 'rand_it': the name `rand_it` holds `rand`, so that it needs the tag `nondeterministic_se…"],
        ),
        (
            "tags: core",
            "rand_it(Tensor self) -> Tensor",
            ["ATN117 'rand_it': the name `rand_it` holds `rand`, so that it needs the tag `nondeterministic_se…"],
        ),
        (
            "tags: [core]",
            "f(Tensor self, Generator? g) -> Tensor",
            ["ATN117 'f': `g` is a `Generator`, so that it needs the tag `nondeterministic_seeded`"],
        ),
        (
            "",
            "f(Tensor self, float dropout_p) -> Tensor",
            ["ATN117 'f': the name `dropout_p` holds `dropout`, so that it needs the tag `nondeterministic_see…"],
        ),
        (
            "",
            "f.Brand(Tensor self) -> Tensor",
            ["ATN117 'f.Brand': the name `f.Brand` holds `rand`, so that it needs the tag `nondeterministic_se…"],
        ),
        (
            "cpp_no_default_args: [dims, self, 1, dim, dim]",
            OUT,
            [
                "ATN118 'dims': the operator has no argument `dims`; did you mean `dim`?",
                "ATN118 'self': the argument `self` has no default that C++ could go without",
                "ATN118 '1': an item is the name of an argument, and this is a number",
                "ATN118 'dim': `dim` appears twice",
            ],
        ),
        (
            "use_const_ref_for_mutable_tensors: True",
            OUT,
            ["ATN119 'use_const_ref_for_mutable_tensors': `use_const_ref_for_mutable_tensors` cannot go with o…"],
        ),
    ],
)
def test_faults(fields: str, schema: str, expected: list[str]) -> None:
    assert lines(entry(fields, schema)) == expected


@pytest.mark.parametrize(
    ("fields", "schema"),
    [
        ("", "f_backward(Tensor self, float dropout_p) -> Tensor"),
        ("", "_cudnn_init_dropout_state(Tensor self) -> Tensor"),
        ("cpp_no_default_args: [dim]", OUT),
        ("use_const_ref_for_mutable_tensors: False", OUT),
    ],
)
def test_sound_entries(fields: str, schema: str) -> None:
    assert lines(entry(fields, schema)) == []


@pytest.mark.parametrize(
    ("fields", "schema", "expected"),
    [
        ("variants: function,method", TANH, "variants: function, method"),
        ("variants: methods, function", TANH, "variants: method, function"),
        ("variants: function, method, function", TANH, "variants: function, method"),
        ("variants: function,", TANH, "variants: function"),
        ("variants: function, method", OUT, "variants: function"),
        ("variants: method", OUT, "variants: function"),
        ("device_check: nocheck", TANH, "device_check: NoCheck"),
        ("", "_foreach_tanh(Tensor[] self) -> Tensor[]", "device_check: NoCheck"),
        ("device_check: ExactSame", "_foreach_tanh(Tensor[] self) -> Tensor[]", "device_check: NoCheck"),
        ("device_check:", "_foreach_tanh(Tensor[] self) -> Tensor[]", "device_check: NoCheck"),
        ("", "mine::_foreach_tanh(Tensor[] self) -> Tensor[]", "device_check: NoCheck"),
        ("tags: pointwis", TANH, "tags: pointwise"),
        ("tags: core, pointwise", TANH, "tags: [core, pointwise]"),
        (
            "tags: [core, nondeterministic_seded]",
            "rand_it(Tensor self) -> Tensor",
            "tags: [core, nondeterministic_seeded]",
        ),
        ("", "rand_it(Tensor self) -> Tensor", "tags: nondeterministic_seeded"),
        ("tags: core", "rand_it(Tensor self) -> Tensor", "tags: [core, nondeterministic_seeded]"),
        ("tags: [core]", "f(Tensor self, Generator? g) -> Tensor", "tags: [core, nondeterministic_seeded]"),
        ("", "f(Tensor self, float dropout_p) -> Tensor", "tags: nondeterministic_seeded"),
        ("", "f.Brand(Tensor self) -> Tensor", "tags: nondeterministic_seeded"),
        ("cpp_no_default_args: [dims, self, 1, dim, dim]", OUT, "cpp_no_default_args: [dim, self, 1, dim, dim]"),
    ],
)
def test_fixes(fields: str, schema: str, expected: str) -> None:
    assert fixed(entry(fields, schema)) == entry(expected, schema)
