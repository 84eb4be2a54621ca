"""Attributes that instances of a class of the tree have, read without making one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.source.python import Function, Scope
from opschema_cli.source.resolution import HARMLESS_BASES, ClassRef, External, Unresolved
from opschema_cli.workspace import ReadError
from opschema_rules.magi.model import MagiTree

_OPEN = frozenset({"__getattr__", "__getattribute__", "__new__", "__class_getitem__"})
_SETTERS = frozenset({"object.__setattr__", "super().__setattr__", "setattr"})
_BY_NAME = ("__dict__", "vars(")


def attributes_of(tree: MagiTree, ref: ClassRef) -> frozenset[str] | None:
    """Return the names of all attributes of a class's instances; None if they are not known."""
    line = tree.lowerer.classes.line(ref)
    if not isinstance(line, list):
        return None
    owners = [item for item in line if isinstance(item, ClassRef)]
    outside = [item.name for item in line if isinstance(item, External) and item.name not in HARMLESS_BASES]
    if outside or any(_is_open(tree, owner) for owner in owners):
        return None
    found = [_own(owner.cls.body) for owner in owners]
    if None in found:
        return None
    return frozenset(dir(object)).union(*(names for names in found if names is not None))


def is_patched(tree: MagiTree, ref: ClassRef, name: str) -> bool:
    """Whether code of the workspace may give a class, or one of its bases, an attribute from outside."""
    line = tree.lowerer.classes.line(ref)
    names = [item.name for item in line if isinstance(item, ClassRef)] if isinstance(line, list) else []
    classes = "|".join(map(re.escape, names or [ref.name]))
    pattern = re.compile(rf"\b(?:{classes})\.{re.escape(name)}\b|setattr\(\s*(?:\w+\.)*(?:{classes})\b".encode())
    return any(pattern.search(data) for data in _sources(tree))


def is_inherited(tree: MagiTree, ref: ClassRef) -> bool:
    """Whether a class of the workspace may inherit from this one."""
    pattern = re.compile(rf"(?m)^\s*class\s+\w+\([^)]*\b{re.escape(ref.name)}\b".encode())
    return any(pattern.search(data) for data in _sources(tree))


def _is_open(tree: MagiTree, ref: ClassRef) -> bool:
    """Whether anything besides a class's body and its methods may give its instances attributes."""
    if ref.cls.metaclass is not None or isinstance(tree.lowerer.dataclasses.makers.of(ref), Unresolved):
        return True
    text = ref.file.source.text[ref.cls.outer.start : ref.cls.outer.end]
    return any(item.name in _OPEN for item in ref.cls.body.functions) or any(word in text for word in _BY_NAME)


def _own(body: Scope) -> set[str] | None:
    """The names that a class's body and its methods bind."""
    found = {item.target for item in body.assigns}
    found.update(item.name for item in body.functions)
    found.update(item.name for item in body.classes)
    for function in body.functions:
        written = _written(function)
        if written is None:
            return None
        found |= written
    return found


def _written(function: Function) -> set[str] | None:
    """Return the attributes that a method writes to its instance; None if it writes some by a computed name."""
    this = function.params[0].name if function.params else ""
    found = {target.removeprefix(f"{this}.") for target in function.written if target.startswith(f"{this}.")}
    for scope in function.body.walk():
        for call in scope.calls:
            if call.callee in _SETTERS or call.callee.endswith(".__setattr__"):
                values = [item.value for item in call.positional()[:2]]
                names = [item for item in values if isinstance(item, str)]
                if not names:
                    return None
                found.update(names)
    return found


def _sources(tree: MagiTree) -> Iterator[bytes]:
    workspace = tree.project.workspace
    for path in workspace.files:
        if path.endswith((".py", ".ipynb")):
            try:
                yield workspace.data(path)
            except ReadError:
                continue
