"""The carriers of op classes, and code that was only written to make them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress

import libcst as cst

from opschema_cli.migrate.codemods.attributes import drop_attribute
from opschema_cli.migrate.codemods.definitions import delete_calls, delete_definition, function_node
from opschema_cli.migrate.codemods.names import drop_local
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import dotted, effects
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import ClassRef
from opschema_cli.source.python import Assign
from opschema_rules.tileops.carrier_attributes import CarrierAttribute
from opschema_rules.tileops.mentions import MentionIndex
from opschema_rules.tileops.own_writes import is_persistent


def drop_attributes(
    workbench: Workbench, attributes: Sequence[CarrierAttribute], classes: Collection[ClassRef], mentions: MentionIndex
) -> None:
    """Take carriers out of the classes that make them.

    Raises:
        LeftAlone: one is still used.
    """
    pairs = [(attribute.name, ref) for attribute in attributes if attribute.name for ref in classes]
    for name, ref in pairs:
        for body in mentions.of(name).functions.get(ref, ()):
            with workbench.on(ref.file.path) as rewrite:
                rewrite.remove(function_node(rewrite.tree, body))
    for name, ref in pairs:
        found = mentions.of(name).writes.get(ref, [])
        with workbench.on(ref.file.path) as rewrite:
            writes = [(body, item) for body, item in found if not rewrite.is_gone(_target(rewrite, item))]
            if writes:
                _drop_writes(rewrite, ref, name, writes)
                _tidy(workbench, rewrite, ref, writes, mentions, classes)


def _drop_writes(rewrite: Rewrite, ref: ClassRef, name: str, writes: Sequence[tuple[Body, Assign]]) -> None:
    """Remove the calls that write an attribute, and then its assignments."""
    makers = _makers(item for _, item in writes)
    calls = [(body, item) for body, item in writes if isinstance(_target(rewrite, item), cst.SimpleString)]
    for body, item in calls:
        call = next(call for call in body.scope.calls if call.span == item.statement)
        if call.callee != "setattr" and is_persistent(call):
            raise LeftAlone(body.at(call), f"state dicts hold the buffer `{name}`; drop it where they are loaded too")
        node = rewrite.tree.find(call.span, cst.Call)
        problems = [problem for arg in node.args for problem in effects(rewrite.tree, arg.value, makers)]
        if problems:
            raise Refused(problems)
        delete_calls(rewrite, [node])
    if len(calls) < len(writes):
        drop_attribute(rewrite, rewrite.tree.class_def(ref.name), name, makers)


def _target(rewrite: Rewrite, assign: Assign) -> cst.CSTNode:
    kind: type[cst.Attribute | cst.Name | cst.SimpleString] = cst.Attribute if "." in assign.target else cst.Name
    if rewrite.tree.text[assign.span.end - 1] in "\"'":  # the name that a call is given
        kind = cst.SimpleString
    return rewrite.tree.find(assign.span, kind)


def _makers(writes: Iterable[Assign]) -> set[str]:
    """Callees that make a carrier."""
    values = (item.value for item in writes if item.value is not None)
    calls = (call for value in values for call in value.walk() if call.kind == "call")
    return {call.items[0].text.rpartition(".")[2] for call in calls}


# What was written only to make them


def _tidy(
    workbench: Workbench,
    rewrite: Rewrite,
    ref: ClassRef,
    writes: Iterable[tuple[Body, Assign]],
    mentions: MentionIndex,
    classes: Collection[ClassRef],
) -> None:
    for body, assign in writes:
        for name in _own_methods(body, assign):
            uses = mentions.of(name)
            if (
                name.startswith("_")
                and not uses.quoted
                and not uses.writes
                and set(uses.uses) | set(uses.functions) == {ref}
            ):
                _delete(rewrite, ref, name)
        if body.function is not None:
            function = function_node(rewrite.tree, body)
            names = {item.text for item in assign.value.walk()} if assign.value is not None else set()
            for name in sorted(names & {item.target for item in body.scope.assigns}):
                _drop_local(rewrite, function, name, _makers(body.scope.assigns))
            _close(rewrite, _target(rewrite, assign))
            _drop_emptied(workbench, body, mentions, classes)


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


_SETTINGS = frozenset({"no_grad", "inference_mode", "device"})
"""Context managers that only set how tensors are made."""


def _close(rewrite: Rewrite, node: cst.CSTNode) -> None:
    """Remove the conditions and ``with`` blocks around a node in which nothing is left."""
    for around in rewrite.tree.ancestors(node):
        above = rewrite.tree.parent(around)
        if isinstance(around, cst.FunctionDef):
            return
        if isinstance(around, cst.With):
            if list(rewrite.remaining(around.body.body)) or not all(map(_is_setting, around.items)):
                return
            rewrite.remove(around)
        elif isinstance(around, cst.If) and not (isinstance(above, cst.If) and above.orelse is around):
            if any(_left(rewrite, around)) or any(effects(rewrite.tree, around.test)):
                return
            rewrite.remove(around)


def _is_setting(item: cst.WithItem) -> bool:
    call = item.item
    return isinstance(call, cst.Call) and item.asname is None and dotted(call.func).rpartition(".")[2] in _SETTINGS


def _left(rewrite: Rewrite, node: cst.If | cst.Else | None) -> Iterator[cst.CSTNode]:
    """Statements that remain in all branches of a condition."""
    if node is not None:
        yield from rewrite.remaining(node.body.body)
        yield from _left(rewrite, node.orelse) if isinstance(node, cst.If) else ()


def _drop_emptied(workbench: Workbench, method: Body, mentions: MentionIndex, classes: Collection[ClassRef]) -> None:
    """Remove a private method in which nothing is left, and its calls in the classes that have it."""
    name = method.function.name if method.function is not None else ""
    found = mentions.of(name)
    users = {*found.uses, *found.functions}
    alone = len(found.functions) == 1 and users <= {*classes, method.owner} and not found.quoted and not found.writes
    if not alone or not name.startswith("_") or name.startswith("__"):
        return
    paths = dict.fromkeys([method.file.path, *(ref.file.path for ref in classes)])
    with ExitStack() as opened:
        rewrites = [opened.enter_context(workbench.on(path)) for path in paths if path in workbench.paths]
        function = function_node(rewrites[0].tree, method)
        if _is_emptied(rewrites[0], function):
            with suppress(Refused), ExitStack() as stack:
                for rewrite in rewrites:
                    stack.enter_context(rewrite.all_or_nothing())
                for rewrite in reversed(rewrites):
                    _drop_calls(rewrite, name)
                delete_definition(rewrites[0], function)


def _is_emptied(rewrite: Rewrite, function: cst.FunctionDef) -> bool:
    docstring = rewrite.tree.docstring(function)
    return all(getattr(item, "value", None) is docstring for item in rewrite.remaining(function.body.body))


def _drop_calls(rewrite: Rewrite, name: str) -> None:
    """Remove the calls of a method, which are the only code that names it.

    Raises:
        Refused: something else does, or an argument may do something.
    """
    tree = rewrite.tree
    calls = [item for item in tree.calls(name) if isinstance(item.func, cst.Attribute)]
    acting = [item for item in calls if any(any(effects(tree, arg.value)) for arg in item.args)]
    named = [item for item in tree.attributes(name) if all(item is not call.func for call in calls)]
    if acting or named:
        raise Refused([Problem(tree.span(item).start, f"{name} is used") for item in (*acting, *named)])
    delete_calls(rewrite, calls)
