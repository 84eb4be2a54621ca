"""Calls of ops that are expected to succeed, and the functions that they call."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.evaluation.expected_errors import is_handled
from opschema_cli.evaluation.statements import bound_by, own_expressions, statements_around
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.magi.calls import OpCall
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.passed import meant_calls
from opschema_rules.magi.reporting import by_keyword, is_known, is_plain
from opschema_rules.magi.usage import is_called_to_fail
from opschema_rules.torchlib.patched_names import may_be_patched

_FOR = re.compile(r"\bfor\s+([\w\s,()]+?)\s+in\b")
_NEAR = 400
"""Length of the text before and after a call of a module that is searched for comprehensions."""


def judged_calls(op: MagiOp) -> Iterator[OpCall]:
    """The calls of an op that are meant to work, and whose arguments are known to be those of its signature."""
    if not is_known(op) or is_called_to_fail(op) or _has_odd_kinds(op):
        return
    for item in meant_calls(op):
        hidden = item.through == "torch.ops" and _has_namesakes(op)
        changed = item.through == "handle" and _is_decorated_further(op)
        changed = changed or may_be_patched(item.body, item.call)
        caught = is_handled(op.tree.bodies, item.body, item.call.start)
        if not hidden and not changed and not caught and not _is_shadowed(item):
            yield item


def _is_shadowed(item: OpCall) -> bool:
    """Whether a lambda or a comprehension around a call binds one of the names in it, as the body around may do, too."""
    used = {part.text.partition(".")[0] for part in item.call.walk() if part.kind == "name"}
    body, at = item.body, item.call.start
    params = {
        param.name for part in body.scope.lambdas if part.outer.start <= at < part.outer.end for param in part.params
    }
    return not used.isdisjoint(params | _bound_around(body, item.call))


def _bound_around(body: Body, call: Expr) -> set[str]:
    """The names that comprehensions around a call bind, and outside of functions all that are bound nearby with ``for``."""
    if body.function is None:
        near = body.file.source.text[max(call.start - _NEAR, 0) : call.end + _NEAR]
        return {name for match in _FOR.finditer(near) for name in re.findall(r"\w+", match.group(1))}
    around = statements_around(body.statements, call.start)
    exprs = (expr for part in around for expr in own_expressions(part) if expr.kind == "for")
    return {name for expr in exprs for name in bound_by(expr.items[0])}


def _has_odd_kinds(op: MagiOp) -> bool:
    """Whether a parameter is positional-only, or by name only where the decorator drops that: each call fails, or none."""
    return any(
        item.kind == "posonly" or (item.kind == "kwonly" and not (by_keyword(op) or is_plain(op))) for item in op.params
    )


def _has_namesakes(op: MagiOp) -> bool:
    return any(item is not op and (item.names is None or item.names & (op.names or set())) for item in op.tree.ops)


def _is_decorated_further(op: MagiOp) -> bool:
    """Whether the name of the function may hold something else than the op: another decorator's result, or another function."""
    function, outer = op.body.function, op.registration.outer
    if function is None or not op.registration.handle:
        return True
    further = any(item.start < op.registration.call.start for item in function.decorators)
    handle = op.registration.handle
    written = sum(item.target == handle for item in outer.scope.assigns)
    scope = outer.scope
    written += sum(item.name == handle for item in scope.functions) + sum(item.name == handle for item in scope.imports)
    return further or written + sum(item.name == handle for item in scope.classes) != 1
