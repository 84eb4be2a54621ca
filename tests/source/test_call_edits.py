"""Arguments that are added to a call are laid out like those before them."""

from __future__ import annotations

import pytest

from opschema_cli.source.call_edits import with_arguments
from opschema_cli.source.parsing import parsed
from opschema_cli.source.text import apply_edits


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()", "f(a=a, b=b)"),
        ("f(x)", "f(x, a=a, b=b)"),
        ("f(x, )", "f(x, a=a, b=b )"),
        ("f((x))", "f((x), a=a, b=b)"),
        ("f(x=1)", "f(x=1, a=a, b=b)"),
        ("f(\n    x,\n    y\n)", "f(\n    x,\n    y, a=a, b=b\n)"),
        ("f(\n    x,\n    y,\n)", "f(\n    x,\n    y,\n    a=a,\n    b=b,\n)"),
        ("f(\n    x, y,\n)", "f(\n    x, y,\n    a=a,\n    b=b,\n)"),
        ("f(\r\n\tx,\r\n)", "f(\r\n\tx,\r\n\ta=a,\r\n\tb=b,\r\n)"),
        ("f(\n    x=g(\n        1,\n    ),\n)", "f(\n    x=g(\n        1,\n    ),\n    a=a,\n    b=b,\n)"),
    ],
)
def test_arguments_are_added(before: str, after: str) -> None:
    facts, _ = parsed(f"y = {before}\n", with_tree=False)
    value = facts.body.assigns[0].value
    assert value is not None
    edit = with_arguments(f"y = {before}\n", value, ["a=a", "b=b"])
    assert edit is not None
    assert apply_edits(f"y = {before}\n", [edit]) == f"y = {after}\n"


def test_a_comment_before_the_bracket_is_not_moved() -> None:
    text = "y = f(\n    x,  # the input\n)\n"
    facts, _ = parsed(text, with_tree=False)
    value = facts.body.assigns[0].value
    assert value is not None
    assert with_arguments(text, value, ["a=a"]) is None
