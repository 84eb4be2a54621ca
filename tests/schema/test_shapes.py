"""Shape declarations: dimensions, symbols, places and what is odd about them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opschema_cli.schema.shapes import parse_dimension, parse_shape


@pytest.mark.parametrize(
    ("text", "dimensions"),
    [
        ("[M, K]", ["M", "K"]),
        ("[ B ,NC + 1,2 * N ]", ["B", "NC + 1", "2 * N"]),
        ("[4, d]", ["4", "d"]),
        ("[n_expand * (n_expand + 2), (S - 1) // 2 % 3]", ["n_expand * (n_expand + 2)", "(S - 1) // 2 % 3"]),
        ("[N,]", ["N"]),
        ("[]", []),
    ],
)
def test_dimensions(text: str, dimensions: list[str]) -> None:
    shape = parse_shape(text)
    assert shape.problems == ()
    assert [item.text for item in shape.dimensions or ()] == dimensions
    assert [text[slice(*item.span)] for item in shape.dimensions or ()] == dimensions
    assert shape.rank == len(dimensions)


def test_symbols_have_places_in_the_whole_text() -> None:
    text = "[B, NC + 1, größe * (B)]"
    symbols = parse_shape(text).symbols
    assert [name for name, _ in symbols] == ["B", "NC", "größe", "B"]
    assert [text[slice(*span)] for _, span in symbols] == ["B", "NC", "größe", "B"]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("M, K", [("brackets", "M, K")]),
        ("", [("brackets", "")]),
        ("[M, K", [("brackets", "[M, K")]),
        ("(M, K)", [("brackets", "(M, K)")]),
        ("[M] | [K]", [("alternatives", "|")]),
        ("[M] K", [("syntax", " K")]),
        ("[M,, K]", [("empty", "")]),
        ("[M K, N]", [("syntax", "M K")]),
        ("[..., n]", [("ellipsis", "...")]),
        ("[*, _, *dims]", [("wildcard", "*"), ("wildcard", "_"), ("wildcard", "*dims")]),
        ("[64 | 128, K]", [("alternatives", "64 | 128")]),
        ("[M / 2]", [("expression", "M / 2")]),
        ("[x.shape[0], len(y), 'a', 1.5, True]",
         [("expression", text) for text in ("x.shape[0]", "len(y)", "'a'", "1.5", "True")]),
    ],
)  # fmt: skip
def test_what_is_odd_is_said_with_its_place(text: str, problems: list[tuple[str, str]]) -> None:
    assert [(item.kind, text[slice(*item.span)]) for item in parse_shape(text).problems] == problems


@pytest.mark.parametrize(
    ("text", "rank"), [("[..., n]", None), ("[*dims, n]", None), ("[_, n]", 2), ("same_as(x)", None)]
)
def test_an_open_rank_is_none(text: str, rank: int | None) -> None:
    assert parse_shape(text).rank == rank


def test_the_legacy_alias() -> None:
    shape = parse_shape(" same_as( x )")
    assert (shape.alias, shape.dimensions, shape.problems) == (("x", (10, 11)), None, ())


@pytest.mark.parametrize(
    ("tensor", "text", "rule"),
    [
        ("x", "[M, 2 * N]", "x.shape == (M, 2 * N,)"),
        ("x", "[]", "x.shape == ()"),
        ("x", "[M # rows\n, K]", "x.shape == (M, K,)"),
        ("y", "same_as(x)", "y.shape == x.shape"),
    ],
)
def test_a_declaration_says_a_rule(tensor: str, text: str, rule: str) -> None:
    expression = parse_shape(text).as_rule(tensor)
    assert expression is not None
    assert expression.text == rule


@pytest.mark.parametrize(
    ("tensor", "text"),
    [("x", "[..., N]"), ("x", "[M] | [K]"), ("x", "[M K]"), ("lambda", "[M]"), ("x y", "[M]"), ("x", "same_as(in)")],
)
def test_what_no_rule_can_say(tensor: str, text: str) -> None:
    assert parse_shape(text).as_rule(tensor) is None


def test_a_dimension_on_its_own() -> None:
    dimension = parse_dimension(" 2 * N", start=10)
    assert (dimension.text, dimension.span) == ("2 * N", (11, 16))
    assert list(dimension.symbols()) == [("N", (15, 16))]


@given(st.text(max_size=40) | st.text("[](),.*_|+MNé 1x'\n#\0", max_size=40))
def test_any_text_is_a_declaration_with_places(text: str) -> None:
    shape = parse_shape(text)
    spans = [problem.span for problem in shape.problems] + [item.span for item in shape.dimensions or ()]
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    shape.as_rule("x")
