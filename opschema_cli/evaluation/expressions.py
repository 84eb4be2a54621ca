"""What an expression may be, by its kind."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from opschema_cli.evaluation import snippets
from opschema_cli.evaluation.binding import arguments_of
from opschema_cli.evaluation.conditions import holds, truth
from opschema_cli.evaluation.limits import MAX_ALTERNATIVES
from opschema_cli.evaluation.strings import cut, joined
from opschema_cli.evaluation.values import (
    UNKNOWN,
    BoundArgument,
    Frame,
    Func,
    Items,
    Plain,
    Table,
    Text,
    Unknown,
    Value,
    Values,
    distinct,
)
from opschema_cli.source.python import Expr

if TYPE_CHECKING:
    from opschema_cli.evaluation.evaluator import Evaluator


def alternatives(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    """All that an expression may be."""
    return _READ.get(expr.kind, _unknown)(evaluator, frame, expr)


def _constant(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    value = expr.value
    yield Text(frozenset({value}), place=frame.body.at(expr)) if isinstance(value, str) else Plain(value)


def _name(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    first, *rest = expr.text.split(".")
    found = evaluator.lookup(frame, first, expr.start)
    for name in rest:
        found = distinct(item for value in found for item in evaluator.attribute(value, name))
    yield from found


def _attribute(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    for value in evaluator.evaluate(frame, expr.items[0]):
        yield from evaluator.attribute(value, expr.text)


def _call(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    for callee in evaluator.evaluate(frame, expr.items[0]):
        yield from evaluator.apply(callee, arguments_of(evaluator, frame, expr))


def _lambda(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    body = evaluator.bodies.of_lambda(frame.body, expr)
    yield Func(body, frame) if body is not None else Unknown("it is a lambda inside another expression")


def _display(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    yield Items(tuple(BoundArgument(frame, item) for item in expr.items))


def _dictionary(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    pairs = list(zip(expr.items[::2], expr.items[1::2], strict=True))
    known = [(key.value, BoundArgument(frame, value)) for key, value in pairs if isinstance(key.value, str)]
    yield Table(tuple(known), len(known) != len(pairs))


def _sum(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    if expr.text != "+":
        yield Unknown()
        return
    left, right = (evaluator.evaluate(frame, item) for item in expr.items)
    for first, second in product(left, right):
        yield joined([first, second])


def _either(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    """The operands that ``or`` and ``and`` may give."""
    for index, item in enumerate(expr.items):
        values = evaluator.evaluate(frame, item)
        last = index == len(expr.items) - 1
        yield from (value for value in values if last or truth(value) in (None, expr.text == "or"))
        if all(truth(value) is (expr.text == "or") for value in values):
            return


def _item(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    keys = evaluator.evaluate(frame, expr.items[1]) if len(expr.items) == 2 else UNKNOWN
    for holder, key in product(evaluator.evaluate(frame, expr.items[0]), keys):
        if isinstance(holder, Text) and isinstance(key, Plain):
            yield cut(holder, key.value, None)
        else:
            yield from evaluator.values(_held(holder, key)) or UNKNOWN


def _held(holder: Value, key: Value) -> BoundArgument | None:
    """What a container holds under a key."""
    if isinstance(holder, Items) and isinstance(key, Plain) and isinstance(key.value, int):
        return holder.elements[key.value] if -len(holder.elements) <= key.value < len(holder.elements) else None
    if isinstance(holder, Table) and isinstance(key, Text) and key.names is not None and len(key.names) == 1:
        return dict(holder.entries).get(min(key.names))
    return None


def _unknown(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    yield Unknown()


# What the facts leave out: f-strings, slices, `a if c else b`


class _Snippet:
    """An expression that is read from its text."""

    def __init__(self, evaluator: Evaluator, frame: Frame, expr: Expr) -> None:
        self.evaluator, self.frame, self.expr = evaluator, frame, expr
        self.text = frame.body.file.text(expr)

    def part(self, node: ast.expr) -> Expr:
        """A part of it as a fact."""
        return self.evaluator.keep(self.frame, snippets.expression(self.text, self.expr.start, node))

    def values(self, node: ast.expr) -> Values:
        """What a part of it may be."""
        return self.evaluator.evaluate(self.frame, self.part(node))


def _computed(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    snippet = _Snippet(evaluator, frame, expr)
    node = snippets.parse(snippet.text)
    parts = snippets.formatted(node) if node is not None else None
    if parts is not None:
        yield from _formatted(snippet, parts)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        yield from _sliced(snippet, node.value, node.slice)
    elif isinstance(node, ast.IfExp):
        yield from _conditional(snippet, node)
    else:
        yield Unknown()


def _formatted(snippet: _Snippet, parts: list[str | ast.expr | None]) -> Iterator[Value]:
    options: list[Values] = []
    for part in parts:
        hole = snippet.values(part) if isinstance(part, ast.expr) else UNKNOWN
        options.append((Text(frozenset({part})),) if isinstance(part, str) else hole)
    if prod(map(len, options)) <= MAX_ALTERNATIVES:
        yield from (joined([Text(frozenset({""})), *items]) for items in product(*options))


def _sliced(snippet: _Snippet, holder: ast.expr, ends: ast.Slice) -> Iterator[Value]:
    found = [snippets.whole_number(item) for item in (ends.lower, ends.upper)]
    whole = [end for end in found if end != ""] if ends.step is None else []
    for value in snippet.values(holder):
        yield cut(value, 0, whole) if isinstance(value, Text) and len(whole) == 2 else Unknown()


def _conditional(snippet: _Snippet, node: ast.IfExp) -> Iterator[Value]:
    held = holds(snippet.evaluator, snippet.frame, snippet.part(node.test))
    if held is not False:
        yield from snippet.values(node.body)
    if held is not True:
        yield from snippet.values(node.orelse)


_READ: dict[str, Callable[[Evaluator, Frame, Expr], Iterator[Value]]] = {
    "lambda": _lambda,
    "const": _constant,
    "name": _name,
    "attribute": _attribute,
    "call": _call,
    "tuple": _display,
    "list": _display,
    "set": _display,
    "dict": _dictionary,
    "binary": _sum,
    "boolop": _either,
    "subscript": _item,
    "other": _computed,
}
