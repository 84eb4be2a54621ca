"""Removes carriers from op classes, together with code that only the call of a custom op needed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import libcst as cst
import msgspec

from opschema_cli.migrate.codemods.attributes import drop_attribute
from opschema_cli.migrate.codemods.calls import drop_argument
from opschema_cli.migrate.codemods.definitions import function_node
from opschema_cli.migrate.codemods.rewrite import Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import dotted, local_uses
from opschema_cli.migrate.codemods.signatures import drop_parameter
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import ClassRef
from opschema_cli.source.python import Expr
from opschema_cli.source.python_tree import PythonTree
from opschema_rules.tileops.carrier_attributes import CarrierAttribute, Handing
from opschema_rules.tileops.carriers import Carriers
from opschema_rules.tileops.custom_ops import CustomOp
from opschema_rules.tileops.mentions import MentionIndex
from opschema_rules.tileops.migrations.drop_carrier.attributes import drop_attributes
from opschema_rules.tileops.migrations.drop_carrier.forwards import Eager, run_eagerly
from opschema_rules.tileops.migrations.drop_carrier.registrations import Registrar, put_as


def drop_from_classes(
    workbench: Workbench,
    carriers: Carriers,
    mentions: MentionIndex,
    registrar: Registrar,
    attributes: Sequence[CarrierAttribute],
    classes: Collection[ClassRef],
) -> list[Eager]:
    """Take carriers out of op classes and custom ops; the methods that are left to be inlined.

    Raises:
        LeftAlone: what they are handed to, or hold, cannot be rewritten with certainty.
    """
    handed: dict[Body, list[Handing]] = {}
    for attribute in attributes:
        for handing in attribute.handings:
            handed.setdefault(handing.body, []).append(handing)
    called: list[Eager] = []
    for body, handings in handed.items():
        if _has_tensors(body):
            _keep_ops(workbench, carriers, handings)
            continue
        found = run_eagerly(workbench, carriers.bodies, body, handings)
        called += [found] if found is not None else []
    ops = dict.fromkeys(op for attribute in attributes for op in alone(attribute))
    for op in ops:
        registrar.unregister(op, classes)
    needed = _Needed.by([item for body, items in handed.items() if not _has_tensors(body) for item in items], ops)
    for ref in classes:
        with workbench.on(ref.file.path) as rewrite:
            _clean(rewrite, ref, needed)
    drop_attributes(workbench, attributes, list(classes), mentions)
    return called


def alone(attribute: CarrierAttribute) -> Iterator[CustomOp]:
    """The custom ops that have no tensor but the carrier."""
    yield from (op for handing in attribute.handings if not _has_tensors(handing.body) for op, _ in handing.takers)


def _has_tensors(body: Body) -> bool:
    """Whether a function that calls a custom op gets any tensors to call it with."""
    return body.method is not body or len(body.params) != 1


# Ops that keep their custom op


def _keep_ops(workbench: Workbench, carriers: Carriers, handings: Iterable[Handing]) -> None:
    """Take the carrier out of the calls and the parameters of custom ops that have real tensors as well."""
    for handing in handings:
        index = next(at for at, item in enumerate(handing.call.items) if item is handing.argument)
        with workbench.on(handing.body.file.path) as rewrite:
            node = rewrite.tree.find(handing.call.span, cst.Call)
            name = handing.call.keywords[index - 1]
            drop_argument(rewrite, node, name or handing.takers[0][1].name, None if name else index - 1)
        for op, param in handing.takers:
            known = next((item for item in carriers.params if item.op is op and item.param is param), None)
            if known is None or op.body.function is None or not op.body.function.decorators:
                raise LeftAlone(
                    op.body.at(param.span), f"the custom op's parameter `{param.name}` is filled by others too"
                )
            _drop_param(workbench, op, op.body.params.index(param))


def _drop_param(workbench: Workbench, op: CustomOp, place: int) -> None:
    for body in dict.fromkeys((*op.bodies, *op.fakes)):
        with workbench.on(body.file.path) as rewrite:
            function = function_node(rewrite.tree, body)
            if place >= len(body.params):
                raise LeftAlone(
                    op.body.at(op.body.params[place].span), "a fake kernel does not take the arguments of the op"
                )
            param = body.params[place]
            uses = [node for node in local_uses(rewrite, function, param.name) if not rewrite.is_gone(node)]
            if uses:
                reason = f"this takes dtype or device from the carrier `{param.name}`; take them from a real tensor"
                raise LeftAlone(body.at(rewrite.tree.span(uses[0])), reason)
            if not rewrite.is_gone(rewrite.tree.find(param.span, cst.Name)):
                drop_parameter(rewrite, function, param.name)


# What an op has only for the sake of the call


class _Needed(msgspec.Struct, frozen=True):
    """Names of attributes that the calls of custom ops needed, and the qualified names of each of those ops."""

    held: frozenset[str]
    passed: frozenset[str]
    ops: tuple[Collection[object], ...]

    @classmethod
    def by(cls, handings: Sequence[Handing], ops: Iterable[CustomOp]) -> _Needed:
        held = {name for item in handings for name in _held(item.body, item.call.items[0])}
        held |= {name for op in ops for name in put_as(op)}
        own = {(item.body.this, value.text) for item in handings for _, value in item.call.args if value.kind == "name"}
        passed = {text.rpartition(".")[2] for this, text in own if text.rpartition(".")[0] == this}
        passed -= {item.held[1] for item in handings if item.held is not None}
        return cls(frozenset(held), frozenset(passed), tuple(op.names or () for op in ops))


def _held(body: Body, callee: Expr) -> Iterator[str]:
    """The attributes by which an op gets at its custom op."""
    for expr in callee.walk():
        if expr.kind == "name" and "." not in expr.text:
            for value in body.values(expr.text) or ():
                yield from _held(body, value)
        elif expr.kind in ("name", "attribute"):
            yield expr.text.rpartition(".")[2]
        elif isinstance(expr.value, str):
            yield expr.value


def _clean(rewrite: Rewrite, ref: ClassRef, needed: _Needed) -> None:
    """Remove from a class the code that only the call of its custom op needed."""
    node = rewrite.tree.class_def(ref.name)
    assigned = {item.target: item for item in ref.cls.body.assigns}
    for name in sorted(needed.held & assigned.keys()):
        _drop_if_idle(rewrite, node, name)
    for name, item in assigned.items():
        listed = [part.value for part in item.value.walk() if part.kind == "const"] if item.value is not None else []
        if listed and all(any(name in names for names in needed.ops) for name in listed):
            _drop_if_idle(rewrite, node, name)
    for name in sorted(needed.passed):
        _drop_key(rewrite, node, name)


def _drop_if_idle(rewrite: Rewrite, node: cst.ClassDef, name: str, pure: Collection[str] = ()) -> None:
    try:
        drop_attribute(rewrite, node, name, {*pure, "staticmethod"})
    except Refused:
        return


def _drop_key(rewrite: Rewrite, node: cst.ClassDef, name: str) -> None:
    """Drop the attribute by which the custom op finds the instance, and the instance from where it is looked up."""
    tree = rewrite.tree
    uses = [
        item
        for item in tree.attributes(name, node)
        if tree.enclosing(item, cst.ClassDef) is node and not rewrite.is_gone(item)
    ]
    kept = [statement for item in uses if (statement := _keeps_self(tree, item)) is not None]
    made = [tree.parent(tree.parent(item) or item) for item in uses if isinstance(tree.parent(item), cst.AssignTarget)]
    if not (kept or (made and name.startswith("_"))) or len(kept) + len(made) != len(uses):
        return
    pure = {
        dotted(call.func) for item in made if item is not None for call in tree.walk(item) if isinstance(call, cst.Call)
    }
    rewrite.remove(*kept)
    _drop_if_idle(rewrite, node, name, pure)


def _keeps_self(tree: PythonTree, key: cst.Attribute) -> cst.Assign | None:
    """The assignment ``REGISTRY[self.key] = self`` that a use of the key is in."""
    target = tree.enclosing(key, cst.AssignTarget)
    statement = tree.parent(target) if target is not None else None
    if target is None or not isinstance(target.target, cst.Subscript) or not isinstance(statement, cst.Assign):
        return None
    this = tree.code(key.value)
    named = any(isinstance(item, cst.Name) and item.value == this for item in tree.walk(statement.value))
    return statement if named and len(statement.targets) == 1 else None
