"""Expressions that are values of an enumeration, and uses of one that a plain string does not support."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import msgspec

from opschema_cli.migrate.codemods.definitions import function_node
from opschema_cli.migrate.codemods.scopes import dotted, local_uses
from opschema_cli.migrate.migration import Note
from opschema_cli.migrate.workbench import Workbench
from opschema_cli.source.bodies import Body, param_for
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.resolution import ClassRef, ValueRef
from opschema_cli.source.text import Place
from opschema_rules.magi.migrations.trees import is_inner, meaning, meta_body
from opschema_rules.magi.model import MagiOp, MagiTree
from opschema_rules.magi.signature import Leaf

MAX_HANDED = 4
"""Maximum length of a chain of functions to follow a parameter through."""

_OF_STRINGS = frozenset(dir(str))


class EnumValues(msgspec.Struct, frozen=True):
    """Recognises the values of one enumeration."""

    tree: MagiTree
    ref: ClassRef

    def has(self, file: PythonFile, tree: PythonTree, node: cst.BaseExpression) -> bool:
        """Whether an expression is a member, by name, by value or by key, or a parameter or field annotated with it."""
        if isinstance(node, cst.Call):
            return meaning(self.tree.bodies, file, tree, node.func) == self.ref
        if isinstance(node, cst.Subscript):
            return meaning(self.tree.bodies, file, tree, node.value) == self.ref
        found = meaning(self.tree.bodies, file, tree, node)
        if isinstance(found, ValueRef) and found.owner == self.ref:
            return True
        return self._is_annotated(file, tree, node) or self._is_field(file, tree, node)

    def _is_annotated(self, file: PythonFile, tree: PythonTree, node: cst.BaseExpression) -> bool:
        if not isinstance(node, cst.Name) or is_inner(tree, node, node.value):
            return False
        binder = self.tree.bodies.at(file, tree.span(node).start).binder(node.value)
        param = next((item for item in binder.params if item.name == node.value), None) if binder is not None else None
        annotation = param.annotation if param is not None and param.by_name else None
        return binder is not None and annotation is not None and self._means(binder.parent or binder, annotation)

    def _means(self, body: Body, annotation: Expr) -> bool:
        """Whether an annotation is the enumeration, or that or None."""
        if annotation.kind == "subscript" and annotation.items[0].text.rpartition(".")[2] == "Optional":
            return self._means(body, annotation.items[1])
        if annotation.kind == "binary":
            return any(self._means(body, item) for item in annotation.items)
        name = annotation.text if annotation.kind == "name" else annotation.value
        return isinstance(name, str) and bool(name) and self.tree.bodies.resolve(body, name.strip()) == self.ref

    def _is_field(self, file: PythonFile, tree: PythonTree, node: cst.BaseExpression) -> bool:
        """Whether it is ``cfg.mode`` of an op's parameter that is a dataclass with such a field."""
        first, _, rest = dotted(node).partition(".")
        if not rest:
            return False
        binder = self.tree.bodies.at(file, tree.span(node).start).binder(first)
        for op in self.tree.ops if binder is not None and not is_inner(tree, node, first) else ():
            if binder in (op.body, meta_body(op)):
                leaves = op.lowering.leaves
                if any(_is_leaf(leaf, (first, *rest.split(".")), self.ref) for leaf in leaves):
                    return True
        return False


def _is_leaf(leaf: Leaf, path: tuple[str, ...], ref: ClassRef) -> bool:
    return leaf.path == path and leaf.enum is not None and leaf.enum.ref == ref


def string_uses(tree: MagiTree, workbench: Workbench, op: MagiOp, ref: ClassRef) -> Iterator[Note]:
    """Yield notes on uses of the value, by an op and by functions that it passes the value to, that a plain string does not
    support.
    """
    seen: set[tuple[int, str]] = set()
    paths = [leaf.path for leaf in op.lowering.leaves if leaf.enum is not None and leaf.enum.ref == ref]
    for body in filter(None, (op.body, meta_body(op))):
        for path in paths:
            yield from _asked(tree, workbench, body, path, seen, MAX_HANDED)


def _asked(
    tree: MagiTree, workbench: Workbench, body: Body, path: tuple[str, ...], seen: set[tuple[int, str]], hops: int
) -> Iterator[Note]:
    name = ".".join(path)
    if hops <= 0 or body.function is None or (id(body), name) in seen or body.function.param(path[0]) is None:
        return
    seen.add((id(body), name))
    with workbench.on(body.file.path) as rewrite:
        uses = local_uses(rewrite, function_node(rewrite.tree, body), path[0])
        for use in uses:
            yield from _asked_by(rewrite.tree, body, use, path)
    for call in body.scope.calls:
        target = tree.bodies.called(body, call.callee)
        for index, item in enumerate(call.items):
            if index and target is not None and item.kind == "name" and item.text == name:
                param = param_for(call, index, target.params)
                if param is not None:
                    yield from _asked(tree, workbench, target, (param.name,), seen, hops - 1)


def _asked_by(tree: PythonTree, body: Body, use: cst.Name, path: tuple[str, ...]) -> Iterator[Note]:
    node: cst.CSTNode = use
    for name in path[1:]:
        above = tree.parent(node)
        if not isinstance(above, cst.Attribute) or above.attr.value != name:
            return
        node = above
    above = tree.parent(node)
    where, what = ".".join(path), ""
    if isinstance(above, cst.Attribute) and above.value is node and above.attr.value not in _OF_STRINGS:
        what = f"`{where}.{above.attr.value}`"
    call = tree.parent(above) if isinstance(above, cst.Arg) else None
    if isinstance(call, cst.Call) and isinstance(above, cst.Arg):
        asks = dotted(call.func) == "isinstance" and call.args[0] is above and dotted(call.args[-1].value) != "str"
        what = f"`{tree.code(call)}`" if asks or dotted(call.func) == "type" else what
    if what:
        place = Place(body.file.path, tree.span(call if isinstance(call, cst.Call) else above or node))
        yield Note(place, f"inside of an op `{where}` is a plain string: {what} means something else there")
