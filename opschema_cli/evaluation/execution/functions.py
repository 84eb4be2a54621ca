"""Functions that executed code defines: nested ones and lambdas."""

from __future__ import annotations

from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.names import decorated
from opschema_cli.evaluation.execution.values import Closure, Environment
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Statement


def defined(machine: Machine, scope: Environment, item: Statement) -> object:
    """Return the value that a ``def`` or ``class`` binds."""
    found = [body for body in machine.evaluator.bodies.within(scope.body) if _is_at(body, item)]
    if not found or found[0].function is None:
        return machine.opaque("a class that a function makes")
    return decorated(machine, scope, _closure(machine, scope, found[0]))


def _is_at(body: Body, item: Statement) -> bool:
    return body.definition is not None and body.definition.outer == item.span


def lambda_of(machine: Machine, scope: Environment, expr: Expr) -> object:
    """Return the value of a lambda."""
    body = machine.evaluator.bodies.of_lambda(scope.body, expr)
    return _closure(machine, scope, body) if body is not None else machine.opaque("a lambda that is not found")


def _closure(machine: Machine, scope: Environment, body: Body) -> Closure:
    defaults = {item.name: machine.evaluate(scope, item.default) for item in body.params if item.default is not None}
    return Closure(body, scope, defaults)
