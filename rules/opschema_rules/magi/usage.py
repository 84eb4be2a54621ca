"""Uses of an op in the tree: whether it is ever traced, and whether it is only called to see it fail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opschema_cli.evaluation.expected_errors import expects_failure
from opschema_cli.evaluation.statements import all_statements
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Statement
from opschema_rules.magi.model import MagiOp

_TRACING = re.compile(r"compile|fake|make_fx|opcheck|export|trac(?:e|ing)|graph", re.IGNORECASE)
_RAISES = re.compile(r"\b(?:raises|assertRaises(?:Regex)?|xfail|expectedFailure)\b")
_CATCHES = re.compile(r"raise|fail|error|suppress|expect|invalid", re.IGNORECASE)
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
    called = {call.items[0].start for body in _bodies(op, local) for call in body.scope.calls if call.items}
    uses = [use for body in _bodies(op, local) for use in body.scope.uses if use.name.partition(".")[0] == handle]
    elsewhere = any(item.through == "torch.ops" for item in op.calls)
    return bool(uses) and not elsewhere and all(use.start in called or "." in use.name for use in uses)


def is_tested(body: Body, name: str) -> bool:
    """Whether a body asks for the type or the attributes of what a name holds, as one does that takes several types."""
    calls = (call for scope in body.scope.walk() for call in scope.calls if call.callee in _TESTS)
    return any(item.text == name for call in calls for item in call.items[1:2])


def is_caught(body: Body, at: int) -> bool:
    """Whether a handler may catch what is raised at a place of a body: of a ``try``, or of a ``with`` that suppresses it."""
    return any(_is_caught_in(outer, at) for outer in body.outward())


def _is_caught_in(body: Body, at: int) -> bool:
    text = body.file.source.text
    around = (call for call in body.scope.calls if call.start < at < call.end)
    if any(_CATCHES.search(call.callee.rpartition(".")[2]) for call in around):
        return True
    if body.function is None:
        return any(item.start <= at < item.end and _opens_try(text, item.start) for item in body.scope.guarded)
    for item in all_statements(body.statements):
        if item.start <= at < item.end and item.kind in ("try", "with"):
            handled = item.kind == "with" and _CATCHES.search(text[item.start : item.exprs[0].end])
            if handled or (item.kind == "try" and item.blocks[1] and _is_in(item.blocks[0], at)):
                return True
    return False


def _opens_try(text: str, start: int) -> bool:
    return re.match(r"try\b", text[start:]) is not None or re.search(r"\btry:\s*$", text[:start]) is not None


def _is_in(block: Sequence[Statement], at: int) -> bool:
    return any(item.start <= at < item.end for item in block)


def _home(op: MagiOp) -> Body | None:
    """The outermost function in which the op is registered."""
    return next((body for body in reversed(list(op.registration.outer.outward())) if body.function is not None), None)


def _bodies(op: MagiOp, body: Body) -> Iterator[Body]:
    yield body
    for inner in op.tree.bodies.within(body):
        yield from _bodies(op, inner)
