"""Uses of an op in the tree: whether it is ever traced, and whether it is only called to see it fail."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.source.bodies import Body
from opschema_cli.source.expected import expects_failure
from opschema_rules.magi.model import MagiOp

_TRACING = re.compile(r"compile|fake|make_fx|opcheck|export|trac(?:e|ing)|graph", re.IGNORECASE)
_RAISES = re.compile(r"\b(?:raises|assertRaises(?:Regex)?|xfail|expectedFailure)\b")


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
    called = {call.items[0].start for body in _bodies(op, local) for call in body.scope.calls if call.items}
    uses = [use for body in _bodies(op, local) for use in body.scope.uses if use.name.partition(".")[0] == handle]
    elsewhere = any(item.through == "torch.ops" for item in op.calls)
    return bool(uses) and not elsewhere and all(use.start in called or "." in use.name for use in uses)


def _home(op: MagiOp) -> Body | None:
    """The outermost function in which the op is registered."""
    return next((body for body in reversed(list(op.registration.outer.outward())) if body.function is not None), None)


def _bodies(op: MagiOp, body: Body) -> Iterator[Body]:
    yield body
    for inner in op.tree.bodies.within(body):
        yield from _bodies(op, inner)
