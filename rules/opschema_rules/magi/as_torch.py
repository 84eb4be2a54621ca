"""An op as an operator of torch, for the checks that apply to both: how functions are called, gradients, effects of kernels.

Where the op takes a dataclass, its functions see its original parameters: those are the operator's arguments then, each required.
"""

from __future__ import annotations

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.type_forms import TypeForm
from opschema_cli.project import Project
from opschema_cli.requirements import Release
from opschema_cli.schema.operator_schema import AliasInfo, Argument, OperatorSchema, Return, SchemaType
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Param
from opschema_cli.source.resolution import Unresolved
from opschema_rules.magi.dataclasses import Field
from opschema_rules.magi.given import Callback, Meta, Mutates
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.reporting import by_keyword, is_known, is_plain, is_refused, is_sound
from opschema_rules.magi.signature import Leaf, Node
from opschema_rules.magi.usage import is_called_to_fail
from opschema_rules.torchlib.model import Definition, Operator, Registration, Tree
from opschema_rules.torchlib.versions import find_release


def as_operator(op: MagiOp) -> Operator | None:
    """Return the operator; None if the decorator rejects the op, or its signature is not known."""
    function = op.body.function
    mutates = op.mutates
    if function is None or not is_sound(op) or is_refused(op) or not op.lowering.complete:
        return None
    if not isinstance(mutates, Mutates) or mutates.string is not None:
        return None
    names = op.lowering.expand_mutates([item.name for item in mutates.names])[0]
    tree = Tree(op.tree.project, op.tree.evaluator, _release(op.tree.project))
    written = op.body.at(function.span)
    definition = Definition(
        "custom_op", op.registration.place, written, _schema(op, frozenset(names)), explicit=False, body=op.registration.outer,
        call=op.registration.call, function=op.body, mutates=frozenset(names),
    )  # fmt: skip
    return Operator(tree, frozenset({op.title}), definition, _registrations(op))


@cached_on_argument
def _release(project: Project) -> Release:
    return find_release(project)


def with_gradient(op: MagiOp) -> Operator | None:
    """Return the operator, if it has a gradient; None if it is not known how its functions are called."""
    return as_operator(op) if is_known(op) and op.backward is not None and not is_called_to_fail(op) else None


def _registrations(op: MagiOp) -> list[Registration]:
    found: list[Registration] = []
    place = op.registration.place
    meta = op.meta
    if isinstance(meta, Meta) and isinstance(meta.function, Body):
        found.append(Registration("fake", place, function=meta.function))
    backward, setup = _function(op.backward), _function(op.setup_context)
    if op.backward is not None:
        found.append(Registration("autograd", place, function=backward, setup=setup))
    return found


def _function(callback: Callback) -> Body | Unresolved | None:
    if callback is None or isinstance(callback, Body | Unresolved):
        return callback
    return Unresolved("it is a lambda")


def _schema(op: MagiOp, mutates: frozenset[str]) -> OperatorSchema:
    whole = by_keyword(op)
    nodes: tuple[Node, ...] = op.lowering.nodes if whole else op.lowering.leaves
    arguments = tuple(_argument(op, node, mutates, whole=whole) for node in nodes)
    return OperatorSchema("", arguments, returns_of(op))


def returns_of(op: MagiOp) -> tuple[Return, ...]:
    """The schema's returns; a type that torch lacks is the empty name."""
    form = op.returns
    if form is None or form.kind == "none":
        return ()
    parts = form.args if form.kind == "generic" and form.name == "tuple" else (form,)
    return tuple(Return(schema_type(item)) for item in parts)


def _argument(op: MagiOp, node: Node, mutates: frozenset[str], *, whole: bool) -> Argument:
    source = node.source
    assert not isinstance(source, Field)
    type_ = schema_type(node.lowered_type) if isinstance(node, Leaf) else SchemaType("dataclass")
    if node.name in mutates:
        type_ = _written(type_)
    default = None if whole else _default(op, node, source)
    kwarg_only = source.kind == "kwonly" and is_plain(op)
    span = source.annotation.span if source.annotation is not None else source.span
    return Argument(node.name, type_, source.full_span, source.span, span, default, None, kwarg_only)


def _default(op: MagiOp, node: Node, source: Param) -> str | None:
    if not isinstance(node, Leaf) or source.default is None:
        return None
    kept = node.written if is_plain(op) else node.default
    return None if kept.kind == "absent" else op.body.file.text(source.default)


def schema_type(form: TypeForm | None) -> SchemaType:
    """Return the schema's type with respect to tensors: optional ones and lists of them; others keep their name."""
    if form is None:
        return SchemaType()
    if form.is_tensor:
        return SchemaType("Tensor")
    if form.kind == "generic" and form.name in ("list", "collections.abc.Sequence") and len(form.args) == 1:
        return SchemaType("", schema_type(form.args[0]))
    rest = [item for item in form.args if item.kind != "none"]
    if form.is_optional and len(rest) == 1:
        return SchemaType("", schema_type(rest[0]), True)
    return SchemaType(form.short if form.kind == "name" else str(form) if form.is_known else "")


def _written(type_: SchemaType) -> SchemaType:
    alias = AliasInfo(("a",), True)
    if type_.inner is None:
        return SchemaType(type_.name, alias=alias)
    return SchemaType(type_.name, _written(type_.inner), type_.optional)
