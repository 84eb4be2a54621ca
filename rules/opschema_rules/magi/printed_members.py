"""Members of enumerations as defaults: a schema stores the string that Python prints for them."""

from __future__ import annotations

from opschema_cli.source.resolution import ClassRef, External
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.passed import meant_calls, passed
from opschema_rules.magi.signature import Leaf

_PRINTING = ("__str__", "__format__")


def is_printed_to_calls(op: MagiOp, leaf: Leaf) -> bool:
    """Whether calls may get the name of a default member instead of its value, if members are strings: Python 3.11 and later
    print `Mode.ADD`.
    """
    if leaf.enum is None or leaf.written.kind != "enum" or op.lowering.flattens:
        return False
    line = op.tree.lowerer.classes.line(leaf.enum.ref)
    owners = [item for item in line if isinstance(item, ClassRef)] if isinstance(line, list) else []
    bases = {item.name for item in line if isinstance(item, External)} if isinstance(line, list) else set()
    own = any(owner.cls.body.function(name) or name in owner.assigned for owner in owners for name in _PRINTING)
    return not own and "enum.Enum" in bases <= {"str", "enum.Enum", "object"} and _may_be_skipped(op, leaf)


def _may_be_skipped(op: MagiOp, leaf: Leaf) -> bool:
    """Whether a call may omit an argument and pass a later one; the calls in the tree decide, if there are any."""
    later = op.lowering.leaves[op.lowering.leaves.index(leaf) + 1 :]
    calls = list(meant_calls(op))
    for item in calls:
        known = not {"*", "**"} & set(item.call.keywords)
        if known and passed(op, item, leaf) is None and any(passed(op, item, other) is not None for other in later):
            return True
    return bool(later) and not calls
