"""Comparisons, boolean expressions and what ``if`` and ``assert`` test, as facts."""

from __future__ import annotations

import pytest

from opschema_cli.source.python import Expr
from opschema_cli.source.python_facts import collect


def expr(text: str) -> Expr:
    value = collect(f"x = {text}\n").body.assigns[0].value
    assert value is not None
    return value


def shape(found: Expr) -> object:
    """A tree of kinds and texts; constants as their value."""
    if found.kind == "const":
        return found.value
    return (found.kind, found.text, *map(shape, found.items)) if found.items else found.text


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a == 1", ("compare", "==", "a", 1)),
        ("0 < a <= b", ("compare", "< <=", 0, "a", "b")),
        ("a not in b", ("compare", "not-in", "a", "b")),
        ("a is not None", ("compare", "is-not", "a", None)),
        ("a and b and c", ("boolop", "and", "a", "b", "c")),
        ("a and (b or not c)", ("boolop", "and", "a", ("boolop", "or", "b", ("unary", "not", "c")))),
        ("type(self).op", ("attribute", "op", ("call", "", "type", "self"))),
    ],
)
def test_expressions(text: str, tree: object) -> None:
    assert shape(expr(text)) == tree


def test_conditions_know_what_they_guard() -> None:
    text = "if a:\n    b()\nelif c > 1:\n    d()\nelse:\n    e()\nassert f, 'why'\nwhile g:\n    pass\n"
    found = collect(text).body.conditions
    assert [(item.kind, text[item.expr.start : item.expr.end], text[slice(*item.body)].strip()) for item in found] == [
        ("if", "a", "b()"),
        ("if", "c > 1", "d()"),
        ("assert", "f", "assert f, 'why'"),
    ]


def test_a_walrus_binds_its_value() -> None:
    (assign,) = collect("if (op := table.get(key)) is not None:\n    op()\n").body.assigns
    assert (assign.target, assign.sure) == ("op", False)
    assert assign.value is not None
    assert assign.value.callee == "table.get"
