"""Text with places: what a span, an edit and a file's bytes are."""

from __future__ import annotations

import ast
import codecs
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opschema_cli.source.text import (
    DecodeError,
    Edit,
    EditConflictError,
    NestedSpans,
    Source,
    Span,
    SpanSet,
    apply_edits,
    ascii_words_in,
    decode,
    holds_word,
    is_found,
    may_begin_statement,
    places_of,
)


def test_a_position_counts_lines_and_columns_from_one() -> None:
    source = Source("f", "ab\nc≈d\r\n\rlast")
    places = [source.position(source.text.index(char)) for char in "abc≈dl"]
    assert places == [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (4, 1)]


def test_a_position_past_the_end_is_the_end() -> None:
    assert Source("f", "ab\n").position(99) == (2, 1)
    assert Source("f", "ab").position(-1) == (1, 1)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a\n", ["a", ""]),
        ("a\r\nb\rc\n", ["a", "b", "c", ""]),
        ("\n\n", ["", "", ""]),
        ("a\u2028b\x0cc", ["a\u2028b\x0cc"]),
    ],
)
def test_lines_end_where_editors_end_them(text: str, lines: list[str]) -> None:
    source = Source("f", text)
    assert [source.line_text(number + 1) for number in range(source.line_count)] == lines
    assert source.line_text(0) == source.line_text(source.line_count + 1) == ""


@given(st.text(st.sampled_from("ab\r\n"), max_size=12), st.integers(0, 12))
def test_a_position_finds_its_character_again(text: str, offset: int) -> None:
    source = Source("f", text)
    line, column = source.position(offset)
    assert source.line_span(line).start + column - 1 == min(offset, len(text))


@pytest.mark.parametrize(("text", "newline"), [("", "\n"), ("a\r\nb\n", "\r\n"), ("a\nb\r\n", "\n"), ("a\rb", "\r")])
def test_the_first_line_end_is_the_files(text: str, newline: str) -> None:
    assert Source("f", text).newline == newline


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"", "", "utf-8"),
        ("≈".encode(), "≈", "utf-8"),
        (codecs.BOM_UTF8 + b"a: 1\r\n", "a: 1\r\n", "utf-8-sig"),
        ("a".encode("utf-16"), "a", "utf-16"),
    ],
)
def test_bytes_come_back(data: bytes, text: str, encoding: str) -> None:
    assert decode(data) == (text, encoding)
    assert Source("f", text, encoding).encode() == data


@pytest.mark.parametrize(
    "data",
    [
        b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
        b"#!/usr/bin/env python\n# vim: set fileencoding=latin-1 :\nx = '\xe9'\n",
    ],
)
def test_a_coding_cookie_counts_in_python_only(data: bytes) -> None:
    text, encoding = decode(data, python=True)
    assert "x = 'é'" in text
    assert Source("f.py", text, encoding).encode() == data
    with pytest.raises(DecodeError, match=r"byte 0xe9 on line [23] is not utf-8"):
        decode(data)


@pytest.mark.parametrize(
    ("data", "reason", "offset"),
    [
        (b"ab\x00c", "it holds NUL bytes, the first on line 1, so it is binary", 2),
        (b"ab\xff", "byte 0xff on line 1 is not utf-8", 2),
        (b"a\r\nb\rc\nd\xff", "byte 0xff on line 4 is not utf-8", 8),
        ("a\nb".encode("utf-16") + b"\xff", "byte 0xff on line 2 is not utf-16", 8),
        (
            b"#!python\n# coding: nonsense\n",
            "line 2 declares the encoding 'nonsense', which opschema does not read; save it as UTF-8",
            19,
        ),
    ],
)
def test_what_is_not_text_says_where(data: bytes, reason: str, offset: int) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(data, python=True)
    assert (caught.value.reason, caught.value.offset) == (reason, offset)


def edit(start: int, end: int, text: str) -> Edit:
    return Edit(Span(start, end), text)


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([], "abcdef"),
        ([edit(2, 4, "X")], "abXef"),
        ([edit(4, 6, ""), edit(0, 1, "XYZ")], "XYZbcd"),
        ([edit(3, 3, "+")], "abc+def"),
        ([edit(0, 3, "X"), edit(3, 6, "Y")], "XY"),
        ([edit(0, 3, "X"), edit(3, 3, "+")], "X+def"),
        ([edit(6, 6, "!"), edit(6, 6, "!")], "abcdef!"),
    ],
)
def test_edits_apply_at_once(edits: list[Edit], expected: str) -> None:
    assert apply_edits("abcdef", edits) == expected


