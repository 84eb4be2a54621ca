"""Parsing: one expression, its names and its places."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from opschema_cli.schema.expression import (
    MAX_DEPTH,
    MAX_LENGTH,
    ExpressionSyntaxError,
    parse_expression,
)


def used(text: str) -> list[str]:
    return [name for name, _ in parse_expression(text).names()]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("q.shape == (B, S, H, D)", ["q", "B", "S", "H", "D"]),
        ("B + B", ["B", "B"]),
        ("len(x) == N", ["x", "N"]),
        ("isinstance(dim, (int, type(None)))", ["dim", "int"]),
        ("all(d < n for d in dim)", ["n", "dim"]),
        ("[x for x in x]", ["x"]),
        ("[a for a in b for b in c]", ["b", "c"]),
        ("[a for q in z for a in b for b in c]", ["z", "c"]),
        ("{d % n for i, (d, e) in dims if i}", ["n", "dims"]),
        ("{k: v for k, v in x}", ["x"]),
        ("lambda a, *b, c=d: a + b + c + e", ["d", "e"]),
        ("(y := 5)", []),
        ("1 + 2", []),
    ],
)
def test_names_are_those_read_from_outside(text: str, names: list[str]) -> None:
    assert used(text) == names


def test_calls_are_the_called_names() -> None:
    calls = parse_expression("len(dim) == max(len(x), a.b(c), N)").calls()
    assert [(name, span) for name, span in calls] == [("len", (0, 3)), ("max", (12, 15)), ("len", (16, 19))]


@pytest.mark.parametrize(
    "text",
    [
        "a + bb",
        "  a + bb",
        "\n\t a +\tbb  # why",
        "'größe' + bb",
        "(é +\n bb)",
        "(é +\r\n 'ü' + bb)",
        "(é +\r 'ü' + bb)",
        "ﬁ + bb",
    ],
)
def test_spans_count_characters(text: str) -> None:
    expression = parse_expression(text)
    assert expression.names()
    for name, (start, end) in expression.names():
        assert unicodedata.normalize("NFKC", text[start:end]) == name


def test_a_part_knows_its_place_in_the_whole_text() -> None:
    expression = parse_expression(" (a == 1) and b == (c, d)")
    second = expression.part(expression.tree.values[1])  # type: ignore[attr-defined]
    assert (second.snippet, second.span) == ("b == (c, d)", (14, 25))
    assert [(name, span) for name, span in second.names()] == [("b", (14, 15)), ("c", (20, 21)), ("d", (23, 24))]
    assert expression.part(second.tree) is second


@pytest.mark.parametrize(
    ("text", "reason", "offset"),
    [
        ("", "it is empty", 0),
        ("  \n ", "it is empty", 4),
        ("a b", "invalid syntax", 2),
        ("  a b", "invalid syntax", 4),
        ("ä + bb cc", "invalid syntax", 7),
        (" (ä +\n b", "'(' was never closed", 1),
        ("a\0b", "it holds a NUL character", 1),
        ("a + '\ud800'", "it holds half a surrogate pair", 5),
        ("a" * (MAX_LENGTH + 1), "it has more than 10,000 characters", MAX_LENGTH),
        ("-" * 200 + "1", f"it nests deeper than {MAX_DEPTH} levels", 0),
        (" " + "+".join("a" * 200), f"it nests deeper than {MAX_DEPTH} levels", 1),
        ("-" * 9000 + "1", "it nests", 0),
        ("a" + ".b" * 4000, "it nests", 0),
        ("(" * 5000 + ")" * 5000, "too many nested parentheses", 200),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_place(text: str, reason: str, offset: int) -> None:
    with pytest.raises(ExpressionSyntaxError) as caught:
        parse_expression(text)
    assert str(caught.value).startswith(reason)
    assert caught.value.offset == offset


@pytest.mark.parametrize("text", ["9" * 5000, "x = 1", "import os", "a;b", "a\nb", "def f(): pass", "'\\N{no}'"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(ExpressionSyntaxError):
        parse_expression(text)


def test_long_but_flat_expressions_are_read() -> None:
    assert len(parse_expression(" and ".join(["a"] * 1000)).names()) == 1000


@pytest.mark.filterwarnings("error")
def test_warnings_are_silenced() -> None:
    assert used("x is 5 or '\\d' == 1or y") == ["x", "y"]


def test_the_same_text_gives_the_same_object() -> None:
    assert parse_expression("a == b") is parse_expression("a == b")


@given(st.text(max_size=60) | st.text("()[]{}.,:=+-*/%<>!'\"#\\ \t\r\n\f\0abforinlambdaif é\ud800", max_size=60))
@example("\ufeffa")
@example("\x0c(a\x0c+\n b)")
@example("f'{ä} {b!r:{c}}'")
def test_any_text_is_read_or_refused(text: str) -> None:
    refused = -1
    try:
        expression = parse_expression(text)
    except ExpressionSyntaxError as error:
        refused = error.offset
    if refused >= 0:
        assert refused <= len(text)
        return
    assert 0 <= expression.span.start <= expression.span.end <= len(text)
    for name, (start, end) in (*expression.names(), *expression.calls()):
        assert 0 <= start <= end <= len(text)
        assert "{" in text or unicodedata.normalize("NFKC", text[start:end]) == name
