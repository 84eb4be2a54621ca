"""Values that an argument is known to have: instances of a class, members of enumerations, tensors, constants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.evaluation.containers import constant
from opschema_cli.evaluation.values import EnumMember, Plain, Text, Value
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import ClassRef
from opschema_rules.magi.given import followed
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.registrations import Written
from opschema_rules.magi.usage import is_tested

ArgumentKind: TypeAlias = Literal["instance", "tensor", "member", "constant"]

TENSOR_FACTORIES = frozenset(
    f"torch.{name}{like}"
    for name in ("empty", "full", "ones", "rand", "randint", "randn", "zeros")
    for like in ("", "_like")
) | {"torch.arange", "torch.as_tensor", "torch.eye", "torch.linspace", "torch.randperm", "torch.tensor"}  # fmt: skip
"""Functions of torch that return a tensor, whatever they are passed."""

_LITERALS = ("const", "list", "tuple", "dict", "set", "fstring")


class ArgumentValue(msgspec.Struct, frozen=True, eq=False):
    """One value that an argument may have.

    ``ref`` is the class of an instance, or the enumeration of a member; with ``below`` an annotation states it, and the
    instance may be of a class that inherits from it. ``expr`` is a literal or a constant.
    """

    kind: ArgumentKind
    ref: ClassRef | None = None
    below: bool = False
    expr: Expr | None = None


def values_of(op: MagiOp, written: Written) -> list[ArgumentValue]:
    """Return all possible values of an argument; empty if one of them is not known."""
    found = [_value(op, item) for item in _alternatives(op, written)]
    known = [item for several in found for item in several]
    return known if all(found) else []


def _alternatives(op: MagiOp, written: Written) -> Iterator[Written]:
    """Yield the expressions that an argument may refer to: the value assigned to a name, and both sides of a conditional
    expression.
    """
    source = followed(op.tree.evaluator, written)
    if source.expr.kind == "ifexp":
        for arm in source.expr.items[1:]:
            yield followed(op.tree.evaluator, Written(source.body, arm))
    else:
        yield source


def _value(op: MagiOp, written: Written) -> list[ArgumentValue]:
    body, expr = written.body, written.expr
    if expr.kind in _LITERALS:
        return [ArgumentValue("constant", expr=expr)] if expr.kind != "fstring" else []
    if expr.kind == "call" and expr.callee:
        found = op.tree.bodies.resolve(body, expr.callee)
        if isinstance(found, ClassRef) and op.tree.lowerer.classes.enum(found) is None:
            return [ArgumentValue("instance", found)]
        if op.tree.bodies.external(body, expr.callee) in TENSOR_FACTORIES:
            return [ArgumentValue("tensor")]
    if expr.kind == "name" and "." not in expr.text:
        stated = _annotated(op, body, expr.text)
        if stated is not None:
            return [stated]
    evaluator = op.tree.evaluator
    several = [_evaluated(item, expr) for item in evaluator.evaluate(evaluator.frames.at(body), expr)]
    return [item for item in several if item is not None] if None not in several else []


def _evaluated(value: Value, expr: Expr) -> ArgumentValue | None:
    if isinstance(value, EnumMember):
        return ArgumentValue("member", value.ref)
    found = constant(value) if isinstance(value, Plain | Text) else None
    return ArgumentValue("constant", expr=Expr("const", *expr.span, value=found[0])) if found is not None else None


def _annotated(op: MagiOp, body: Body, name: str) -> ArgumentValue | None:
    """Return the value of a parameter from its annotation, if it is never rebound and its type is never tested."""
    binder = body.binder(name)
    if binder is None or all(item.name != name for item in binder.params):
        return None
    scopes = list(binder.scope.walk())
    rebound = any(item.target == name for scope in scopes for item in scope.assigns)
    if rebound or any(name in scope.deleted for scope in scopes) or is_tested(binder, name):
        return None
    form = op.tree.lowerer.hints(binder, None).types.get(name)
    if form is None or (form.kind == "class" and (form.ref is None or form.args)):
        return None
    if form.is_tensor:
        return ArgumentValue("tensor")
    is_class = form.kind == "class" and form.ref is not None and op.tree.lowerer.classes.enum(form.ref) is None
    return ArgumentValue("instance", form.ref, below=True) if is_class else None
