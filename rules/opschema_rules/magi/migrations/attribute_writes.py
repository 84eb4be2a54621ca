"""Writes to attributes of a dataclass's instances, anywhere in the workspace: assigned, deleted or set by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import libcst as cst

from opschema_cli.migrate.codemods.scopes import dotted
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import texts_with
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.python import PythonFile
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.resolution import ClassRef
from opschema_cli.source.text import Place
from opschema_rules.magi.dataclasses import Dataclass
from opschema_rules.magi.migrations.instances import Instances
from opschema_rules.magi.migrations.trees import naming
from opschema_rules.magi.model import MagiTree

_WRITES = r"""
    \.[\s\\]*(?:{names})\b[^=\n]{{0,200}}=(?!=)               # assigned, maybe with others
  | \.[\s\\]*(?:{names})\b\s*[,)\]][^=;:]{{0,200}}=(?!=)      # with others, over lines
  | \b(?:del|for|as)\b[^=;:]{{0,200}}\.[\s\\]*(?:{names})\b
  | \b(?:setattr|delattr|__setattr__|__delattr__)\b
"""
"""Pattern of texts that may write one of the names; each attempt examines up to a few hundred characters."""

Write: TypeAlias = "tuple[cst.CSTNode, cst.BaseExpression, str]"
"""A node that writes an attribute, the object, and the attribute's name; empty for an unknown one."""

_SETTERS = frozenset({"setattr", "delattr", "__setattr__", "__delattr__"})


class AttributeWrites:
    """Finds the writes to instances of one class after another."""

    def __init__(self, draft: Draft, tree: MagiTree, workbench: Workbench) -> None:
        self.draft = draft
        self.tree = tree
        self.workbench = workbench
        self._written: dict[str, list[Write]] = {}

    def refuse(self, item: Dataclass, family: Sequence[ClassRef]) -> None:
        """Check that no instance is written to.

        Raises:
            LeftAlone: one is, or may be.
        """
        instances = Instances(self.tree, family)
        near = {file.path for ref in family for file in self._naming(ref)}
        for file in self._files(item, near):
            tree = self.workbench.tree(file.path)
            for write in self._writes(file.path, tree):
                self._judge(item, instances, file, tree, write, file.path in near)

    def _writes(self, path: str, tree: PythonTree) -> list[Write]:
        if path not in self._written:
            self._written[path] = list(_writes(tree))
        return self._written[path]

    def _judge(
        self, item: Dataclass, instances: Instances, file: PythonFile, tree: PythonTree,
        write: Write, near: bool,
    ) -> None:  # fmt: skip
        node, holder, name = write
        suspicious = name in _names(item) or (not name and near)
        answer = instances.of(file, tree, holder)
        if answer == "yes" or (answer == "unknown" and suspicious):
            what = f"`{tree.code(node)}` is written" if name else f"`{tree.code(node)}` sets attributes by name"
            doubt = "" if answer == "yes" else f"; whether `{tree.code(holder)}` is a `{item.name}` is not known"
            raise LeftAlone(Place(file.path, tree.span(node)), what + doubt)

    def _naming(self, ref: ClassRef) -> list[PythonFile]:
        return naming(self.draft, self.tree.bodies, ref.name, lambda found: found == ref)

    def _files(self, item: Dataclass, near: set[str]) -> Iterator[PythonFile]:
        """The files that may write to an instance: those that write a field's name, and near the class any name."""
        words = _names(item)
        fields = re.compile(_WRITES.format(names="|".join(map(re.escape, sorted(words)))), re.VERBOSE)
        found = (source for source in texts_with(self.draft.project, words) if fields.search(source.text))
        paths = {source.path for source in found if source.path.endswith(".py")} | near
        for path in sorted(paths):
            file = self.draft.project.python(path)
            if file is not None:
                yield file


def _names(item: Dataclass) -> set[str]:
    """Attributes of instances that may be assigned: fields, and properties with a setter."""
    setters = {
        function.name
        for function in item.made.cls.body.functions
        if any(name.endswith((".setter", ".deleter")) for name in function.decorator_names)
    }
    return {field.name for field in item.fields} | setters


def _writes(tree: PythonTree) -> Iterator[Write]:
    """The attributes that a file writes."""
    for node in tree.nodes:
        if type(node) is cst.Attribute and _is_written(tree, node):
            yield node, node.value, node.attr.value
        elif type(node) is cst.Call:
            yield from _set_by_name(tree, node)


def _is_written(tree: PythonTree, node: cst.Attribute) -> bool:
    child: cst.CSTNode = node
    above = tree.parent(node)
    while isinstance(above, cst.Element | cst.StarredElement | cst.Tuple | cst.List):
        child, above = above, tree.parent(above)
    if isinstance(above, cst.AnnAssign | cst.AugAssign | cst.Del | cst.For | cst.CompFor):
        return above.target is child and not (isinstance(above, cst.AnnAssign) and above.value is None)
    return isinstance(above, cst.AssignTarget | cst.AsName)


def _set_by_name(tree: PythonTree, call: cst.Call) -> Iterator[Write]:
    callee = dotted(call.func)
    last = call.func.attr.value if isinstance(call.func, cst.Attribute) else callee
    if last not in _SETTERS or not call.args:
        return
    if callee in ("setattr", "delattr"):
        yield call, call.args[0].value, _text(call.args[1].value if len(call.args) > 1 else None)
    elif isinstance(call.func, cst.Attribute) and callee.rpartition(".")[0] not in ("object", ""):
        yield call, call.func.value, _text(call.args[0].value)


def _text(node: cst.BaseExpression | None) -> str:
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    return value if isinstance(value, str) else ""
