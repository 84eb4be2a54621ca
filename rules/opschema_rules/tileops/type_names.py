"""Names in type expressions that no type has: misspelt ones, and functions of Python."""

from __future__ import annotations

import ast
import builtins
import collections.abc
import numbers
import types
import typing
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from opschema_cli.schema.expression import ExpressionSyntaxError, parse_expression
from opschema_cli.source.text import Span

_TORCH = frozenset({"Tensor", "dtype", "device", "Size", "Generator"})
_TYPING = frozenset({*typing.__all__, *collections.abc.__all__, *numbers.__all__})
_BUILTIN_TYPES = frozenset(name for name, value in vars(builtins).items() if isinstance(value, type))
_FUNCTIONS = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, types.BuiltinFunctionType) and name[0] != "_"
)
_KNOWN = _TYPING | _TORCH | _BUILTIN_TYPES

_MEANT = (
    *("int", "float", "bool", "str", "list", "tuple", "dict", "set", "frozenset", "complex", "bytes", "object"),
    *("None", "Any", "Optional", "Union", "Literal", "Callable", "Sequence", "Iterable", "Mapping", "Number"),
    *("dtype", "Tensor"),
)
"""Likely meanings of a misspelt name in the type of a param, the likeliest first."""

_MODULES = {"torch": _TORCH, "typing": frozenset(typing.__all__)}
"""Modules whose types are known, so that a misspelt attribute of them is recognized."""

_SHORT = 3
"""Names of up to this length resemble others by chance, so a missing letter does not count as a misspelling of them; for names
that are one letter longer, neither does a replaced letter.
"""


class WrongName(msgspec.Struct, frozen=True):
    """A name that is not a type, its place in the text, and the probable meaning.

    ``free`` says that the op's module could give it a meaning.
    """

    name: str
    span: Span
    meant: str
    free: bool


@lru_cache(maxsize=1024)
def wrong_names(text: str) -> tuple[WrongName, ...]:
    """Return the names in a type expression that are not types of Python or torch but similar to one."""
    try:
        expression = parse_expression(text)
    except ExpressionSyntaxError:
        return ()
    found = ((node, _wrong(node)) for node in _names(expression.tree))
    return tuple(
        WrongName(expression.part(node).snippet, expression.span_of(node), meant, isinstance(node, ast.Name))
        for node, meant in found
        if meant
    )


def _names(node: ast.expr) -> Iterator[ast.Name | ast.Attribute]:
    """Yield the names of types; anything in a `Literal`, after the type in an `Annotated` or in quotes is not a name."""
    if isinstance(node, ast.Name | ast.Attribute):
        yield node
    elif isinstance(node, ast.BinOp):
        yield from _names(node.left)
        yield from _names(node.right)
    elif isinstance(node, ast.List | ast.Tuple):
        for item in node.elts:
            yield from _names(item)
    elif isinstance(node, ast.Subscript):
        yield from _names(node.value)
        last = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        if last == "Annotated" and isinstance(node.slice, ast.Tuple):
            yield from _names(node.slice.elts[0])
        elif last != "Literal":
            yield from _names(node.slice)


def _wrong(node: ast.Name | ast.Attribute) -> str:
    """Return the likely meaning of a name that is not a type; empty for a type, and for one that may be anything."""
    if isinstance(node, ast.Attribute):
        module = _MODULES.get(node.value.id, frozenset()) if isinstance(node.value, ast.Name) else frozenset()
        best = "" if node.attr in module else _closest(node.attr, sorted(module))
        return f"{node.value.id}.{best}" if best and isinstance(node.value, ast.Name) else ""
    return "" if node.id in _KNOWN else _closest(node.id, _MEANT)


def is_function(name: str) -> bool:
    """Whether a name is a function of Python, so that it can be no type where nothing else has that name."""
    return name in _FUNCTIONS


def _closest(name: str, known: Iterable[str]) -> str:
    return next((item for item in known if is_slip(name, item)), "")


def is_slip(written: str, meant: str) -> bool:
    """Whether one slip of the hand, or the wrong case, makes ``written`` of ``meant``."""
    if written.lower() == meant.lower():
        return written != meant
    start = next((at for at, (one, other) in enumerate(zip(written, meant, strict=False)) if one != other), None)
    start = min(len(written), len(meant)) if start is None else start
    ahead, behind = written[start:], meant[start:]
    if ahead[1:] == behind or (ahead[:2] == behind[1::-1] and len(behind) > 1 and ahead[2:] == behind[2:]):
        return True
    if len(meant) <= _SHORT:
        return False
    return ahead == behind[1:] or (len(meant) > _SHORT + 1 and ahead[1:] == behind[1:])
