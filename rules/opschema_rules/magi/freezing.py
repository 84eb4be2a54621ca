"""Freezes a dataclass, and decides whether that may break its uses in the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import FileEdit, Fix
from opschema_cli.source.call_edits import with_arguments
from opschema_cli.source.resolution import ClassRef
from opschema_cli.source.text import Edit, Span
from opschema_cli.workspace import ReadError
from opschema_rules.magi.dataclasses import Dataclass
from opschema_rules.magi.makers import MAKERS
from opschema_rules.magi.model import MagiOp

_OPERATORS = rb"(?:=(?!=)|(?:[-+*/%@&|^]|//|\*\*|<<|>>)=|:(?!=)[^\n=]*=(?!=))"
_OTHER_TARGETS = rb"\b(?:del|for|as)\b[^=;:\n]*\.(?:%b)\b|\.(?:%b)\s*[,)\]][^=;:]{0,200}=(?!=)"
"""Pattern of texts that may write one of the fields other than by a plain assignment."""

_BY_NAME = re.compile(rb"\b(?:setattr|delattr|__setattr__|__delattr__|__dict__|vars)\b|\bpatch\.object\b")
_SETTERS = frozenset({"__setattr__", "__delattr__"})


def freezing(op: MagiOp, found: Dataclass) -> Fix | None:
    """Return the edit that freezes a dataclass; None if it cannot work, unsafe if code may write to instances."""
    edit = _edit(op, found)
    if edit is None or _writes_itself(found) or _inherits(op, found):
        return None
    reason = _risk(op, found)
    title = f"freeze `{found.name}`"
    edits = (FileEdit(found.made.file.path, edit),)
    return Fix(title, edits, "unsafe", reason) if reason else Fix(title, edits)


def _edit(op: MagiOp, found: Dataclass) -> Edit | None:
    maker, file = found.maker, found.made.file
    if op.tree.lowerer.dataclasses.makers.named(found.body, maker) not in MAKERS or found.made != found.ref:
        return None
    if maker.kind != "call":
        return Edit(Span(maker.end, maker.end), "(frozen=True)")
    given = maker.keyword("frozen")
    if given is not None:
        return Edit(given.span, "True")
    return with_arguments(file.source.text, maker, ["frozen=True"]) if "**" not in maker.keywords else None


def _writes_itself(found: Dataclass) -> bool:
    """Whether its own methods assign to an instance."""
    functions = found.ref.cls.body.functions
    if any(item.name in _SETTERS for item in functions):
        return True
    this = {item.params[0].name for item in functions if item.params}
    targets = [item.target for function in functions for scope in function.body.walk() for item in scope.assigns]
    return any(target.partition(".")[0] in this and "." in target for target in targets)


def _inherits(op: MagiOp, found: Dataclass) -> bool:
    """Whether it inherits from a dataclass, which would have to be frozen, too."""
    line = op.tree.lowerer.classes.line(found.ref)
    bases = [item for item in (line if isinstance(line, list) else []) if isinstance(item, ClassRef)]
    return any(op.tree.lowerer.dataclasses.of(base) is not None for base in bases if base != found.ref)


def _risk(op: MagiOp, found: Dataclass) -> str:
    """The reason why something may break; empty when nothing does."""
    name = re.escape(found.name.encode())
    inherits = re.compile(rb"^\s*class\s+\w+\([^)]*\b" + name + rb"\b", re.MULTILINE)
    fields = b"|".join(re.escape(item.name.encode()) for item in found.fields)
    writes = re.compile(rb"\.(?:" + fields + rb")\s*" + _OPERATORS) if fields else None
    others = re.compile(_OTHER_TARGETS % (fields, fields), re.MULTILINE) if fields else None
    names = {item.name for item in found.fields}
    named = re.compile(rb"\b" + name + rb"\b")
    for path, data in _sources(op):
        if inherits.search(data):
            return f"a class in `{path}` inherits from it, and has to be frozen, too"
        if writes is not None and writes.search(data):
            return f"code in `{path}` assigns an attribute of the name of one of its fields"
        if others is not None and others.search(data) and _assigns(op, path, names):
            return f"code in `{path}` assigns or deletes an attribute of the name of one of its fields"
        if named.search(data) and _BY_NAME.search(data):
            return f"code in `{path}` sets attributes by name"
        if named.search(data) and _extends(op, path, found.name):
            return f"code in `{path}` assigns an attribute of one"
    return ""


def _assigns(op: MagiOp, path: str, names: set[str]) -> bool:
    """Whether a file assigns or deletes an attribute of one of these names."""
    file = op.tree.project.python(path) if path.endswith(".py") else None
    scopes = file.body.walk() if file is not None else ()
    targets = (target for scope in scopes for target in (*(item.target for item in scope.assigns), *scope.deleted))
    return file is None or any("." in target and target.rpartition(".")[2] in names for target in targets)


def _extends(op: MagiOp, path: str, name: str) -> bool:
    """Whether a file assigns any attribute of a clear instance: a parameter of the class, or a value made from one."""
    file = op.tree.project.python(path) if path.endswith(".py") else None
    scopes = list(file.body.walk()) if file is not None else []
    functions = {id(function.body): function for scope in scopes for function in scope.functions}
    for scope in scopes:
        function = functions.get(id(scope))
        taken = (
            {
                item.name
                for item in function.params
                if item.annotation is not None and _last(item.annotation.text) == name
            }
            if function is not None
            else set()
        )
        made = {item.target for item in scope.assigns if item.value is not None and _last(item.value.callee) == name}
        if any("." in item.target and item.target.partition(".")[0] in taken | made for item in scope.assigns):
            return True
    return False


def _last(dotted: str) -> str:
    return dotted.rpartition(".")[2]


def _sources(op: MagiOp) -> Iterator[tuple[str, bytes]]:
    workspace = op.tree.project.workspace
    for path in workspace.files:
        if path.endswith((".py", ".ipynb")):
            try:
                yield path, workspace.data(path)
            except ReadError:
                continue
