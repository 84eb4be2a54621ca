"""What a call passes to which parameter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from opschema_cli.evaluation.conditions import doubts, runs
from opschema_cli.evaluation.reaching import bindings
from opschema_cli.evaluation.values import Arguments, BoundArgument, Frame, Func, Items, Plain, Table, Unknown
from opschema_cli.source.python import Expr

if TYPE_CHECKING:
    from opschema_cli.evaluation.evaluator import Evaluator


def arguments_of(evaluator: Evaluator, frame: Frame, call: Expr) -> Arguments:
    """The arguments of a call, what is unpacked told apart where it is known."""
    positional: list[BoundArgument] = []
    keywords: dict[str, BoundArgument] = {}
    unclear = False
    for word, expr in call.args:
        if word == "*":
            found = evaluator.evaluate(frame, expr)
            items = found[0] if len(found) == 1 and isinstance(found[0], Items) else None
            positional += items.elements if items is not None else ()
            unclear = unclear or items is None
        elif word == "**":
            table = _table(evaluator, frame, expr)
            keywords.update(table.entries)
            unclear = unclear or table.open
        elif word:
            keywords[word] = BoundArgument(frame, expr)
        elif not unclear:
            positional.append(BoundArgument(frame, expr))
    return Arguments(frame, call, tuple(positional), keywords, unclear)


def _table(evaluator: Evaluator, frame: Frame, expr: Expr) -> Table:
    """What ``**`` unpacks, with what was written to its items where it is made, as far as that runs before the call."""
    found = evaluator.evaluate(frame, expr)
    table = found[0] if len(found) == 1 and isinstance(found[0], Table) else Table((), True)
    owner = next((item for item in frame.outward() if bindings(item.body.scope, expr.text)), None)
    if expr.kind != "name" or owner is None:
        return table
    return Table((*table.entries, *_written(evaluator, owner, expr)), table.open)


def _written(evaluator: Evaluator, frame: Frame, name: Expr) -> Iterator[tuple[str, BoundArgument]]:
    for item in frame.body.scope.items:
        if item.target == name.text and item.value.start < name.start and runs(evaluator, frame, item.value.span):
            sure = not doubts(evaluator, frame, item.value.start)
            values = () if sure else (*evaluator.evaluate(frame, item.value), Plain(None))
            yield item.key, BoundArgument(frame, item.value, values)


def bind(callee: Func, arguments: Arguments) -> dict[str, BoundArgument]:
    """What each parameter of a followed call stands for."""
    plain = [item for item in callee.body.params if item.kind in ("posonly", "normal")]
    bound = dict(zip((item.name for item in plain), arguments.positional, strict=False))
    words = dict(arguments.keywords)
    for param in callee.body.params:
        if param.kind == "vararg":
            bound[param.name] = BoundArgument(arguments.frame, None, (Items(arguments.positional[len(plain) :]),))
        elif param.kind != "kwarg" and param.name not in bound:
            default = BoundArgument(callee.frame, param.default) if param.default is not None else None
            lost = BoundArgument(arguments.frame, None, (Unknown("the call is not known to pass it"),))
            unset = default if default is not None and not arguments.open else lost
            bound[param.name] = words.pop(param.name, unset)
    kwarg = next((item.name for item in callee.body.params if item.kind == "kwarg"), None)
    if kwarg is not None:
        bound[kwarg] = BoundArgument(arguments.frame, None, (Table(tuple(words.items()), arguments.open),))
    return bound
