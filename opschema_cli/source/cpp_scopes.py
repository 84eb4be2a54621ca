"""Names that a block of C++ declares, and which of them a part of it needs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Set

import msgspec

from opschema_cli.source.cpp import CppNode
from opschema_cli.source.cpp_blocks import is_function
from opschema_cli.source.text import Span

_HOLDERS = frozenset(
    {"declaration", "init_declarator", "for_range_loop", "type_definition"}
    | {"parameter_declaration", "optional_parameter_declaration"}
)
"""Kinds of nodes whose declarators hold the names that they declare."""

_NAMED = frozenset({"alias_declaration", "namespace_alias_definition", "enumerator"})
_TYPES = frozenset({"class_specifier", "struct_specifier", "union_specifier", "enum_specifier"})
_TEMPLATE_TYPES = frozenset(
    {"type_parameter_declaration", "optional_type_parameter_declaration", "variadic_type_parameter_declaration"}
)
_SCOPES = frozenset(
    {
        "compound_statement",
        "field_declaration_list",
        "parameter_list",
        "if_statement",
        "for_statement",
        "for_range_loop",
    }
    | {"while_statement", "switch_statement", "catch_clause"}
)
_NAMES = ("identifier", "type_identifier", "namespace_identifier")
_PARTS_OF_NAMES = ("qualified_identifier", "template_type", "template_function", "dependent_name")
_BROUGHT = re.compile(r"\w+(?=\s*[,;])")
_DIRECTIVE = re.compile(r"using\s+namespace\b(?!.*\bliterals\s*;)", re.DOTALL)
_ANY_DIRECTIVE = re.compile(r"using\s+namespace\b")
_POINTER = re.compile(r"\(\s*\*\s*(\w+)\s*\)\s*\(")
"""A pointer to a function in what the parser takes for an assignment: ``T (*f)(T) = &g``."""


class Needed(msgspec.Struct, frozen=True):
    """The names that a part of a block needs: those that the block declares, and those that a using-directive in it may bring."""

    declared: frozenset[str] = frozenset()
    brought: frozenset[str] = frozenset()


class _Scope(msgspec.Struct):
    """The names that a scope declares, and whether it brings those of a namespace."""

    names: list[str]
    brings: bool = False


def declared_in(node: CppNode) -> Iterator[str]:
    """Yield the names that a block, or the parameters of a function or template, declare, apart from those in functions inside
    expressions.
    """
    return (name for item in node.walk(is_function) for name in _declared_by(item))


def names_needed(block: CppNode, parts: Set[Span], outer: Iterable[str]) -> Iterator[tuple[Span, Needed]]:
    """Yield what each part of a block needs of it, in order. Names that are declared after a part do not count.

    Args:
        block: the block.
        parts: the places of expressions in it, which do not overlap.
        outer: names that are declared for it: the parameters of its function.
    """
    scopes = [_Scope(list(outer))]
    known = Counter(scopes[0].names)
    waiting: list[CppNode | None] = [block]
    while waiting:
        node = waiting.pop()
        if node is None:
            known.subtract(scopes.pop().names)
        elif node.span in parts:
            yield node.span, _needed(node, known, any(scope.brings for scope in scopes))
        else:
            if node.kind in _SCOPES:
                waiting.append(None)
                scopes.append(_Scope([]))
            names = list(_declared_by(node))
            known.update(names)
            scopes[-1].names += names
            scopes[-1].brings |= node.kind == "using_declaration" and _DIRECTIVE.match(node.text) is not None
            waiting += reversed(node.children if not is_function(node) else [])


def _needed(part: CppNode, known: Counter[str], brings: bool) -> Needed:
    own = {name for item in part.walk() for name in _declared_by(item)}
    names = {item.text for item in part.walk() if item.kind in _NAMES and not _is_qualified(item)} - own
    return Needed(frozenset(name for name in names if known[name]), frozenset(names if brings else ()))


def _is_qualified(name: CppNode) -> bool:
    """Whether a name is looked up in what is before it: ``b`` and ``c`` of ``a::b::c``."""
    start, node = name.span.start, name.parent
    while node is not None and node.kind in _PARTS_OF_NAMES:
        if node.span.start < start:
            return True
        node = node.parent
    return False


def _declared_by(node: CppNode) -> Iterator[str]:
    """Yield the names that one node declares, without those that its descendants declare."""
    kind = node.kind
    if kind == "using_declaration":
        yield from _BROUGHT.findall(node.text) if not _ANY_DIRECTIVE.match(node.text) else ()
    elif kind == "assignment_expression":
        left = node.field("left")
        yield from _POINTER.findall(left.text) if left is not None and left.kind == "call_expression" else ()
    elif kind in _HOLDERS:
        names = (name for one in node.fields("declarator") for name in one.walk(_declares_others))
        yield from (name.text for name in names if name.kind in ("identifier", "type_identifier"))
    elif kind in _TEMPLATE_TYPES:
        yield from (item.text for item in node.children[:1] if item.kind == "type_identifier")
    else:
        yield from _own_name(node)


def _own_name(node: CppNode) -> Iterator[str]:
    """Yield the name of a type, a namespace or a value of an enumeration that a node declares."""
    name = node.field("name") if node.kind in _NAMED or (node.kind in _TYPES and node.field("body")) else None
    if name is not None:
        yield name.text


def _declares_others(node: CppNode) -> bool:
    return node.kind in ("init_declarator", "parameter_list")
