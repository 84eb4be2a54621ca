"""Statements of functions, run one by one.

Running a statement is a generator that yields what the executed function yields. It ends with a :class:`Result`, with
:data:`BREAK` or :data:`CONTINUE`, or with None when the next statement follows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TypeAlias

import msgspec

from opschema_cli.evaluation.execution.contexts import entered, left
from opschema_cli.evaluation.execution.exceptions import catches
from opschema_cli.evaluation.execution.functions import defined
from opschema_cli.evaluation.execution.joins import joined, may_join
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.matching import Matcher
from opschema_cli.evaluation.execution.names import imported
from opschema_cli.evaluation.execution.operations import augmented
from opschema_cli.evaluation.execution.raising import raised
from opschema_cli.evaluation.execution.scopes import bind_name
from opschema_cli.evaluation.execution.signals import Thrown, UnknownElementsError, forget_frames
from opschema_cli.evaluation.execution.targets import assign, delete, place_of
from opschema_cli.evaluation.execution.values import Environment, ErrorValue, Opaque
from opschema_cli.evaluation.statements import all_statements, bound_by, own_expressions, targets
from opschema_cli.evaluation.values import ExternalName
from opschema_cli.source.python import Expr, Statement


class Result(msgspec.Struct, frozen=True, eq=False):
    """The function returns ``value``."""

    value: object = None


class Jump(msgspec.Struct, frozen=True):
    """``break`` or ``continue``."""

    word: str


BREAK, CONTINUE = Jump("break"), Jump("continue")
Completion: TypeAlias = "Result | Jump | None"
Steps: TypeAlias = Generator[object, object, Completion]


def run(machine: Machine, scope: Environment, statements: Sequence[Statement]) -> Steps:
    """Run a block."""
    for item in statements:
        machine.steps += 1
        if machine.steps > machine.steps_left:
            machine.spend(0)
        machine.at(scope.body, item)
        simple = _SIMPLE.get(item.kind)
        if simple is not None:
            if item.kind in ("expr", "assign") and item.exprs[-1].kind in ("yield", "yield-from"):
                yield from _yielded(machine, scope, item)
                continue
            completion = simple(machine, scope, item)
        else:
            completion = yield from _COMPOUND.get(item.kind, _not_followed)(machine, scope, item)
        if completion is not None:
            return completion
    return None


def _not_followed(machine: Machine, scope: Environment, item: Statement) -> Steps:
    machine.stop(f"`{item.kind}` is not followed" if item.kind != "other" else "statements nest too deeply")
    yield


# Simple statements


def _expression(machine: Machine, scope: Environment, item: Statement) -> Completion:
    machine.evaluate(scope, item.exprs[0])
    return None


def _assign(machine: Machine, scope: Environment, item: Statement) -> Completion:
    value = machine.evaluate(scope, item.exprs[-1])
    for target in item.exprs[:-1]:
        assign(machine, scope, target, value)
    return None


def _annotated(machine: Machine, scope: Environment, item: Statement) -> Completion:
    if len(item.exprs) > 2:
        assign(machine, scope, item.exprs[0], machine.evaluate(scope, item.exprs[2]))
    return None


def _augmented(machine: Machine, scope: Environment, item: Statement) -> Completion:
    target, value = item.exprs
    place = place_of(machine, scope, target)
    before = place.read(machine)
    change = machine.evaluate(scope, value)
    machine.at(scope.body, item)
    place.write(machine, augmented(machine, item.text, before, change))
    return None


def _return(machine: Machine, scope: Environment, item: Statement) -> Completion:
    return Result(machine.evaluate(scope, item.exprs[0]) if item.exprs else None)


def _delete(machine: Machine, scope: Environment, item: Statement) -> Completion:
    for target in item.exprs:
        delete(machine, scope, target)
    return None


def _raise(machine: Machine, scope: Environment, item: Statement) -> Completion:
    value = machine.evaluate(scope, item.exprs[0]) if item.exprs else None
    machine.at(scope.body, item)
    raised(machine, value, bare=not item.exprs)


def _assert(machine: Machine, scope: Environment, item: Statement) -> Completion:
    if machine.truth(machine.evaluate(scope, item.exprs[0])):
        return None
    message = (machine.evaluate(scope, item.exprs[1]),) if len(item.exprs) > 1 else ()
    machine.at(scope.body, item)
    raise Thrown(ErrorValue("AssertionError", message), machine.place)


def _import(machine: Machine, scope: Environment, item: Statement) -> Completion:
    for fact in scope.body.scope.imports:
        if item.start <= fact.start < item.end:
            value = imported(machine, scope.body, fact)
            if isinstance(value, Opaque | ExternalName):
                machine.may_raise(f"the import of `{fact.name}`", "ImportError")
            bind_name(machine, scope, fact.name, value)
    return None


def _define(machine: Machine, scope: Environment, item: Statement) -> Completion:
    bind_name(machine, scope, item.text, defined(machine, scope, item))
    return None


def _nothing(machine: Machine, scope: Environment, item: Statement) -> Completion:
    return None


_SIMPLE: dict[str, Callable[[Machine, Environment, Statement], Completion]] = {
    "expr": _expression,
    "assign": _assign,
    "annassign": _annotated,
    "augassign": _augmented,
    "return": _return,
    "delete": _delete,
    "raise": _raise,
    "assert": _assert,
    "import": _import,
    "def": _define,
    "class": _define,
    **dict.fromkeys(("global", "nonlocal", "pass"), _nothing),
    "break": lambda machine, scope, item: BREAK,
    "continue": lambda machine, scope, item: CONTINUE,
}


def _yielded(machine: Machine, scope: Environment, item: Statement) -> Iterator[object]:
    """``yield value``, ``yield from values`` and ``name = yield value``."""
    expr = item.exprs[-1]
    value = machine.evaluate(scope, expr.items[0]) if expr.items else None
    if expr.kind == "yield-from":
        yield from machine.iterate(value)
        value = machine.opaque("the result of `yield from`")
    else:
        yield value
        value = None
    for target in item.exprs[:-1]:
        assign(machine, scope, target, value)


# Branches and loops


def _if(machine: Machine, scope: Environment, item: Statement) -> Steps:
    value = machine.evaluate(scope, item.exprs[0])
    if isinstance(value, Opaque) and may_join(machine, scope, item, value):
        return joined(machine, scope, item, value, lambda holds: run(machine, scope, item.blocks[0 if holds else 1]))
    holds = machine.truth(value)
    return (yield from run(machine, scope, item.blocks[0] if holds else item.blocks[1]))


def _match(machine: Machine, scope: Environment, item: Statement) -> Steps:
    value = machine.evaluate(scope, item.exprs[0])
    for case in item.blocks[0]:
        machine.at(scope.body, case)
        matcher = Matcher(machine, scope, case)
        if not matcher.matches(value):
            continue
        for name, part in matcher.bound.items():
            bind_name(machine, scope, name, part)
        if not case.exprs or machine.truth(machine.evaluate(scope, case.exprs[0])):
            return (yield from run(machine, scope, case.blocks[0]))
    return None


def _while(machine: Machine, scope: Environment, item: Statement) -> Steps:
    while True:
        value = machine.evaluate(scope, item.exprs[0])
        if isinstance(value, Opaque):
            return (yield from _unsure_loop(machine, scope, item, value))
        if not machine.truth(value):
            return (yield from run(machine, scope, item.blocks[1]))
        completion = yield from run(machine, scope, item.blocks[0])
        if completion is BREAK:
            return None
        if isinstance(completion, Result):
            return completion
        machine.spend(1)


def _for(machine: Machine, scope: Environment, item: Statement) -> Steps:
    target, iterable = item.exprs
    if item.text == "async":
        machine.stop("an asynchronous loop")
    values = machine.evaluate(scope, iterable)
    if isinstance(values, Opaque):
        return (yield from _unsure_loop(machine, scope, item, values))
    try:
        elements = machine.iterate(values)
    except UnknownElementsError as unknown:
        lost = machine.opaque(unknown.reason)
        return (yield from _unsure_loop(machine, scope, item, lost))
    for value in elements:
        machine.spend(1)
        assign(machine, scope, target, value)
        completion = yield from run(machine, scope, item.blocks[0])
        if completion is BREAK:
            return None
        if isinstance(completion, Result):
            return completion
    return (yield from run(machine, scope, item.blocks[1]))


UNSURE_TURNS = 2
"""How often to run a loop body with unknown iterations, so that each iteration may follow any other."""


def _unsure_loop(machine: Machine, scope: Environment, item: Statement, values: Opaque) -> Steps:
    """Run a loop with unknown iterations: it may not run, and what it writes is unknown afterwards."""
    if scope.body.function is not None and machine.names_of(scope.body).yields:
        machine.stop(f"a generator loops over an unknown value: {values.reason}")
    for name in _written_names(item):
        bind_name(machine, scope, name, values)
    if not machine.choose(values.reason):
        return (yield from run(machine, scope, item.blocks[1]))
    completion: Completion = None
    for _ in range(UNSURE_TURNS):
        machine.unsure += 1
        try:
            if item.kind == "for":
                assign(machine, scope, item.exprs[0], values)
            completion = yield from run(machine, scope, item.blocks[0])
        finally:
            machine.unsure -= 1
        for name in _written_names(item):
            bind_name(machine, scope, name, values)
        if isinstance(completion, Result):
            return completion
        if completion is BREAK:
            return None
    return (yield from run(machine, scope, item.blocks[1]))


def _written_names(item: Statement) -> Iterator[str]:
    """Yield the variables that a loop may bind."""
    for inner in all_statements([item]):
        if inner.kind in ("import", "def", "class", "except", "case"):
            yield from inner.names
        for target in targets(inner):
            yield from bound_by(target)
        for expr in own_expressions(inner):
            if expr.kind == "walrus":
                yield expr.items[0].text


# Exceptions and contexts


def _try(machine: Machine, scope: Environment, item: Statement) -> Steps:
    body, handlers, orelse, final = item.blocks
    if item.text == "*":
        machine.stop("`except*` is not followed")
    try:
        completion = yield from _handled(machine, scope, (body, handlers, orelse))
    except Thrown as thrown:
        forget_frames(thrown)
        ending = yield from run(machine, scope, final)
        if ending is None:
            raise thrown from None
        return ending
    ending = yield from run(machine, scope, final)
    return ending if ending is not None else completion


def _handled(machine: Machine, scope: Environment, blocks: tuple[tuple[Statement, ...], ...]) -> Steps:
    """Run the block of a ``try``, and then a handler or ``else``."""
    body, handlers, orelse = blocks
    depth = machine.depth
    machine.guarded += bool(handlers)
    try:
        completion = yield from run(machine, scope, body)
    except Thrown as thrown:
        forget_frames(thrown)
        machine.guarded -= bool(handlers)
        machine.depth = depth
        return (yield from _handle(machine, scope, handlers, thrown))
    machine.guarded -= bool(handlers)
    return completion if completion is not None else (yield from run(machine, scope, orelse))


def _handle(machine: Machine, scope: Environment, handlers: tuple[Statement, ...], thrown: Thrown) -> Steps:
    for handler in handlers:
        kind = machine.evaluate(scope, handler.exprs[0]) if handler.exprs else None
        caught = catches(machine, kind, thrown.error) if handler.exprs else True
        if machine.truth(caught):
            return (yield from _in_handler(machine, scope, handler, thrown))
    raise thrown


def _in_handler(machine: Machine, scope: Environment, handler: Statement, thrown: Thrown) -> Steps:
    if handler.text:
        bind_name(machine, scope, handler.text, thrown.error)
    machine.handling.append(thrown.error)
    try:
        completion = yield from run(machine, scope, handler.blocks[0])
    finally:
        machine.handling.pop()
    if handler.text:
        scope.variables.pop(handler.text, None)
    return completion


def _with(machine: Machine, scope: Environment, item: Statement) -> Steps:
    if item.text == "async":
        machine.stop("an asynchronous context")
    return (yield from _contexts(machine, scope, item, list(zip(item.exprs[::2], item.exprs[1::2], strict=True))))


def _contexts(machine: Machine, scope: Environment, item: Statement, pairs: list[tuple[Expr, Expr]]) -> Steps:
    if not pairs:
        return (yield from run(machine, scope, item.blocks[0]))
    (expr, target), *rest = pairs
    context = machine.evaluate(scope, expr)
    machine.at(scope.body, expr)
    value = entered(machine, context)
    if target.kind != "absent":
        assign(machine, scope, target, value)
    depth = machine.depth
    try:
        completion = yield from _contexts(machine, scope, item, rest)
    except Thrown as thrown:
        machine.depth = depth
        if not left(machine, context, thrown):
            raise
        return None
    left(machine, context, None)
    return completion


_COMPOUND: dict[str, Callable[[Machine, Environment, Statement], Steps]] = {
    "if": _if,
    "match": _match,
    "while": _while,
    "for": _for,
    "try": _try,
    "with": _with,
}
