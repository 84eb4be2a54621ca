"""Inner loops."""

from __future__ import annotations

import pytest

from tests.rules.aten.entry_findings import entry, fixed, lines

OUT = "tanh.out(Tensor self, int dim=1, *, Tensor(a!) out) -> Tensor(a!)"


@pytest.mark.parametrize(
    ("fields", "schema", "expected"),
    [
        (
            "structured: True\nufunc_inner_loop: add(All)",
            OUT,
            ["ATN171 'add(All)': an inner loop has the form `name (dtype, dtype)`, and this is `add(All)`"],
        ),
        (
            "structured: True\nufunc_inner_loop: add  (All)",
            OUT,
            ["ATN171 'add  (All)': an inner loop has the form `name (dtype, dtype)`, and this is `add  (All)`"],
        ),
        (
            "structured: True\nufunc_inner_loop: add (All,Half)",
            OUT,
            ["ATN171 'add (All,Half)': an inner loop has the form `name (dtype, dtype)`, and this is `add (All…"],
        ),
        ("structured: True\nufunc_inner_loop: add ()", OUT, ["ATN171 '': a dtype is missing"]),
        (
            "structured: True\nufunc_inner_loop: add",
            OUT,
            ["ATN171 'add': an inner loop has the form `name (dtype, dtype)`, and this is `add`"],
        ),
        (
            "structured: True\nufunc_inner_loop: ' (All)'",
            OUT,
            ["ATN171 \"' (All)'\": an inner loop has the form `name (dtype, dtype)`, and this is ` (All)`"],
        ),
        (
            "structured: True\nufunc_inner_loop: add (Haf, All)",
            OUT,
            ["ATN171 'Haf': torchgen has no dtype `Haf`; did you mean `Half`?"],
        ),
        (
            "structured: True\nufunc_inner_loop: {Generic: 'add (All)', Scalaronly: 'add (Bool)'}",
            OUT,
            ["ATN171 'Scalaronly': torchgen has no kind of loop `Scalaronly`; did you mean `ScalarOnly`?"],
        ),
        (
            "structured: True\nufunc_inner_loop: {Foo: 'add (All)'}",
            OUT,
            ["ATN171 'Foo': torchgen has no kind of loop `Foo`"],
        ),
        (
            "structured: True\nufunc_inner_loop: {Generic: 1}",
            OUT,
            ["ATN171 '1': a loop is text of the form `name (dtypes)`, and this is a number"],
        ),
        (
            "structured: True\nufunc_inner_loop: {Generic: }",
            OUT,
            ["ATN171 'Generic': a loop is text of the form `name (dtypes)`, and this is nothing"],
        ),
        (
            "ufunc_inner_loop: add (All)",
            OUT,
            ["ATN172 'ufunc_inner_loop': `ufunc_inner_loop` needs `structured: True`"],
        ),
        (
            "structured: True\nufunc_inner_loop: add (All)\ndispatch: {'CPU, MPS': a, CUDA: b}",
            OUT,
            [
                "ATN172 'CPU': the kernel for `CPU` is made from the inner loop",
                "ATN172 'CUDA': the kernel for `CUDA` is made from the inner loop",
            ],
        ),
    ],
)
def test_faults(fields: str, schema: str, expected: list[str]) -> None:
    assert lines(entry(fields, schema)) == expected


@pytest.mark.parametrize(
    ("fields", "schema"),
    [
        ("structured: True\nufunc_inner_loop: add (All, Half)", OUT),
        ("structured: True\nufunc_inner_loop: {}", OUT),
    ],
)
def test_sound_entries(fields: str, schema: str) -> None:
    assert lines(entry(fields, schema)) == []


@pytest.mark.parametrize(
    ("fields", "schema", "expected"),
    [
        ("structured: True\nufunc_inner_loop: add(All)", OUT, "structured: True\nufunc_inner_loop: add (All)"),
        ("structured: True\nufunc_inner_loop: add  (All)", OUT, "structured: True\nufunc_inner_loop: add (All)"),
        (
            "structured: True\nufunc_inner_loop: add (All,Half)",
            OUT,
            "structured: True\nufunc_inner_loop: add (All, Half)",
        ),
        (
            "structured: True\nufunc_inner_loop: add (Haf, All)",
            OUT,
            "structured: True\nufunc_inner_loop: add (Half, All)",
        ),
        (
            "structured: True\nufunc_inner_loop: {Generic: 'add (All)', Scalaronly: 'add (Bool)'}",
            OUT,
            "structured: True\nufunc_inner_loop: {Generic: 'add (All)', ScalarOnly: 'add (Bool)'}",
        ),
    ],
)
def test_fixes(fields: str, schema: str, expected: str) -> None:
    assert fixed(entry(fields, schema)) == entry(expected, schema)