@pytest.mark.parametrize(
    "edits",
    [
        [edit(0, 3, "X"), edit(2, 4, "Y")],
        [edit(0, 6, "X"), edit(2, 3, "Y")],
        [edit(2, 3, "X"), edit(2, 3, "Y")],
        [edit(3, 3, "X"), edit(3, 3, "Y")],
        [edit(3, 3, "X"), edit(3, 4, "Y")],
        [edit(3, 3, "X"), edit(2, 4, "Y")],
    ],
)
def test_edits_that_overlap_are_refused(edits: list[Edit]) -> None:
    with pytest.raises(EditConflictError, match="overlap"):
        apply_edits("abcdef", edits)


@given(st.text(st.sampled_from("ab c\n(")))
def test_what_is_found_near_its_parts_is_what_is_found_at_all(text: str) -> None:
    pattern = re.compile(r"a[ ]?b\(|\bc\b")
    assert is_found(pattern, text, ("b(", "c"), 3) == (pattern.search(text) is not None)
    data = text.encode()
    assert is_found(re.compile(rb"\Aa"), data, (b"a",), 0) == data.startswith(b"a")


@given(st.text(st.sampled_from("ab\n\r\v\u2028")))
def test_a_line_ends_with_a_line_feed_or_a_carriage_return_and_nothing_else(text: str) -> None:
    source = Source("a.py", text)
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    assert source.line_count == len(starts)
    assert [source.line_span(line).start for line in range(1, len(starts) + 1)] == starts


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("f", [0]),
        ("f f", [0, 2]),
        ("ff", []),
        ("ffff", []),
        ("f.f(f)", [0, 2, 4]),
        ("f_ _f 1f f1 éf", []),
        ("xf f", [3]),
        ("", []),
    ],
)
def test_places_of_a_word(text: str, places: list[int]) -> None:
    assert list(places_of("f", text)) == places
    if text.isascii():
        assert list(places_of(b"f", text.encode())) == places


@pytest.mark.parametrize(
    "text",
    [
        "del x",
        "\tdel x",
        "a = 1\ndel x",
        "a = 1\rdel x",
        "a = 1; del x",
        "if a: del x",
        "if a: \\\n    del x",
        "try: f()\nfinally:del(x)",
        "# a del, and then\n \x0cdel[x]",
    ],
)
def test_keywords_that_may_begin_a_statement(text: str) -> None:
    assert any(isinstance(node, ast.Delete) for node in ast.walk(ast.parse(text.strip())))
    assert may_begin_statement("del", text)


@pytest.mark.parametrize("text", ["", "model", "# the del of x", "delta = 1", "x.del_ = 'a del'", "f(del_)", "éa del"])
def test_words_that_begin_none(text: str) -> None:
    assert not may_begin_statement("del", text)


def test_a_word_of_a_text() -> None:
    assert holds_word("exec", "a = exec('b')")
    assert not holds_word("exec", "execute(exec_time, _exec)")


def test_words_of_bytes() -> None:
    assert ascii_words_in("a_1+b2 é::c\n\td".encode()) == {b"a_1", b"b2", b"c", b"d"}


def test_an_offset_is_in_a_set_of_spans_if_one_of_them_contains_it() -> None:
    spans = SpanSet([Span(12, 15), Span(3, 5), Span(3, 9), Span(6, 7), Span(9, 9)])
    assert [offset for offset in range(20) if offset in spans] == [3, 4, 5, 6, 7, 8, 12, 13, 14]
    assert 0 not in SpanSet([])


def test_the_innermost_span_around_an_offset() -> None:
    spans = NestedSpans([Span(12, 15), Span(3, 5), Span(3, 9), Span(6, 7), Span(12, 15)])
    assert [spans.innermost(offset) for offset in (2, 3, 5, 6, 8, 9, 14, 15)] == [
        None,
        Span(3, 5),
        Span(3, 9),
        Span(6, 7),
        Span(3, 9),
        None,
        Span(12, 15),
        None,
    ]
