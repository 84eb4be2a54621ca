"""Syntax of blocks that register operators."""

from __future__ import annotations

import re
import string

from opschema_cli.source.cpp import CppNode
from opschema_cli.source.text import Span
from opschema_rules.torchlib.cpp_facts import CppArgument, CppCall

SHALLOW = frozenset(
    {"translation_unit", "namespace_definition", "declaration_list", "linkage_specification", "ERROR"}
    | {"preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef"}
)
BRANCHES = frozenset(
    {"if_statement", "for_statement", "for_range_loop", "while_statement", "do_statement", "switch_statement"}
    | {"conditional_expression", "try_statement", "catch_clause"}
)

STRINGS = ("string_literal", "raw_string_literal")
WRAPPER = re.compile(r"TORCH_SELECTIVE_(?:SCHEMA|NAME)|(?:(?:torch|c10)::)?schema")


def is_function(node: CppNode) -> bool:
    """Whether a node is a function in the midst of an expression."""
    return node.kind == "lambda_expression"


def as_raw(call: CppCall, text: str) -> CppCall:
    """A call that goes on where its tree does not."""
    arguments = tuple(CppArgument(item.text, item.span, item.literal, True) for item in call.arguments)
    return CppCall(call.method, call.span, arguments, call.conditions, call.branch, text.strip().rstrip(";"))


def inside(span: Span, others: list[Span]) -> bool:
    """Whether a span lies in one of others."""
    return any(start <= span.start and span.end <= end for start, end in others)


def around(node: CppNode) -> str:
    """The C++ namespace around a node; that of an unnamed one is the one around it."""
    named = (item.field("name") for item in node.ancestors if item.kind == "namespace_definition")
    return "::".join(reversed([re.sub(r"\s+", "", name.text) for name in named if name is not None]))


def initial(kind: CppNode) -> CppNode | None:
    """The arguments in ``T r("ns::name", &f);``, whose type is ``kind``."""
    declaration = kind.parent
    declarator = declaration.field("declarator") if declaration is not None else None
    value = declarator.field("value") if declarator is not None and declarator.kind == "init_declarator" else None
    of_type = declaration is not None and declaration.kind == "declaration" and declaration.field("type") == kind
    return value if of_type and value is not None and value.kind == "argument_list" else None


def callee(call: CppNode) -> str:
    """The callee of a call, as written."""
    function = call.field("function")
    return function.text if function is not None else ""


def links_of(call: CppNode, receiver: str) -> list[tuple[str, CppNode]] | None:
    """The calls in a chain ``m.def(...).impl(...)`` on a library, the first one first, each with its method; None of other calls.

    What ``m.class_<T>(...)`` gives is not a library.
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
    """Whether a call is of a name and a statement of its own, so that it may be of a macro, or pass the library on."""
    function = call.field("function")
    named = function is not None and function.kind in ("identifier", "qualified_identifier")
    return named and call.parent is not None and call.parent.kind in ("expression_statement", "ERROR")


def head_and_body(name: CppNode) -> tuple[CppNode | None, CppNode | None]:
    """The node that holds the arguments of a macro, and the block behind it."""
    head = name.parent
    if head is None:
        return None, None
    if head.kind == "function_declarator":
        above = head.parent
        return head, above.field("body") if above is not None and above.kind == "function_definition" else None
    statement = head.parent
    if head.kind != "call_expression" or statement is None or statement.parent is None:
        return None, None
    around = statement.parent.children
    at = around.index(statement) + 1
    follows = at < len(around) and around[at].kind == "compound_statement"
    return head, around[at] if follows else None


def names_of(parameters: CppNode) -> list[str]:
    """The names of a function's parameters, empty where one has none."""
    found = (item.field("declarator") for item in parameters.children)
    return [_last_word(item.text) if item is not None else "" for item in found]


def _last_word(text: str) -> str:
    return text[len(text.rstrip(_LETTERS)) :]


_LETTERS = f"{string.ascii_letters}{string.digits}_"

HEAD = re.compile(r"\s*\(((?:[^(){};]|\([^(){};]*\)|\{\{[^{}]*\}\})*)\)")


def split(inner: str) -> list[str]:
    """The arguments of a macro, which need be no C++."""
    found, depth = [""], 0
    for character in inner:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [item.strip() for item in found]


def is_mentioned(name: CppNode) -> bool:
    """Whether a name is only spoken of: the macro of a ``#define`` or ``#undef``, or of a condition."""
    return any(node.kind.startswith("preproc_") and node.kind not in SHALLOW for node in name.ancestors) or (
        name.parent is not None
        and name.parent.kind in ("preproc_ifdef", "preproc_defined", "preproc_if", "preproc_elif")
    )
