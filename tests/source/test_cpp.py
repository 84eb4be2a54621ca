"""C++ trees: nodes and their places, errors, strings, and texts that would kill or stall a parser."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from opschema_cli.file_kinds import is_cpp
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source import cpp
from opschema_cli.source.cpp import CppError, CppNode, CppTree, CppUnavailableError, literal, parse_cpp
from opschema_cli.source.cpp_strings import Literal, Run
from opschema_cli.source.text import Span
from opschema_cli.workspace import Workspace


def nodes(tree: CppTree, kind: str) -> list[CppNode]:
    return [node for node in tree.root.walk() if node.kind == kind]


def texts(tree: CppTree, kind: str) -> list[str]:
    return [node.text for node in nodes(tree, kind)]


def test_calls_with_their_receivers_in_order() -> None:
    tree = parse_cpp("void f() { p.add_input(a, b); q->reset(); rt::submit(1, p); { MixedKernels m = {1, 2}; } }")
    calls = nodes(tree, "call_expression")
    functions = [call.field("function") for call in calls]
    assert [item.text for item in functions if item] == ["p.add_input", "q->reset", "rt::submit"]
    first = functions[0]
    assert first is not None
    assert [part.text for part in (first.field("argument"), first.field("field")) if part] == ["p", "add_input"]
    arguments = calls[0].field("arguments")
    assert arguments is not None
    assert [item.text for item in arguments.children] == ["a", "b"]
    assert texts(tree, "initializer_list") == ["{1, 2}"]


def test_blocks_and_branches_stand_around_what_they_hold() -> None:
    tree = parse_cpp("void f() { if (first) { a(); } else { b(); } for (int i = 0; i < n; i++) c(); }")
    around = {}
    for call in nodes(tree, "call_expression"):
        kinds = [node.kind for node in call.ancestors]
        around[call.text] = [kind for kind in kinds if kind in ("if_statement", "else_clause", "for_statement")]
    assert around == {"a()": ["if_statement"], "b()": ["else_clause", "if_statement"], "c()": ["for_statement"]}
    branch = nodes(tree, "if_statement")[0]
    parts = [branch.field(name) for name in ("condition", "consequence", "alternative")]
    assert [part.text for part in parts if part] == ["(first)", "{ a(); }", "else { b(); }"]


def test_nodes_are_the_same_however_they_are_reached() -> None:
    tree = parse_cpp("int f() { return g(1); }")
    call = nodes(tree, "call_expression")[0]
    other = nodes(tree, "return_statement")[0].children[0]
    assert call == other
    assert hash(call) == hash(other)
    assert call != other.children[0]
    assert call != nodes(parse_cpp("int f() { return g(1); }"), "call_expression")[0]


@pytest.mark.parametrize(
    "text",
    [
        'int x; /* é変数𝄞 */ auto s = "é𝄞" "変"; f(y);',
        'int x; /* é */\r\nauto s = "é𝄞" "変";\r\nf(y);\r\n',
        'auto é𝄞 = "é𝄞"; /*\u202e*/ f(y);',
        'auto s = "\ud800é"; f(y);',
    ],
)
def test_places_count_characters(text: str) -> None:
    tree = parse_cpp(text)
    assert texts(tree, "call_expression") == ["f(y)"]
    assert all(text[slice(*node.span)] == node.text for node in tree.root.walk())
    assert nodes(tree, "call_expression")[0].span.start == text.index("f(y)")
    written = nodes(tree, "string_literal")[0]
    assert written.text == text[text.index('"') : text.index('"', text.index('"') + 1) + 1]


def test_a_byte_order_mark_is_no_character(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_bytes("\ufeffint é = f(1);".encode())
    tree = Project(Workspace(tmp_path)).cpp("a.cpp")
    assert tree is not None
    assert nodes(tree, "call_expression")[0].span == Span(8, 12)


def test_a_text_with_errors_is_read_and_says_so() -> None:
    tree = parse_cpp("void f() { a(1; b(2); } {% if x %} int y = ;\nvoid g() { c(3); }")
    assert "c(3)" in texts(tree, "call_expression")
    assert tree.errors
    assert all(error.is_error for error in tree.errors)
    assert parse_cpp("void f() { kernel(1); }").errors == ()


def test_comments() -> None:
    tree = parse_cpp('/* a */ int x; // b\nconst char* s = "// c";\nvoid f(/* d */ int y) {}')
    assert [item.text for item in tree.comments] == ["/* a */", "// b", "/* d */"]
    assert all(node.kind != "comment" for node in tree.root.walk())


def test_branches_of_the_preprocessor_are_told_apart() -> None:
    tree = parse_cpp("void f() {\n#ifdef A\n a();\n#else\n b();\n#endif\n c();\n}")
    found = {node.text: [str(item) for item in tree.conditions(node)] for node in nodes(tree, "call_expression")}
    assert found == {"a()": ["defined(A)"], "b()": ["!(defined(A))"], "c()": []}


def test_skipped_nodes_are_told_but_not_entered() -> None:
    tree = parse_cpp("void f() { a(b(1)); }")
    found = [node.text for node in tree.root.walk(lambda node: node.kind == "call_expression")]
    assert "a(b(1))" in found
    assert "b(1)" not in found


# Strings


def value(code: str) -> str | None:
    tree = parse_cpp(f"auto x = {code};")
    declarator = nodes(tree, "init_declarator")[0].field("value")
    found = literal(declarator) if declarator is not None and declarator.text == code else None
    return found.value if found is not None else None


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('"a"', "a"),
        ('""', ""),
        ('"a" "b"\n  "c"', "abc"),
        ('"a" /* " */ "b" // "\n "c"', "abc"),
        (r'"\n\t\"\\\'\?\a"', "\n\t\"\\'?\a"),
        (r'"\101\x42\u0043\U00000044\0"', "ABCD\0"),
        ('"a\\\nb"', "ab"),
        ('"a\\\r\nb"', "ab"),
        ('R"(a\\n"b)"', 'a\\n"b'),
        ('R"x(a)" b)x"', 'a)" b'),
        ('u8"a" L"b" u8R"(c)"', "abc"),
        ('"é𝄞"', "é𝄞"),
        (r'"\x110000"', None),
        (r'"\ud800"', None),
        (r'"\q"', None),
        ('"a"_s', None),
        ("'a'", None),
        ("1", None),
        ("name", None),
        ('"a" NAME "b"', None),
        ('NAME "b"', None),
    ],
)
def test_values_of_strings(code: str, expected: str | None) -> None:
    assert value(code) == expected


def test_where_the_characters_of_a_value_are_written() -> None:
    text = 'auto é = "ab\\n" "c" R"(d)";'
    node = next(node for node in parse_cpp(text).root.walk() if node.kind == "concatenated_string")
    found = literal(node)
    assert found is not None
    assert found.value == "ab\ncd"
    written = [text[slice(*found.span(Span(at, at + 1)))] for at in range(5)]
    assert written == ["a", "b", "\\n", "c", "d"]
    assert text[slice(*found.span(Span(1, 4)))] == 'b\\n" "c'
    assert text[slice(*found.span(Span(0, 5)))] == 'ab\\n" "c" R"(d'
    assert found.span(Span(0, 0)) == Span(text.index("a", 9), text.index("a", 9))
    assert found.span(Span(5, 5)).start == text.index(")")
    assert Literal("", (Run(0, Span(4, 4)),)).span(Span(0, 0)) == Span(4, 4)


# Hostile texts

REFUSED = {
    "five million brackets": ("(" * 5_000_000, "up to 1,000,000 are parsed"),
    "a million brackets": ("(" * 900_000, "deeper than 500"),
    "calls in calls": ("int x = " + "f(" * 900, "deeper than 500"),
    "blocks": ("{" * 100_000, "deeper than 500"),
    "templates": ("A<" * 150_000, "too long to parse"),
    "noise": ("&*]>" * 40_000, "too long to parse"),
}
READ = {
    "negations": "int x = " + "!" * 100_000 + "1;",
    "pointers": "int " + "*" * 100_000 + "x;",
    "else if": "void f() { " + "if (a) b(); else " * 5_000 + "c(); }",
    "conditions": "#if X\n" * 20_000,
    "sums": "int x = 1" + "+1" * 50_000 + ";",
    "namespaces": "namespace a::" + "b::" * 20_000 + "c {}",
    "open string": '"' + "a\\" * 100_000,
    "comparisons": "bool x = " + "a < b > c " * 300 + ";",
    "casts": "int x = " + "(a)" * 30_000 + ";",
}


@pytest.mark.parametrize("name", REFUSED)
def test_texts_that_are_refused(name: str) -> None:
    text, reason = REFUSED[name]
    start = time.thread_time()
    with pytest.raises(CppError, match=reason) as caught:
        parse_cpp(text)
    assert 0 <= caught.value.span.start <= len(text)
    assert time.thread_time() - start < 8


@pytest.mark.parametrize("name", READ)
def test_deep_trees_are_walked_without_recursion(name: str) -> None:
    tree = parse_cpp(READ[name])
    depths = [sum(1 for _ in node.ancestors) for node in list(tree.root.walk())[-3:]]
    assert min(depths) >= 1
    assert isinstance(tree.errors, tuple)
    assert tree.comments == ()


# In a project


def project(root: Path, **files: str) -> Project:
    for name, text in files.items():
        (root / name.replace("__", ".")).write_text(text)
    return Project(Workspace(root))


def test_what_is_not_read_is_one_diagnostic(tmp_path: Path) -> None:
    mine = project(tmp_path, good__cpp="int x = ;", deep__cu="(" * 1000)
    assert mine.cpp("good.cpp") is not None
    assert mine.cpp("deep.cu") is mine.cpp("deep.cu") is mine.cpp("missing.h") is None
    assert sorted((item.code, item.place.path, item.message) for item in mine.problems.values()) == [
        ("OPS101", "missing.h", "this file cannot be read: it does not exist"),
        ("OPS103", "deep.cu", "this C++ is not read: its brackets nest deeper than 500 levels"),
    ]


@pytest.mark.usefixtures("no_cpp")
def test_without_the_grammar_every_file_that_was_asked_for_is_missing(tmp_path: Path) -> None:
    with pytest.raises(
        CppUnavailableError, match="C\\+\\+ is not read, as `tree_sitter_cpp` cannot be imported"
    ) as caught:
        parse_cpp("int x;")
    assert caught.value.hint == "install it: pip install opschema-cli"
    mine = project(tmp_path, a__cpp="int x;", b__cpp="int x;")
    assert mine.cpp("a.cpp") is mine.cpp("b.cpp") is None
    assert mine.cpp_readings(CALLS, ["b.cpp"]) == {}
    assert [(item.need, item.files, item.module) for item in mine.missing] == [
        ("c++", ("a.cpp",), "tree_sitter_cpp"),
        ("c++", ("b.cpp",), "tree_sitter_cpp"),
        ("c++", ("b.cpp",), "tree_sitter_cpp"),
    ]
    assert mine.problems == {}, "it is of the run, not of a file"


def test_a_grammar_that_does_not_fit_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    import tree_sitter_cpp

    monkeypatch.setattr(tree_sitter_cpp, "language", lambda: "none")
    cpp._language.cache_clear()
    try:
        with pytest.raises(CppUnavailableError, match="`tree_sitter` and `tree_sitter_cpp` do not fit together"):
            parse_cpp("int x;")
    finally:
        cpp._language.cache_clear()


class Calls(msgspec.Struct):
    names: list[str]


def called(tree: CppTree) -> Calls:
    return Calls([node.text for node in nodes(tree, "call_expression")])


CALLS = Reading("calls of a test", called, Calls)


def test_readings_of_files(tmp_path: Path) -> None:
    mine = project(tmp_path, a__cpp="int x = f(1);", b__cpp="int x = g(1);", deep__cpp="(" * 1000)
    found = mine.cpp_readings(CALLS, ["a.cpp", "b.cpp", "deep.cpp"])
    assert found == {"a.cpp": Calls(["f(1)"]), "b.cpp": Calls(["g(1)"])}
    other = mine.with_overlay({"a.cpp": "int x = h(1);"})
    assert other.cpp_readings(CALLS, ["a.cpp"]) == {"a.cpp": Calls(["h(1)"])}


def test_names_of_files() -> None:
    names = ["a.cpp", "a.cc", "a.cxx", "a.cu", "a.cuh", "a.h", "a.hpp", "a.hip", "a.mm"]
    assert [name for name in [*names, "a.py", "cpp", "a.cpp.j2", "a.rs"] if is_cpp(name)] == names
