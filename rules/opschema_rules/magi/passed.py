"""Values that the calls of an op pass for one of its lowered parameters."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.expected_errors import expects_failure
from opschema_cli.source.bodies import argument_for
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import ClassRef
from opschema_rules.magi.calls import OpCall
from opschema_rules.magi.dataclasses import Dataclass
from opschema_rules.magi.given import followed
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.registrations import Written
from opschema_rules.magi.signature import Branch, Leaf, Node


def meant_calls(op: MagiOp) -> Iterator[OpCall]:
    """The calls of an op that no test expects to fail."""
    for item in op.calls:
        if not expects_failure(op.tree.bodies, item.body, item.call.start):
            yield item


def passed(op: MagiOp, item: OpCall, leaf: Node) -> Written | None:
    """Return the value that a call passes, directly or in a dataclass that is created there; None if there is none, or it is
    unknown.
    """
    if item.through == "torch.ops":
        return _lowered(op, item, leaf) if isinstance(leaf, Leaf) else None
    value = argument_for(item.call, op.params, leaf.path[0])
    found = Written(item.body, value) if value is not None else None
    node = op.lowering.node(leaf.path[0])
    for name in leaf.path[1:]:
        if found is None or not isinstance(node, Branch):
            return None
        found = _of_field(op, found, node.dataclass, name)
        node = next((child for child in node.children if child.name == name), None)
    return found


def made_class(op: MagiOp, value: Written) -> ClassRef | None:
    """Return the class that a value is known to be an instance of: created there, or assigned once to the passed name."""
    made = followed(op.tree.evaluator, value)
    callee = made.expr.callee if made.expr.kind == "call" else ""
    first = callee.partition(".")[0]
    binder = made.body.binder(first)
    if not callee or (binder is not None and any(item.name == first for item in binder.params)):
        return None  # a parameter may be any class
    found = op.tree.bodies.resolve(made.body, callee)
    return found if isinstance(found, ClassRef) else None


def _lowered(op: MagiOp, item: OpCall, leaf: Leaf) -> Written | None:
    named = item.call.keyword(leaf.lowered)
    places = item.call.positional()
    index = [other.lowered for other in op.lowering.leaves].index(leaf.lowered)
    value = named if named is not None else places[index] if index < len(places) else None
    return Written(item.body, value) if value is not None else None


def _of_field(op: MagiOp, value: Written, dataclass: Dataclass, name: str) -> Written | None:
    made = followed(op.tree.evaluator, value)
    if made_class(op, value) != dataclass.ref or dataclass.own_init is not None:
        return None
    named = made.expr.keyword(name)
    places = [item.name for item in dataclass.fields if item.init and not item.kw_only]
    given = made.expr.positional()
    index = places.index(name) if name in places and not dataclass.init_vars else len(given)
    found: Expr | None = named if named is not None else given[index] if index < len(given) else None
    return Written(made.body, found) if found is not None else None
