"""Custom ops that nothing calls any more: the calls that register them, and the ops themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import libcst as cst
import msgspec

from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.migrate.codemods.definitions import delete_calls, delete_definition, function_node
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.bodies import Bodies, Body, argument_for
from opschema_cli.source.program import ClassRef
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Span
from opschema_rules.tileops.custom_ops import CustomOp


class _Call(msgspec.Struct, frozen=True, eq=False):
    """A call of a factory: the argument that is the class, and the classes that it may be."""

    body: Body
    call: Expr
    value: Expr | None
    classes: frozenset[ClassRef]


class Registrar:
    """Removes registrations; the calls of each factory are looked up once."""

    def __init__(self, workbench: Workbench, bodies: Bodies) -> None:
        self.workbench = workbench
        self.bodies = bodies
        self.evaluator = TreeEvaluator(bodies)
        self._calls: dict[tuple[Body, str], dict[ClassRef, list[_Call]]] = {}

    def unregister(self, op: CustomOp, classes: Collection[ClassRef]) -> None:
        """Take back the registration of an op for some classes.

        Raises:
            LeftAlone: it is registered in a way that cannot be taken back for these alone.
        """
        factory = op.factory
        if factory is None or factory.function is None:
            _delete_op(self.workbench, self.bodies, op)
            return
        holder = _holder(op, factory)
        if not holder:
            raise LeftAlone(
                factory.at(factory.function.span), "it is not known on which classes this puts the custom op"
            )
        known = self._known(factory, holder)
        for call in dict.fromkeys(call for ref in classes for call in known.get(ref, ())):
            if call.classes <= set(classes):
                _delete_call(self.workbench, call.body, call.call)
            else:
                _leave_out(self.workbench, self.bodies, call, classes)
        if factory.params[0].name == holder:
            _undecorate(self.workbench, self.bodies, factory, classes)

    def _known(self, factory: Body, holder: str) -> dict[ClassRef, list[_Call]]:
        """The calls of a factory by class."""
        if (factory, holder) not in self._calls:
            found: dict[ClassRef, list[_Call]] = {}
            for body, call in self.bodies.calls_of(factory):
                value = argument_for(call, factory.params, holder)
                named = self.evaluator.classes(body, value) if value is not None else ()
                item = _Call(body, call, value, frozenset(named))
                for ref in item.classes:
                    found.setdefault(ref, []).append(item)
            self._calls[factory, holder] = found
        return self._calls[factory, holder]


def _puts(op: CustomOp) -> Iterator[tuple[str, str]]:
    """Yield the names of the objects that hold an op where it is registered, and of the attributes through which they do."""
    function, outer = op.body.function, op.body.parent
    for assign in outer.scope.assigns if outer is not None and function is not None else ():
        if function is not None and assign.value is not None and assign.value.text == function.name:
            holder, _, name = assign.target.rpartition(".")
            yield holder, name
    for call in outer.scope.calls if outer is not None and function is not None else ():
        plain = call.positional() if call.callee == "setattr" else []
        if len(plain) == 3 and function is not None and plain[2].text == function.name:
            yield plain[0].text, str(plain[1].value)


def put_as(op: CustomOp) -> set[str]:
    """The attributes by which classes hold an op."""
    return {name for holder, name in _puts(op) if holder}


def _holder(op: CustomOp, factory: Body) -> str:
    """The parameter of a factory that takes the class."""
    holders = {holder for holder, _ in _puts(op)} & {item.name for item in factory.params}
    return holders.pop() if len(holders) == 1 else ""


def _delete_call(workbench: Workbench, body: Body, call: Expr) -> None:
    """Remove a registering call; a loop that does nothing else is removed with it."""
    with workbench.on(body.file.path) as rewrite:
        node = rewrite.tree.find(call.span, cst.Call)
        loop = _loop_around(rewrite, node)
        if loop is not None and len(loop.body.body) == 1:
            rewrite.remove(loop)
        else:
            delete_calls(rewrite, [node])


def _loop_around(rewrite: Rewrite, call: cst.Call) -> cst.For | None:
    statement = rewrite.tree.parent(rewrite.tree.statement(call))
    suite = rewrite.tree.parent(statement) if statement is not None else None
    loop = rewrite.tree.parent(suite) if suite is not None else None
    return loop if isinstance(loop, cst.For) and loop.orelse is None else None


def _leave_out(workbench: Workbench, bodies: Bodies, call: _Call, classes: Collection[ClassRef]) -> None:
    """Take classes out of the list that a registering loop runs over."""
    with workbench.on(call.body.file.path) as rewrite:
        loop = _loop_around(rewrite, rewrite.tree.find(call.call.span, cst.Call))
        if loop is None or not isinstance(loop.iter, cst.List | cst.Tuple) or call.value is None:
            raise LeftAlone(
                call.body.at(call.call), "this registers other ops too; take the migrated ones out of it first"
            )
        elements = list(loop.iter.elements)
        removed = [index for index, item in enumerate(elements) if _names_one(bodies, call.body, item, classes)]
        rewrite.drop(elements, *removed, singleton_comma=isinstance(loop.iter, cst.Tuple))
        if len(loop.body.body) == 1 and all(rewrite.is_gone(item) for item in elements):
            rewrite.remove(loop)


def _names_one(bodies: Bodies, body: Body, item: cst.BaseElement, classes: Collection[ClassRef]) -> bool:
    """Whether an element is one of some classes, or a tuple that contains one."""
    parts = item.value.elements if isinstance(item.value, cst.Tuple | cst.List) else [item]
    names = [part.value.value for part in parts if isinstance(part.value, cst.Name)]
    return any(bodies.resolve(body, name) in classes for name in names)


def _undecorate(workbench: Workbench, bodies: Bodies, factory: Body, classes: Iterable[ClassRef]) -> None:
    for ref in classes:
        for decorator in ref.cls.decorators:
            found = bodies.program.resolve(ref.file, decorator.callee or decorator.text)
            if getattr(found, "function", None) is not factory.function:
                continue
            with workbench.on(ref.file.path) as rewrite:
                tree = rewrite.tree
                for node in tree.class_def(ref.name).decorators:
                    if tree.span(node.decorator) == decorator.span:
                        start, end = tree.span(node)
                        rewrite.replace(Span(tree.line_start(start), tree.line_end(end)), "")


def _delete_op(workbench: Workbench, bodies: Bodies, op: CustomOp) -> None:
    """Delete an op of its own: the implementations, the fake kernels, and the registrations that use their names."""
    if op.body.function is None:
        return
    if not op.body.function.decorators:
        raise LeftAlone(op.body.at(op.body.function.span), "this op is registered other than by a decorator")
    for body in dict.fromkeys(op.fakes):
        with workbench.on(body.file.path) as rewrite:
            rewrite.remove(function_node(rewrite.tree, body))
    _take_off(workbench, op)
    for body in op.bodies[::-1]:
        with workbench.on(body.file.path) as rewrite:
            delete_definition(rewrite, function_node(rewrite.tree, body))
    for body, call in _by_name(bodies, op):
        with workbench.on(body.file.path) as rewrite:
            node = rewrite.tree.find(call.span, cst.Call)
            if not rewrite.is_gone(node):
                delete_calls(rewrite, [node])


def _take_off(workbench: Workbench, op: CustomOp) -> None:
    """Remove the assignments that put an op on a class, beside its definition."""
    function, outer = op.body.function, op.body.parent
    for assign in outer.scope.assigns if outer is not None and function is not None else ():
        named = [item.text for item in assign.value.walk()] if assign.value is not None else []
        if function is not None and "." in assign.target and function.name in named:
            with workbench.on(op.body.file.path) as rewrite:
                statement = rewrite.tree.statement(rewrite.tree.find(assign.span, cst.Attribute))
                if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
                    rewrite.remove(statement)


def _by_name(bodies: Bodies, op: CustomOp) -> Iterator[tuple[Body, Expr]]:
    """The calls of ``torch.library`` that register something for an op by its name."""
    for body in bodies.of(op.body.file):
        for call in body.scope.calls:
            first = next(iter(call.positional()), None)
            named = first is not None and op.names is not None and first.value in op.names
            if named and bodies.external(body, call.callee).startswith("torch.library."):
                yield body, call
