"""Comments, literals and directives of C++ texts."""

from __future__ import annotations

import re
import time

import pytest

from opschema_cli.source.cpp_text import only_code, parts, without_comments


def squeezed(text: str, *, directives: bool = True) -> str:
    """The code of a text with one space in place of several; places and lines stay before that."""
    code = only_code(text, directives=directives)
    assert len(code) == len(text)
    assert [at for at, char in enumerate(code) if char == "\n"] == [at for at, char in enumerate(text) if char == "\n"]
    return re.sub(" +", " ", code)


def found(text: str) -> list[tuple[str, str]]:
    """The parts of a text."""
    return [(part.kind, text[part.start : part.end]) for part in parts(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a // b\nc", "a \nc"),
        ("a // b \\\n c\nd", "a \n \nd"),
        ("a // b \\\r\n c\r\nd", "a \r\n \r\nd"),
        ("a /* b\n// */ c", "a \n c"),
        ("a /* b", "a "),
        ("a /*/ b */ c", "a c"),
        ("f(\"// no comment\", 'x') // b", "f( , ) "),
        (r'f("\"", "\\", b)', "f( , , b)"),
        ('"a\\\nb" c', " \n c"),
        ('f("unclosed\n) b', "f( \n) b"),
        ("'\"' a '\\'' b '//' c", " a b c"),
        ("1'000'000 + 0xFF'FFu + .5'0 + a", "1'000'000 + 0xFF'FFu + .5'0 + a"),
        ("x ? '1':'2'; n", "x ? : ; n"),
        ("case'a': return'b'; u8'c'; L'd'", "case : return ; u8 ; L "),
        ('R"(a " b)" c', "R c"),
        ('u8R"x(a )" " )x" c', "u8R c"),
        ('LR"(//)" a', "LR a"),
        ('R"(a\n#define b\n)" c', "R \n \n c"),
        ('BAR"(a" b', "BAR b"),
        ('R"(never closed // a', "R "),
        ('R"no raw string" a', "R a"),
        ('R""()"" a', "R a"),
        ("don't say\nb", "don \nb"),
    ],
)
def test_code(text: str, expected: str) -> None:
    assert squeezed(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#define A \\\n  b\nc", " \n \nc"),
        ("  #  define A  // b\nc", " \nc"),
        ("#define A /* b\n#define B */ c\nd", " \n \nd"),
        ("/* a */ #define A\nb", " \nb"),
        ("a /* b\n */ #define A", "a \n #define A"),
        ("a #b", "a #b"),
        ("a \\\n#b", "a \\\n#b"),
        ("a \\\r\n#b", "a \\\r\n#b"),
        ('#define A R"(b\n)" c\nd', " \n \nd"),
        ('#define A "/*"\nb', " \nb"),
        ("#error don't /* do this\nb", " \nb"),
        ("#if 0\ndon't \"do this\n#endif\nb", " \ndon \n \nb"),
        ("#", " "),
        ("#if 1'000 // it's\nb", " \nb"),
    ],
)
def test_directives(text: str, expected: str) -> None:
    assert squeezed(text, directives=False) == expected


def test_code_in_a_directive() -> None:
    assert only_code('#define A(x) f("y", x) // z\n') == "#define A(x) f(   , x)     \n"


def test_parts() -> None:
    text = "// a\n#define B \"c\" /* d */ 'e'\n1'0"
    assert found(text) == [
        ("comment", "// a"),
        ("directive", "#define B \"c\" /* d */ 'e'"),
        ("literal", '"c"'),
        ("comment", "/* d */"),
        ("literal", "'e'"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/**/b", "a b"),
        ('"//" /* a */ "b" // c', '"//"   "b"  '),
        ("1'0 // '", "1'0  "),
        ("a", "a"),
        ("", ""),
    ],
)
def test_without_comments(text: str, expected: str) -> None:
    assert without_comments(text) == expected


@pytest.mark.parametrize(
    "piece", ["'", '"', "/*", "//", "#", "# ", "\n#", 'R"(', "1'", " ", "\\", '\\"', "/* */#", "#'\\\n"]
)
def test_time_is_linear(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    assert len(only_code(text, directives=False)) == len(text)
    assert time.process_time() - started < 4


@pytest.mark.parametrize("text", ["\0\ufffe\ud800'", '"\\', "'\\", "#\\", "#'\\", 'R"', "/", "//", "/*"])
def test_odd_texts(text: str) -> None:
    assert len(only_code(text)) == len(text)
    assert len(only_code(text, directives=False)) == len(text)
