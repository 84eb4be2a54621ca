"""Uses of an op in the tree: whether it is ever traced, and whether it is only called to see it fail."""

from __future__ import annotations

import re

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.expected_errors import expects_failure
from opschema_cli.source.bodies import Body
from opschema_rules.magi.model import MagiOp

_TRACING = re.compile(r"compile|fake|make_fx|opcheck|export|trac(?:e|ing)|graph", re.IGNORECASE)
_RAISES = re.compile(r"\b(?:raises|assertRaises(?:Regex)?|xfail|expectedFailure)\b")
_TESTS = frozenset({"isinstance", "issubclass", "hasattr", "getattr", "type", "callable"})


def is_called_to_fail(op: MagiOp) -> bool:
    """Whether a test expects the op to fail when it runs: all its calls do, or it lives in a test that expects an error."""
    local = _home(op)
    if local is not None and local.function is not None and _RAISES.search(local.file.text(local.function.outer)):
        return True
    return bool(op.calls) and all(expects_failure(op.tree.bodies, item.body, item.call.start) for item in op.calls)


def is_never_traced(op: MagiOp) -> bool:
    """Whether an op is local to a function that calls it and does nothing else with it, and does not trace anything."""
    local, handle = _home(op), op.registration.handle
    if local is None or local.function is None or not handle:
        return False
    if _TRACING.search(local.file.text(local.function.outer)):
        return False
    called = {call.items[0].start for body in op.tree.bodies.inside(local) for call in body.scope.calls if call.items}
    uses = [
        use for body in op.tree.bodies.inside(local) for use in body.scope.uses if use.name.partition(".")[0] == handle
    ]
    elsewhere = any(item.through == "torch.ops" for item in op.calls)
    return bool(uses) and not elsewhere and all(use.start in called or "." in use.name for use in uses)


def is_tested(body: Body, name: str) -> bool:
    """Whether a body tests the type or the attributes of a name's value, as code for several types does."""
    return name in _tested(body)


@cached_on_argument
def _tested(body: Body) -> frozenset[str]:
    calls = (call for scope in body.scope.walk() for call in scope.calls if call.callee in _TESTS)
    return frozenset(item.text for call in calls for item in call.items[1:2])


def _home(op: MagiOp) -> Body | None:
    """The outermost function in which the op is registered."""
    return next((body for body in reversed(list(op.registration.outer.outward())) if body.function is not None), None)
