"""The carriers of op classes, and what was written only to make them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import libcst as cst

from opschema_cli.migrate.codemods.attributes import drop_attribute
from opschema_cli.migrate.codemods.definitions import delete_calls, delete_definition
from opschema_cli.migrate.codemods.names import drop_local
from opschema_cli.migrate.codemods.rewrite import Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import effects
from opschema_cli.source.program import ClassRef
from opschema_cli.source.python import Assign
from opschema_rules.tileops.bodies import Body
from opschema_rules.tileops.carrier_attributes import CarrierAttribute
from opschema_rules.tileops.mentions import MentionIndex
from opschema_rules.tileops.migrations.drop_carrier.workshop import Workshop, function_node


def drop_attributes(
    shop: Workshop, attributes: Sequence[CarrierAttribute], classes: Iterable[ClassRef], mentions: MentionIndex
) -> None:
    """Take carriers out of the classes that make them.

    Raises:
        LeftAlone: one is still used.
    """
    pairs = [(attribute.name, ref) for attribute in attributes if attribute.name for ref in classes]
    for name, ref in pairs:
        for body in mentions.of(name).functions.get(ref, ()):
            with shop.on(ref.file.path) as rewrite:
                rewrite.remove(function_node(rewrite.tree, body))
    for name, ref in pairs:
        found = mentions.of(name).writes.get(ref, [])
        with shop.on(ref.file.path) as rewrite:
            writes = [(body, item) for body, item in found if not rewrite.is_gone(_target(rewrite, item))]
            if writes:
                drop_attribute(rewrite, rewrite.tree.class_def(ref.name), name, _makers(item for _, item in writes))
                _tidy(rewrite, ref, writes, mentions)


def _target(rewrite: Rewrite, assign: Assign) -> cst.CSTNode:
    kind = cst.Attribute if "." in assign.target else cst.Name
    return rewrite.tree.find(assign.span, kind)


def _makers(writes: Iterable[Assign]) -> set[str]:
    """What is called to make a carrier."""
    values = (item.value for item in writes if item.value is not None)
    calls = (call for value in values for call in value.walk() if call.kind == "call")
    return {call.items[0].text.rpartition(".")[2] for call in calls}


# What was written only to make them


def _tidy(rewrite: Rewrite, ref: ClassRef, writes: Iterable[tuple[Body, Assign]], mentions: MentionIndex) -> None:
    for body, assign in writes:
        for name in _own_methods(body, assign):
            uses = mentions.of(name)
            if name.startswith("_") and not uses.quoted and set(uses.uses) | set(uses.functions) == {ref}:
                _delete(rewrite, ref, name)
        if body.function is not None:
            function = function_node(rewrite.tree, body)
            names = {item.text for item in assign.value.walk()} if assign.value is not None else set()
            for name in sorted(names & {item.target for item in body.scope.assigns}):
                _drop_local(rewrite, function, name, _makers(body.scope.assigns))
            _close(rewrite, _target(rewrite, assign))
            _drop_emptied(rewrite, function, mentions, ref)


def _own_methods(body: Body, assign: Assign) -> Iterator[str]:
    for item in assign.value.walk() if assign.value is not None else ():
        holder, _, name = item.callee.rpartition(".")
        if holder and holder == body.this:
            yield name


def _delete(rewrite: Rewrite, ref: ClassRef, name: str) -> None:
    try:
        delete_definition(rewrite, rewrite.tree.method(ref.name, name))
    except (Refused, LookupError):
        return


def _drop_local(rewrite: Rewrite, function: cst.FunctionDef, name: str, pure: set[str]) -> None:
    try:
        drop_local(rewrite, function, name, pure)
    except Refused:
        return


def _close(rewrite: Rewrite, node: cst.CSTNode) -> None:
    """Take out the conditions around a node in which nothing is left."""
    around = rewrite.tree.enclosing(node, cst.If)
    while around is not None:
        above = rewrite.tree.parent(around)
        if not (isinstance(above, cst.If) and above.orelse is around):
            if any(_left(rewrite, around)) or any(effects(rewrite.tree, around.test)):
                return
            rewrite.remove(around)
        around = rewrite.tree.enclosing(around, cst.If)


def _left(rewrite: Rewrite, node: cst.If | cst.Else | None) -> Iterator[cst.CSTNode]:
    """What is left in all branches of a condition."""
    if node is not None:
        yield from rewrite.remaining(node.body.body)
        yield from _left(rewrite, node.orelse) if isinstance(node, cst.If) else ()


def _drop_emptied(rewrite: Rewrite, function: cst.FunctionDef, mentions: MentionIndex, ref: ClassRef) -> None:
    """Take out a private method in which nothing is left, and its calls."""
    tree, name = rewrite.tree, function.name.value
    docstring = tree.docstring(function)
    left = [item for item in rewrite.remaining(function.body.body) if getattr(item, "value", None) is not docstring]
    found = mentions.of(name)
    if left or not name.startswith("_") or name.startswith("__") or set(found.uses) | set(found.functions) != {ref}:
        return
    calls = [item for item in tree.calls(name) if isinstance(item.func, cst.Attribute)]
    try:
        with rewrite.all_or_nothing():
            delete_calls(rewrite, calls)
            delete_definition(rewrite, function)
    except Refused:
        return
