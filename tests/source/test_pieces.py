"""Parts of strings with their places, and calls in Python text."""

from __future__ import annotations

import re

import pytest

from opschema_cli.source.call_text import counted_calls
from opschema_cli.source.pieces import arguments, group, pieces


def test_parts_know_their_places() -> None:
    text = " a, , bc "
    found = list(pieces(text, [2, 4], at=10))
    assert [item.text for item in found] == ["a", "", "bc"]
    assert [text[item.span.start - 10 : item.span.end - 10] for item in found] == ["a", "", "bc"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        (" ", []),
        ("x", ["x"]),
        ("f(a, b), {1, 2}, c[0, 1]", ["f(a, b)", "{1, 2}", "c[0, 1]"]),
        ("x,", ["x", ""]),
        ("f(x", None),
        ("x), (y", None),
    ],
)
def test_arguments_of_a_call(text: str, found: list[str] | None) -> None:
    parts = arguments(text)
    assert (None if parts is None else [item.text for item in parts]) == found


def test_a_group_that_did_not_match_is_empty() -> None:
    found = re.fullmatch(r"(a)(b)?", "a")
    assert found is not None
    assert group(found, 1, 5) == ("a", (5, 6))
    assert group(found, 2).text == ""


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("f(x, g(1, 2), [3, 4])", [3]),
        ("f()\nf(\n    x,  # one, two\n)", [0, 1]),
        ("f(x, y=1)", []),
        ("f(*x)", []),
        ("f(x == 1)", [1]),
        ('f(\'a, b\', """c, d""")', [2]),
        ("# f(x)\n'f(x)'", []),
        ("f(lambda a, b: a)", []),
        ("f(x", []),
    ],
)
def test_calls_in_text(text: str, counts: list[int]) -> None:
    assert [call.count for call in counted_calls(text, re.compile(r"\b(f)\("))] == counts
