"""Blocks that a macro opens with a variable, such as ``PYBIND11_MODULE(name, m) { m.def(...); }``, functions that take such a
variable, and calls on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from opschema_cli.source import pieces
from opschema_cli.source.cpp import CppNode
from opschema_cli.source.text import Span

SHALLOW = frozenset(
    {"translation_unit", "namespace_definition", "declaration_list", "linkage_specification", "ERROR"}
    | {"preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef"}
)
"""Node kinds around blocks and functions at the top level of a file."""

BRANCHES = frozenset(
    {"if_statement", "for_statement", "for_range_loop", "while_statement", "do_statement", "switch_statement"}
    | {"conditional_expression", "try_statement", "catch_clause"}
)
"""Statements and expressions that may not run the calls in them, or may run them several times."""

STRINGS = ("string_literal", "raw_string_literal")
"""String literal kinds."""


class MacroBlock(NamedTuple):
    """A block: the written arguments of its macro and their places; the macro with its arguments; the node that contains them,
    and the body. Each node is None if it is not understood.
    """

    arguments: tuple[str, ...]
    places: tuple[Span, ...]
    span: Span
    head: CppNode | None
    body: CppNode | None


class Receiver(NamedTuple):
    """A function with a parameter of a certain type: its name, all parameters, that parameter's type and name, and the body."""

    name: CppNode
    parameters: CppNode
    type: str
    variable: str
    body: CppNode


def macro_block(name: CppNode) -> MacroBlock | None:
    """Return the block that a macro opens; None if its arguments are not understood."""
    written = _HEAD.match(name.tree.text, name.span.end)
    found = pieces.arguments(written[1], written.start(1)) if written is not None else None
    if written is None or found is None:
        return None
    found = found or [pieces.Piece("", Span(written.end(1), written.end(1)))]
    arguments, places = tuple(item.text for item in found), tuple(item.span for item in found)
    return MacroBlock(arguments, places, Span(name.span.start, written.end()), *_head_and_body(name))


def receivers(declarator: CppNode, type_: re.Pattern[str]) -> Iterator[Receiver]:
    """Yield the parameters of a type in a function definition, given its declarator."""
    parameters, name = declarator.field("parameters"), declarator.field("declarator")
    body = declarator.parent.field("body") if declarator.parent is not None else None
    if parameters is None or name is None or body is None:
        return
    for parameter in parameters.children:
        kind, variable = parameter.field("type"), parameter.field("declarator")
        if kind is not None and variable is not None and type_.fullmatch(kind.text):
            yield Receiver(name, parameters, kind.text, variable.text.lstrip("*& "), body)


def names_of(parameters: CppNode) -> list[str]:
    """Return the names of a function's parameters; empty for unnamed ones."""
    found = (item.field("declarator") for item in parameters.children)
    return [_NOT_WORD.split(item.text)[-1] if item is not None else "" for item in found]


_NOT_WORD = re.compile(r"\W+")


def errors_in(node: CppNode) -> list[Span]:
    """Return the places in a node that are not understood, outside of functions in it."""
    if not node.has_error:
        return []
    start, end = node.span
    functions = [item.span for item in node.walk(is_function) if is_function(item)]
    errors = [item.span for item in node.tree.errors]
    return [item for item in errors if start <= item.start <= end and not inside(item, functions)]


def is_function(node: CppNode) -> bool:
    """Whether a node is a function inside an expression."""
    return node.kind == "lambda_expression"


def inside(span: Span, others: list[Span]) -> bool:
    """Whether a span is inside one of several others."""
    return any(start <= span.start and span.end <= end for start, end in others)


def around(node: CppNode) -> str:
    """Return the C++ namespace around a node; for an unnamed namespace, the enclosing one."""
    named = (item.field("name") for item in node.ancestors if item.kind == "namespace_definition")
    return "::".join(reversed([re.sub(r"\s+", "", name.text) for name in named if name is not None]))


def callee(call: CppNode) -> str:
    """Return the callee of a call, as written."""
    function = call.field("function")
    return function.text if function is not None else ""


def arguments_of(call: CppNode) -> list[CppNode]:
    """Return the arguments of a call."""
    arguments = call.field("arguments")
    return arguments.children if arguments is not None else []


def owner_of(call: CppNode) -> CppNode | None:
    """Return the object whose method a call calls; None for a function."""
    function = call.field("function")
    return function.field("argument") if function is not None and function.kind == "field_expression" else None


def links_of(call: CppNode, receiver: str) -> list[tuple[str, CppNode]] | None:
    """Return the calls in a chain ``m.def(...).def(...)`` on a variable, first one first, each with its method; None for other
    calls.

    Calls on what ``m.class_<T>(...)`` returns are left out.
    """
    links: list[tuple[str, CppNode]] = []
    node: CppNode | None = call
    while node is not None and node.kind == "call_expression":
        function = node.field("function")
        method = function.field("field") if function is not None and function.kind == "field_expression" else None
        if function is None or method is None:
            return None
        if method.kind == "template_method":
            links.clear()
        else:
            links.append((method.text, node))
        node = function.field("argument")
    return links[::-1] if node is not None and node.kind == "identifier" and node.text == receiver else None


def is_plain_call(call: CppNode) -> bool:
    """Whether a call calls a plain name and is its own statement, so that it may be a macro or pass a variable on."""
    function = call.field("function")
    named = function is not None and function.kind in ("identifier", "qualified_identifier")
    return named and call.parent is not None and call.parent.kind in ("expression_statement", "ERROR")


def _head_and_body(name: CppNode) -> tuple[CppNode | None, CppNode | None]:
    """Return the node with the arguments of a macro, and the block after it."""
    head = name.parent
    statement = head.parent if head is not None else None
    if head is not None and head.kind == "function_declarator":
        is_definition = statement is not None and statement.kind == "function_definition"
        return head, statement.field("body") if statement is not None and is_definition else None
    if head is None or head.kind != "call_expression" or statement is None or statement.parent is None:
        return None, None
    siblings = statement.parent.children
    at = siblings.index(statement) + 1
    follows = at < len(siblings) and siblings[at].kind == "compound_statement"
    return head, siblings[at] if follows else None


_HEAD = re.compile(r"\s*\(((?:[^(){};]|\([^(){};]*\)|\{\{[^{}]*\}\})*)\)")


def is_mentioned(name: CppNode) -> bool:
    """Whether a name is only mentioned: as the macro of a ``#define``, ``#undef`` or condition."""
    return any(node.kind.startswith("preproc_") and node.kind not in SHALLOW for node in name.ancestors) or (
        name.parent is not None
        and name.parent.kind in ("preproc_ifdef", "preproc_defined", "preproc_if", "preproc_elif")
    )
