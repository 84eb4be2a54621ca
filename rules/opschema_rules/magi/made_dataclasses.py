"""Checks the constructor calls of dataclasses that are passed to an op against their fields."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.expected_errors import expects_failure, is_handled
from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.schema.operator_schema import Argument, OperatorSchema, SchemaType
from opschema_rules.magi.calls import OpCall
from opschema_rules.magi.dataclasses import Dataclass
from opschema_rules.magi.given import followed
from opschema_rules.magi.instance_attributes import is_patched
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.passed import made_class, passed
from opschema_rules.torchlib import model as torchlib
from opschema_rules.torchlib.rules.op_calls import call_faults


def constructor_faults(op: MagiOp, operator: torchlib.Operator, item: OpCall) -> Iterator[Diagnostic]:
    """All that is wrong with how a call makes the dataclasses that it passes."""
    for node in op.lowering.branches if item.through == "handle" else ():
        value = passed(op, item, node)
        if value is None or made_class(op, value) != node.dataclass.ref:
            continue
        made = followed(op.tree.evaluator, value)
        place = (op.tree.bodies, made.body, made.expr.start)
        meant = is_handled(*place) or expects_failure(*place)
        fields = _fields(op, node.dataclass)
        if fields is not None and not meant:
            call = torchlib.OpCall(made.body.at(made.expr), made.body, made.expr, "handle")
            related = (Related(node.dataclass.place, "the dataclass"),)
            yield from call_faults(operator, fields, call, node.dataclass.name, related)


def _fields(op: MagiOp, made: Dataclass) -> OperatorSchema | None:
    """The parameters of the constructor that a dataclass makes; None if they are not known."""
    plain = made.init is True and made.own_init is None and not made.init_vars
    known = all(item.init is not None and item.kw_only is not None for item in made.fields)
    own = any(op.tree.lowerer.classes.method(made.ref, name) is not None for name in ("__new__", "__init__"))
    if not plain or not known or own or is_patched(op.tree, made.ref, "__init__"):
        return None
    arguments = tuple(
        Argument(item.name, SchemaType(), default="None" if item.has_default else None, kwarg_only=bool(item.kw_only))
        for item in made.fields
        if item.init
    )
    return OperatorSchema("", arguments, ())
