"""The values that a meta function passes to its kernel."""

from __future__ import annotations

import pytest

from tests.rules.aten.entry_findings import entry, fixed, lines

OUT = "tanh.out(Tensor self, int dim=1, *, Tensor(a!) out) -> Tensor(a!)"


@pytest.mark.parametrize(
    ("fields", "schema", "expected"),
    [
        ("precomputed:\n- dim -> int d", OUT, ["ATN161 'precomputed': `precomputed` needs `structured: True`"]),
        (
            "structured: True\nprecomputed:\n- dims -> int d",
            OUT,
            ["ATN162 'dims': the operator has no argument `dims`; did you mean `dim`?"],
        ),
        (
            "structured: True\nprecomputed:\n- dim -> int D",
            OUT,
            ["ATN162 'D': `D` cannot be all upper case, as the template's parameters are"],
        ),
        (
            "structured: True\nprecomputed:\n- dim -> int a,int b",
            OUT,
            ["ATN162 'int b': a comma must be followed by one space, and other spaces are not allowed"],
        ),
        (
            "structured: True\nprecomputed:\n- dim -> int a ,  int b",
            OUT,
            [
                "ATN162 'int a ': a comma must be followed by one space, and other spaces are not allowed",
                "ATN162 '  int b': a comma must be followed by one space, and other spaces are not allowed",
            ],
        ),
        (
            "structured: True\nprecomputed:\n- dim->int a",
            OUT,
            ["ATN162 'dim->int a': `->` needs one space before and after it"],
        ),
        (
            "structured: True\nprecomputed:\n- dim -> int a -> int b",
            OUT,
            ["ATN162 'dim -> int a -> int b': an item has one `->`, and this has more"],
        ),
        (
            "structured: True\nprecomputed:\n- dim -> Tensr a",
            OUT,
            ["ATN162 'Tensr': no type is called `Tensr`; did you mean `Tensor`?"],
        ),
        (
            "structured: True\nprecomputed:\n- dim -> a",
            OUT,
            ["ATN162 'a': a declaration has the form `type name`, and this is `a`"],
        ),
        (
            "structured: True\nprecomputed:\n- 'dim -> '",
            OUT,
            ["ATN162 \"'dim -> '\": a declaration (`type name`) is missing"],
        ),
        ("structured: True\nprecomputed:\n- dim -> int a, int a", OUT, ["ATN162 'a': `a` is declared twice"]),
        ("structured: True\nprecomputed:\n- self -> Tensor x", OUT, ["ATN162 'self': `self` cannot be replaced"]),
        ("structured: True\nprecomputed:\n- out -> int x", OUT, ["ATN162 'out': `out` cannot be replaced"]),
        (
            "structured: True\nprecomputed:\n- dim -> int self",
            OUT,
            ["ATN162 'self': `self` is an argument of the kernel, too"],
        ),
        (
            "structured: True\nprecomputed:\n- int a\n- dim -> int b",
            OUT,
            ["ATN162 'int a': only the last item may be without `argument -> `"],
        ),
        (
            "structured: True\nprecomputed:\n- dim -> int a\n- dim -> int b",
            OUT,
            ["ATN162 'dim': `dim` is replaced twice; one item holds all that replaces it"],
        ),
        (
            "structured: True\nprecomputed:\n- dim -> int a\n- 1",
            OUT,
            ["ATN162 '1': an item has the form `argument -> type name`, and this is a number"],
        ),
        (
            "structured: True\nprecomputed:\n- [dim]",
            OUT,
            ["ATN162 '[dim]': an item has the form `argument -> type name`, and this is a list"],
        ),
        ("structured: True\nprecomputed:\n- dim -> int  a", OUT, ["ATN162 '  ': one space belongs here"]),
        (
            "structured: True\nprecomputed:\n- dim -> int a, ",
            OUT,
            ["ATN162 'dim -> int a,': a declaration (`type name`) is missing"],
        ),
        (
            "structured: True\nprecomputed:\n- 'int a, '",
            OUT,
            ["ATN162 \"'int a, '\": a declaration (`type name`) is missing"],
        ),
        (
            "structured: True\nprecomputed:\n- ' -> int a'",
            OUT,
            ["ATN162 \"' -> int a'\": write the argument to replace before `->`"],
        ),
    ],
)
def test_faults(fields: str, schema: str, expected: list[str]) -> None:
    assert lines(entry(fields, schema)) == expected


@pytest.mark.parametrize(
    ("fields", "schema"),
    [
        ("structured: True\nprecomputed:\n- dim -> DimVector a", OUT),
        ("structured: True\nprecomputed:\n- dim -> int dim", OUT),
        ("structured: True\nprecomputed:\n- int a,int b", OUT),
        ("structured: True\nprecomputed: []", OUT),
    ],
)
def test_sound_entries(fields: str, schema: str) -> None:
    assert lines(entry(fields, schema)) == []


@pytest.mark.parametrize(
    ("fields", "schema", "expected"),
    [
        (
            "structured: True\nprecomputed:\n- dim -> int a,int b",
            OUT,
            "structured: True\nprecomputed:\n- dim -> int a, int b",
        ),
        (
            "structured: True\nprecomputed:\n- dim -> int a ,  int b",
            OUT,
            "structured: True\nprecomputed:\n- dim -> int a, int b",
        ),
        ("structured: True\nprecomputed:\n- dim->int a", OUT, "structured: True\nprecomputed:\n- dim -> int a"),
        ("structured: True\nprecomputed:\n- dim -> int  a", OUT, "structured: True\nprecomputed:\n- dim -> int a"),
    ],
)
def test_fixes(fields: str, schema: str, expected: str) -> None:
    assert fixed(entry(fields, schema)) == entry(expected, schema)
