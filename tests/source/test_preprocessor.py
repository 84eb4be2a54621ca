"""Conditions and macros of C++ texts."""

from __future__ import annotations

import time

import pytest

from opschema_cli.source.expansion import ExpansionError, expand
from opschema_cli.source.preprocessor import Macro, exclusive, is_dead, read_directives
from opschema_cli.source.text import Span


def conditions(text: str, word: str) -> list[str]:
    """The preprocessor condition at a word."""
    return [str(item) for item in read_directives(text).conditions(text.index(word))]


CHAIN = """
before
#if defined(A) && !B  // why
first
#elif defined C
second
#else
third
#endif
behind
"""


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("before", []),
        ("first", ["defined(A) && !B", "defined(A)", "!(B)"]),
        ("second", ["!(defined(A) && !B)", "defined(C)"]),
        ("third", ["!(defined(A) && !B)", "!(defined(C))"]),
        ("behind", []),
    ],
)
def test_conditions_of_a_chain(word: str, expected: list[str]) -> None:
    assert conditions(CHAIN, word) == expected


def test_branches_of_a_chain_exclude_each_other() -> None:
    read = read_directives(CHAIN)
    found = [read.conditions(CHAIN.index(word)) for word in ("first", "second", "third")]
    assert [[exclusive(a, b) for b in found] for a in found] == [
        [False, True, True],
        [True, False, True],
        [True, True, False],
    ]


def test_the_opposite_condition_elsewhere_excludes_too() -> None:
    one = read_directives("#ifdef USE_ROCM\nx\n#endif").conditions(16)
    other = read_directives("#if !defined(USE_ROCM)\nx\n#endif").conditions(24)
    assert exclusive(one, other)
    assert not exclusive(one, one)
    assert not exclusive(one, ())


@pytest.mark.parametrize(
    "text",
    [
        "/*\n#if X\n*/ word",
        'R"(\n#if X\n)" word',
        'R"x(\n#if X\n)" )x" word',
        "// \\\n#if X\nword",
        '"\\\n#if X\n" word',
        "#define A \\\n#if X\nword",
        'auto c = \'"\';\n#if X\n#endif\nconst char* s = "\n#if X\n" word',
        "1'000 /*'*/\n#if X\n#endif\nword",
        "#ifndef GUARD_H\n#define GUARD_H\nword\n#endif",
        "#endif\n#else\n#endif\nword",
        "#if X /* goes on\n#endif\n*/\n#endif\nword",
        "# if X\n  #  endif\r\nword",
        "#pragma once\n#include <if>\nword",
    ],
)
def test_what_is_no_condition(text: str) -> None:
    if "const char* s" in text:  # a quote that is never closed does not hide what follows
        assert conditions(text, "word") == ["X"]
    else:
        assert conditions(text, "word") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#if 0\nword\n#endif", True),
        ("#if 1\n#else\nword\n#endif", True),
        ("#if 1\nword\n#endif", False),
        ("#if 0\n#else\nword\n#endif", False),
        ("#if X\nword\n#endif", False),
        ("#ifdef __CUDA_ARCH__\nword\n#endif", True),
        ("#ifdef __CUDA_ARCH__\n#else\nword\n#endif", False),
        ("#ifndef __CUDA_ARCH__\nword\n#endif", False),
        ("#ifndef __HIP_DEVICE_COMPILE__\n#else\nword\n#endif", True),
        ("#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800\nword\n#endif", True),
        ("#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800\n#else\nword\n#endif", False),
        ("#if defined(X) || defined(__CUDA_ARCH__)\nword\n#endif", False),
        ("#if __CUDA_ARCH__ >= 800\nword\n#endif", True),
        ("#if __CUDA_ARCH__ < 800\nword\n#endif", False),
        ("#if __CUDA_ARCH__ >= 800 || X\nword\n#endif", False),
        ("#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800\n#else\nword\n#endif", True),
        ("#if (!defined(__CUDA_ARCH__) || X) && Y\n#else\nword\n#endif", False),
        ("#ifdef __CUDACC__\nword\n#endif", False),
    ],
)
def test_text_that_is_never_compiled(text: str, expected: bool) -> None:
    assert is_dead(read_directives(text).conditions(text.index("word"))) is expected


def test_macros() -> None:
    text = "#define N 16 // sixteen\n#define EMPTY\n#define F(a, b) a + \\\n  b\n#define G (x)\n#define H(...) f(__VA_ARGS__)\n"
    assert [(item.name, item.parameters, item.body) for item in read_directives(text).macros] == [
        ("N", None, "16"),
        ("EMPTY", None, ""),
        ("F", ("a", "b"), "a +   b"),
        ("G", None, "(x)"),
        ("H", ("...",), "f(__VA_ARGS__)"),
    ]
    assert text[slice(*read_directives(text).macros[0].span)] == "#define N 16 // sixteen"


