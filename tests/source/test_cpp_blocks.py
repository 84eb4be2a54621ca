"""Blocks of macros and calls in them."""

from __future__ import annotations

import re

import pytest

from opschema_cli.source.cpp import CppNode, parse_cpp
from opschema_cli.source.cpp_blocks import arguments_of, errors_in, links_of, macro_block, owner_of, receivers

pytest.importorskip("tree_sitter_cpp")


def first(text: str, kind: str, word: str = "") -> CppNode:
    """The first node of a kind that begins with a word."""
    return next(
        item for item in parse_cpp(text).root.walk() if item.kind == kind and item.text.startswith(word or item.text)
    )


@pytest.mark.parametrize(
    ("text", "arguments", "has_body"),
    [
        ("MODULE(kit, m) { m.def(1); }", ("kit", "m"), True),
        ("MODULE(kit<a, b>, m) { m.def(1); }", ("kit<a", "b>", "m"), True),
        ("MODULE( f(a, b) ,\n m ) { m.def(1); }", ("f(a, b)", "m"), True),
        ("MODULE(kit, m);", ("kit", "m"), False),
        ("void f() { MODULE(kit, m) { m.def(1); } }", ("kit", "m"), True),
    ],
)
def test_blocks(text: str, arguments: tuple[str, ...], has_body: bool) -> None:
    tree = parse_cpp(text)
    name = next(item for item in tree.root.walk() if item.text == "MODULE")
    block = macro_block(name)
    assert block is not None
    assert block.arguments == arguments
    assert [tree.text[start:end] for start, end in block.places] == list(arguments)
    assert (block.body is not None) is has_body


def test_a_macro_without_arguments_opens_no_block() -> None:
    assert macro_block(first("int MODULE = 1;", "identifier", "MODULE")) is None


def test_functions_that_are_given_a_variable() -> None:
    declarator = first("void kit::fill(int n, py::module_ &m, module* k) { }", "function_declarator")
    found = list(receivers(declarator, re.compile(r"(?:py::)?module_?")))
    assert [(item.name.text, item.type, item.variable) for item in found] == [
        ("kit::fill", "py::module_", "m"),
        ("kit::fill", "module", "k"),
    ]


def test_chains() -> None:
    call = first('void f() { m.def("a", 1).impl("b", 2); }', "call_expression")
    links = links_of(call, "m")
    assert links is not None
    assert [(method, [item.text for item in arguments_of(node)]) for method, node in links] == [
        ("def", ['"a"', "1"]),
        ("impl", ['"b"', "2"]),
    ]
    assert links_of(call, "k") is None
    owner = owner_of(call)
    assert owner is not None
    assert owner.text == 'm.def("a", 1)'


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("void f() { m.def(1); }", []),
        ("void f() { m.def(1); @ }", ["@"]),
        ("void f() { m.def([] { return @; }); }", []),
    ],
)
def test_errors_outside_of_lambdas(text: str, errors: list[str]) -> None:
    root = parse_cpp(text).root
    assert root.has_error is ("@" in text)
    assert [text[start:end] for start, end in errors_in(root)] == errors
