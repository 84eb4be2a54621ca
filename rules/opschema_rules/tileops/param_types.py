"""Type expressions of params: whether a text is one, and whether it admits a value of the manifest."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence

from opschema_cli.schema.dtypes import is_dtype
from opschema_cli.schema.expression import Expression, ExpressionSyntaxError, parse_expression
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Data

_ARRAYS = {"list", "List", "tuple", "Tuple", "Sequence", "Iterable", "Collection", "MutableSequence"}
_SCALARS: dict[str, Callable[[Data], bool]] = {
    "int": lambda value: isinstance(value, int),
    "float": lambda value: isinstance(value, int | float),
    "complex": lambda value: isinstance(value, int | float),
    "Number": lambda value: isinstance(value, int | float),
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "None": lambda value: value is None,
    "dict": lambda value: isinstance(value, dict),
    "Dict": lambda value: isinstance(value, dict),
    "Mapping": lambda value: isinstance(value, dict),
    "dtype": lambda value: isinstance(value, str) and is_dtype(value.removeprefix("torch.")),
    "Any": lambda value: True,
    "object": lambda value: True,
}
_NAMES = (ast.Name, ast.Attribute)
_DTYPE = re.compile(r"\b(?:torch\.)?dtype\b")


def admits_dtypes(text: str | None) -> bool:
    """Whether values of a param of this type are dtypes."""
    return _DTYPE.search(text or "") is not None


def is_tuple_only(text: str | None) -> bool:
    """Whether arrays of this type are tuples, and no lists."""
    try:
        tree = parse_expression(text or "").tree
    except ExpressionSyntaxError:
        return False
    arrays = {_last(node) for node in ast.walk(tree) if isinstance(node, _NAMES)} & _ARRAYS
    return bool(arrays) and arrays <= {"tuple", "Tuple"}


def type_problem(text: str) -> tuple[str, Span] | None:
    """Return why a text is not a type expression, and the place; None if it is one."""
    try:
        expression = parse_expression(text)
    except ExpressionSyntaxError as error:
        return f"it does not parse ({error.reason})", Span(min(error.offset, len(text)), len(text))
    odd = _odd(expression.tree)
    return None if odd is None else (_snippet(expression, odd), expression.span_of(odd))


def _snippet(expression: Expression, node: ast.expr) -> str:
    return f"`{expression.part(node).snippet}` is not a type"


def _odd(node: ast.expr) -> ast.expr | None:
    """Return the first part that is not allowed in a type expression."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _odd(node.left) or _odd(node.right)
    if isinstance(node, ast.Attribute):
        return None if isinstance(node.value, _NAMES) and _odd(node.value) is None else node
    if isinstance(node, ast.Subscript) and isinstance(node.value, _NAMES):
        if _last(node.value) in ("Literal", "Annotated"):
            return None
        return _odd(node.value) or next(filter(None, map(_odd, _arguments(node))), None)
    if isinstance(node, ast.List):  # the arguments of a Callable
        return next(filter(None, map(_odd, node.elts)), None)
    if isinstance(node, ast.Constant):
        return None if node.value is None or node.value is Ellipsis or isinstance(node.value, str) else node
    return None if isinstance(node, ast.Name) else node


def admits(text: str, value: Data) -> bool | None:
    """Whether a type admits a value as read from YAML, where a list may stand for a tuple; None if that is not known."""
    try:
        return _admits(parse_expression(text).tree, value)
    except ExpressionSyntaxError:
        return None


def _admits(node: ast.expr, value: Data) -> bool | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _any((_admits(node.left, value), _admits(node.right, value)))
    if isinstance(node, ast.Subscript) and isinstance(node.value, _NAMES):
        return _generic(_last(node.value), _arguments(node), value)
    if isinstance(node, ast.Constant):
        return (
            admits(node.value, value) if isinstance(node.value, str) else value is None if node.value is None else None
        )
    return _plain(_last(node), value) if isinstance(node, _NAMES) else None


def _plain(name: str, value: Data) -> bool | None:
    if name in _ARRAYS:
        return isinstance(value, list) or (isinstance(value, str) and name not in ("list", "List", "tuple", "Tuple"))
    check = _SCALARS.get(name)
    return check(value) if check is not None else None


def _generic(name: str, arguments: Sequence[ast.expr], value: Data) -> bool | None:
    if name == "Optional":
        return _any([value is None, *(_admits(item, value) for item in arguments)])
    if name == "Union":
        return _any(_admits(item, value) for item in arguments)
    if name == "Literal":
        known = [item.value for item in arguments if isinstance(item, ast.Constant)]
        found = any(type(item) is type(value) and item == value for item in known)
        return found or (False if len(known) == len(arguments) else None)
    if name not in _ARRAYS:
        return _plain(name, value)
    if not isinstance(value, list):
        return _plain(name, value)
    return _elements(arguments, value, fixed=name in ("tuple", "Tuple"))


def _elements(arguments: Sequence[ast.expr], values: Sequence[Data], *, fixed: bool) -> bool | None:
    open_ended = len(arguments) == 2 and isinstance(arguments[1], ast.Constant) and arguments[1].value is Ellipsis
    if not fixed or open_ended:
        return _all(_admits(arguments[0], value) for value in values)
    if len(arguments) != len(values):
        return False
    return _all(_admits(item, value) for item, value in zip(arguments, values, strict=True))


def _arguments(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _any(parts: Iterable[bool | None]) -> bool | None:
    found = list(parts)
    return True if True in found else None if None in found else False


def _all(parts: Iterable[bool | None]) -> bool | None:
    found = list(parts)
    return False if False in found else None if None in found else True