def test_a_macro_that_is_defined_differently_is_no_known_one() -> None:
    read = read_directives("#define A 1\n#define B 1\n#define A 2\n#define B 1\n")
    assert set(read.defined) == {"B"}


DEFINED = """
#define N 64
#define STRING_(s) #s
#define STRING(x) STRING_(x)
#define CONCAT(a, b) a ## b
#define LOUD(name, ...) call(name, ## __VA_ARGS__)
#define OP(bits) m.def("pack_" #bits "bit(Tensor x) -> Tensor"); m.impl("pack_" #bits "bit", &pack<bits>)
#define LOOP LOOP + 1
#define A B
#define B A
#define NAME(x) PART ## x
#define PART2(x) <x>
#define NOTHING
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("N", "64"),
        ("NN", "NN"),
        ('"N"', '"N"'),
        ("STRING_(N)", '"N"'),
        ("STRING(N)", '"64"'),
        ('STRING_("a\\n")', '"\\"a\\\\n\\""'),
        ("CONCAT(_C, _ascend)", "_C_ascend"),
        ("CONCAT(N, N)", "NN"),
        ("LOUD(a, b, c)", "call(a, b, c)"),
        ("OP(3)", 'm.def("pack_" "3" "bit(Tensor x) -> Tensor"); m.impl("pack_" "3" "bit", &pack<3>)'),
        ("LOOP", "LOOP + 1"),
        ("A", "A"),
        ("STRING without", "STRING without"),
        ("NAME(2)(a)", "<a>"),
        ("NAME(2) (a), NAME(2)", "<a>, PART2"),
        ("NAME(3)(N)", "PART3(64)"),
        ("PART2 NOTHING (a)", "PART2  (a)"),
        ("STRING(f(a, b))", None),
        ("CONCAT(1)", None),
        ("STRING(", "STRING("),
        ("N + 1'000 + N + 2'000", "64 + 1'000 + 64 + 2'000"),
        ("'N' + u8'N' + N", "'N' + u8'N' + 64"),
        ('R"(N ")" + N', 'R"(N ")" + 64'),
        ("N /* N */ // N", "64    "),
    ],
)
def test_expansion(text: str, expected: str | None) -> None:
    macros = read_directives(DEFINED).defined
    if expected is None and "f(a" not in text:
        with pytest.raises(ExpansionError):
            expand(text, macros)
    else:
        assert expand(text, macros) == (expected or '"f(a, b)"')


DOUBLING = {f"L{n}": Macro(f"L{n}", None, f"L{n + 1} L{n + 1}", Span(0, 0)) for n in range(60)}
TWICE = {"A": Macro("A", ("x",), "x x", Span(0, 0))}


@pytest.mark.parametrize(
    ("text", "macros"),
    [("L0", DOUBLING), ("A(" * 5_000 + ")" * 5_000, TWICE), ("A(A(A(" * 3_000, TWICE)],
    ids=["doubling", "nested", "open"],
)
def test_an_expansion_that_would_not_end(text: str, macros: dict[str, Macro]) -> None:
    with pytest.raises(ExpansionError, match="too much"):
        expand(text, macros)


HOSTILE = {
    "open strings": '"a\\' * 100_000,
    "open raw strings": 'R"(' * 100_000,
    "open comments": "/*" * 100_000,
    "quotes": "'" * 100_000,
    "conditions in each other": "#if X\n" * 50_000,
    "a long chain": "#if X\n" + "#elif Y\n" * 20_000,
    "branches in deep conditions": "#if X\n" * 50 + "#if A\n#endif\n" * 10_000,
    "continuations": "\\\n" * 100_000,
    "defines that go on": "#define X \\\n" * 30_000,
    "defines of comments": "#define X /*\n" * 30_000,
    "brackets": "#if " + "(&&" * 30_000,
    "negations": "#if " + "!" * 30_000,
    "defined": "#if " + "defined " * 30_000,
    "spaces": "#ifdef " + " " * 30_000 + "\n#define " + " " * 30_000 + "(",
    "tabs before": "\t" * 30_000 + "#x",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_read_in_linear_time(name: str) -> None:
    start = time.process_time()
    read_directives(HOSTILE[name]).conditions(len(HOSTILE[name]))
    assert time.process_time() - start < 3
