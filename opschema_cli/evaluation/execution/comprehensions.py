"""Comprehensions and generator expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.methods import mapping_of, set_of
from opschema_cli.evaluation.execution.signals import UnknownElementsError
from opschema_cli.evaluation.execution.targets import assign
from opschema_cli.evaluation.execution.values import Environment, Names, Opaque, Running
from opschema_cli.evaluation.limits import MAX_ELEMENTS
from opschema_cli.evaluation.statements import bound_by
from opschema_cli.source.python import Expr


def comprehension(machine: Machine, scope: Environment, expr: Expr) -> object:
    """Return the value of a comprehension; a generator expression only runs when it is iterated over."""
    clauses = [item for item in expr.items if item.kind == "for"]
    parts = [item for item in expr.items if item.kind != "for"]
    if any(item.text == "async" for item in clauses):
        machine.stop("an asynchronous comprehension")
    first = machine.evaluate(scope, clauses[0].items[1])
    if isinstance(first, Opaque):
        return first
    names = frozenset(name for item in clauses for name in bound_by(item.items[0]))
    inner = Environment(scope.body, {}, Names(names), scope, True)
    rows = _rows(machine, inner, parts, clauses, first)
    if expr.kind == "generator":
        running = Running(rows)
        if machine.joins:
            machine.born[id(running)] = running
        return running
    found: list[object] = []
    try:
        for row in rows:
            found.append(row)
            if len(found) > MAX_ELEMENTS:
                machine.stop("a large container")
    except UnknownElementsError as unknown:
        return machine.opaque(unknown.reason)
    if expr.kind == "listcomp":
        return found
    return set_of(machine, found) if expr.kind == "setcomp" else mapping_of(machine, found)


def _rows(
    machine: Machine, scope: Environment, parts: Sequence[Expr], clauses: Sequence[Expr], first: object
) -> Iterator[object]:
    """Yield the elements; for a dictionary, its pairs."""
    target, _, *conditions = clauses[0].items
    for value in machine.iterate(first):
        machine.spend(1)
        assign(machine, scope, target, value)
        if not all(machine.truth(machine.evaluate(scope, item)) for item in conditions):
            continue
        if len(clauses) > 1:
            inner = machine.evaluate(scope, clauses[1].items[1])
            yield from _rows(machine, scope, parts, clauses[1:], inner)
        else:
            made = [machine.evaluate(scope, item) for item in parts]
            yield made[0] if len(made) == 1 else tuple(made)
