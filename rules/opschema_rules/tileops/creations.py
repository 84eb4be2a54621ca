"""Expressions that make a tensor of a known shape, from which it follows that it is 0-dimensional."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import prod

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Span

Shape = tuple[int, ...]

_CREATION = re.compile(
    r"\(\s*(?:size\s*=\s*)?(?:\(\s*\)|\[\s*\])|tensor\(|Size\(|=\s*(?:\(\s*\)|\[\s*\])|\.squeeze\(|\)\s*\[\s*-?\d"
)
_SIZED = frozenset({"empty", "zeros", "ones", "full", "rand", "randn"})
_VALUED = frozenset({"tensor", "scalar_tensor"})
_NEW = frozenset({"new_empty", "new_zeros", "new_ones", "new_full"})
_FULL = frozenset({"full", "new_full"})
_KEPT = frozenset({"to", "cuda", "cpu", "contiguous", "detach", "clone", "half", "float", "bfloat16"})


_WORDS = ("empty(", "zeros(", "ones(", "full(", "rand(", "randn(", "tensor(")
"""Words one of which every expression that makes a tensor contains; for a fast check."""


def may_create(text: str) -> bool:
    """Whether a file's text may make a 0-dim tensor."""
    return makes_tensor(text, Span(0, len(text))) and _CREATION.search(text) is not None


def makes_tensor(text: str, span: Span) -> bool:
    """Whether a stretch of a text may make a tensor."""
    return any(text.find(word, *span) >= 0 for word in _WORDS)


def creates(evaluator: Evaluator, body: Body, expr: Expr) -> bool:
    """Whether an expression makes a 0-dim tensor that takes no part in autograd."""
    return _shape(evaluator, body, expr) == ()


def _shape(evaluator: Evaluator, body: Body, expr: Expr) -> Shape | None:
    """The shape of the tensor that an expression makes; None when it makes none, or it is not known."""
    if expr.kind == "subscript":
        return _indexed(_shape(evaluator, body, expr.items[0]), expr.items[1:])
    if expr.kind != "call" or {"*", "**"}.intersection(expr.keywords):
        return None
    grad = expr.keyword("requires_grad")
    if (grad is not None and grad.value is not False) or expr.keyword("out") is not None:
        return None
    callee = expr.items[0]
    last = callee.text.rpartition(".")[2]
    if last in _NEW:
        return _size(evaluator, body, expr) if _is_converted(callee) else None
    if callee.kind == "attribute":
        made = _shape(evaluator, body, callee.items[0])
        return _reshaped(evaluator, body, made, expr) if made is not None else None
    if last not in _VALUED | _SIZED or evaluator.bodies.external(body, expr.callee) != f"torch.{last}":
        return None
    return _shape_of_value(expr) if last in _VALUED else _size(evaluator, body, expr)


def _is_converted(callee: Expr) -> bool:
    """Whether a method is called on a name, or on the result of conversions of it: ``x.to(dtype).new_empty``."""
    if callee.kind == "name":
        return "." in callee.text
    inner = callee.items[0] if callee.kind == "attribute" else callee
    made = inner.items[0] if inner.kind == "call" else None
    return made is not None and made.text.rpartition(".")[2] in _KEPT and _is_converted(made)


def _size(evaluator: Evaluator, body: Body, call: Expr) -> Shape | None:
    """Return the shape that a call gets as ``size``, or from its plain arguments."""
    size, given = call.keyword("size"), call.positional()
    if size is not None:
        return _numbers(evaluator, body, [size]) if not given else None
    if call.items[0].text.rpartition(".")[2] in _FULL:
        given = given[:1]
    return _numbers(evaluator, body, given)


def _numbers(evaluator: Evaluator, body: Body, given: list[Expr]) -> Shape | None:
    """Return the sizes in arguments, one by one or as one sequence."""
    first = given[0] if len(given) == 1 else None
    if first is not None and first.kind == "call" and first.callee.rpartition(".")[2] in ("Size", "tuple", "list"):
        first = first.items[1] if len(first.items) == 2 else Expr("tuple", *first.span)
    whole = (
        _constant(evaluator, body, first) if first is not None else [_constant(evaluator, body, item) for item in given]
    )
    if isinstance(whole, list) and first is not None and first.kind != "list":
        return None  # somebody may have changed it
    values = whole if isinstance(whole, tuple | list) else [whole]
    sizes = tuple(value for value in values if type(value) is int and value >= 0)
    return sizes if given and len(sizes) == len(values) else None


def _constant(evaluator: Evaluator, body: Body, expr: Expr) -> object:
    """Return the value of a constant expression; None for any other."""
    found = evaluator.fold(body, expr)
    return found.value if isinstance(found, Folded) and not found.symbol else None


def _shape_of_value(call: Expr) -> Shape | None:
    """Return the shape of the result of ``torch.tensor`` for a number, or for a list of numbers."""
    value = call.keyword("data") or call.keyword("s") or next(iter(call.positional()), None)
    if value is None:
        return None
    if value.kind in ("list", "tuple"):
        return (len(value.items),) if all(map(_is_number, value.items)) else None
    return () if _is_number(value) else None


def _is_number(value: Expr) -> bool:
    while value.kind == "unary":
        value = value.items[0]
    return value.kind == "const" and isinstance(value.value, bool | int | float)


def _reshaped(evaluator: Evaluator, body: Body, shape: Shape, call: Expr) -> Shape | None:
    """Return the shape of the result of a new tensor's method."""
    name, given = call.items[0].text, call.positional()
    if name in _KEPT:
        return shape
    if len(given) != len(call.args):
        return None
    if name == "squeeze":
        return _squeezed(shape, given)
    wanted = _numbers(evaluator, body, given) if name in ("reshape", "view", "expand") else None
    if wanted is None:
        return None
    fits = wanted == shape or not shape if name == "expand" else prod(wanted) == prod(shape)
    return wanted if fits else None


def _squeezed(shape: Shape, given: list[Expr]) -> Shape | None:
    if not given:
        return tuple(size for size in shape if size != 1)
    place = _index(given[0], len(shape)) if len(given) == 1 else None
    if place is None:
        return None
    return shape[:place] + shape[place + 1 :] if shape[place] == 1 else shape


def _indexed(shape: Shape | None, given: tuple[Expr, ...]) -> Shape | None:
    """The shape that is left below the first elements that plain numbers choose."""
    indexes: Iterable[Expr] = given[0].items if len(given) == 1 and given[0].kind == "tuple" else given
    for index in indexes:
        if not shape or _index(index, shape[0]) is None:
            return None
        shape = shape[1:]
    return shape if given else None


def _index(expr: Expr, size: int) -> int | None:
    """The place that a number names among ``size``; None when it is not a number or names none."""
    negative = expr.kind == "unary" and expr.text == "-"
    value = expr.items[0].value if negative else expr.value
    if type(value) is not int or (expr.kind != "const" and not negative):
        return None
    place = size - value if negative else value
    return place if 0 <= place < size else None
