"""Reads the names that FlyDSL's modules have out of their texts; nothing is imported. It writes ``api.json``, too:

    python -m opschema_rules.flydsl.api_reading FOLDER

``FOLDER`` holds a folder for each release, called after its number, with what the wheel holds. What ``api.json`` says of
releases that are not there is kept.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from packaging.version import InvalidVersion, Version

from opschema_cli.source.resolution import HARMLESS_BASES
from opschema_rules.flydsl.api_table import PATH, Api, load_api, render_api

ROOT = "flydsl"
WRAPPERS = ("from_dlpack", "from_torch_tensor")

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Names(msgspec.Struct):
    """The names of one module; ``exported`` is its ``__all__``. Not all are known when it is ``open``."""

    names: set[str] = msgspec.field(default_factory=set)
    exported: set[str] | None = None
    open: bool = False

    @property
    def starred(self) -> set[str]:
        """What ``import *`` takes."""
        return self.exported if self.exported is not None else {name for name in self.names if name[0] != "_"}


class Package(Mapping[str, "frozenset[str] | None"]):
    """The names that the modules of one FlyDSL have; None for a module of which not all are known.

    ``paths`` are its files from the folder that holds the package, and ``read`` gives their texts.
    """

    def __init__(self, paths: Iterable[str], read: Callable[[str], str]) -> None:
        self.paths = {
            _module(path): path for path in sorted(paths, key=_is_package)
        }  # which hides the file of its name
        self._text = read
        self._trees: dict[str, ast.Module] = {}
        self._names: dict[str, Names] = {}
        self._kept: dict[str, frozenset[str] | None] = {}

    @classmethod
    def of_folder(cls, folder: Path) -> Package:
        """The package in a folder."""
        paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*.py")]
        return cls(paths, lambda path: (folder / path).read_text(encoding="utf-8"))

    def __getitem__(self, module: str) -> frozenset[str] | None:
        if module not in self.paths:
            raise KeyError(module)
        if module not in self._kept:
            found = self.names(module)
            below = (name.removeprefix(f"{module}.") for name in self.paths if name.startswith(f"{module}."))
            inner = {name.partition(".")[0] for name in below}
            self._kept[module] = None if found.open else frozenset(found.names | inner)
        return self._kept[module]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.paths))

    def __len__(self) -> int:
        return len(self.paths)

    def api(self) -> Api:
        """The names by public module, and what the wrapped tensors have by wrapper."""
        found: Api = {name: names for name, names in self.items() if not re.search(r"\._", name)}
        made = {f"{ROOT}.compiler.{wrapper}()": self.members(wrapper) for wrapper in WRAPPERS}
        return {**found, **{name: names for name, names in made.items() if names is not None}}

    def members(self, wrapper: str) -> frozenset[str] | None:
        """What the instances have that a wrapper's annotation says it returns."""
        tree = self._tree(f"{ROOT}.compiler.jit_argument")
        body = tree.body if tree is not None else []
        classes = {item.name: item for item in body if isinstance(item, ast.ClassDef)}
        function = next((item for item in body if isinstance(item, ast.FunctionDef) and item.name == wrapper), None)
        made = function.returns if function is not None else None
        if not isinstance(made, ast.Name) or made.id not in classes:
            return None
        lineage = list(_lineage(classes, made.id, set()))
        return (
            None if None in lineage else frozenset(name for cls in lineage if cls is not None for name in _members(cls))
        )

    def names(self, module: str) -> Names:
        """A module's own names; none are known of one that is compiled, or that does not parse."""
        if module not in self._names:
            self._names[module] = Names(open=True)  # what modules have that take each other's names is not known
            tree = self._tree(module)
            if tree is not None:
                self._names[module] = self._read(module, tree)
        return self._names[module]

    def _tree(self, module: str) -> ast.Module | None:
        if module not in self._trees and module in self.paths:
            try:
                self._trees[module] = ast.parse(self._text(self.paths[module]))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return None
        return self._trees.get(module)

    def _read(self, module: str, tree: ast.Module) -> Names:
        found = Names()
        for item in _statements(tree.body):
            if isinstance(item, _DEFINITIONS):
                found.names.add(item.name)
            elif isinstance(item, ast.Import):
                found.names |= {alias.asname or alias.name.partition(".")[0] for alias in item.names}
            elif isinstance(item, ast.ImportFrom):
                self._import(found, self._absolute(module, item), item)
            else:
                _assign(found, item)
        return _with_lazy(found, tree)

    def _import(self, found: Names, module: str, item: ast.ImportFrom) -> None:
        for alias in item.names:
            if alias.name == "*":
                taken = self.names(module)
                found.names |= taken.starred
                found.open |= taken.open and taken.exported is None
            else:
                found.names.add(alias.asname or alias.name)

    def _absolute(self, module: str, item: ast.ImportFrom) -> str:
        if not item.level:
            return item.module or ""
        parts = module.split(".")
        base = parts[: len(parts) - item.level + _is_package(self.paths[module])]
        return ".".join([*base, *filter(None, [item.module])])


def _is_package(path: str) -> bool:
    return path.endswith("/__init__.py")


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those in its branches too."""
    for item in body:
        yield item
        if not isinstance(item, _DEFINITIONS):
            for name in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(item, name, ()))
            for handler in getattr(item, "handlers", ()):
                yield from _statements(handler.body)


def _assign(found: Names, item: ast.stmt) -> None:
    targets = item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)]
    targets += [part.optional_vars for part in getattr(item, "items", ())]
    names = {part.id for target in targets if target for part in ast.walk(target) if isinstance(part, ast.Name)}
    found.names |= names
    if "__all__" in names and isinstance(item, ast.Assign | ast.AugAssign | ast.AnnAssign):
        parts = item.value.elts if isinstance(item.value, ast.List | ast.Tuple) else []
        words = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
        found.exported = (found.exported or set()) | words
        found.open |= len(words) != len(parts) or not parts


def _with_lazy(found: Names, tree: ast.Module) -> Names:
    """With what ``__getattr__`` imports by a table of the module: ``{"rocdl": ".rocdl"}``."""
    if "__getattr__" in found.names:
        tables = [item.value for item in tree.body if isinstance(item, ast.Assign) and isinstance(item.value, ast.Dict)]
        pairs = [pair for table in tables for pair in zip(table.keys, table.values, strict=True)]
        lazy = {key.value for key, value in pairs if isinstance(key, ast.Constant) and _is_relative(value)}
        found.names |= {name for name in lazy if isinstance(name, str)}
        found.open |= not lazy
    return found


def _is_relative(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value.startswith(".")


def _lineage(classes: dict[str, ast.ClassDef], name: str, seen: set[str]) -> Iterator[ast.ClassDef | None]:
    """A class and its ancestors in a module; None for one that may have any attribute."""
    if name in seen:
        return
    seen.add(name)
    yield classes[name]
    for base in classes[name].bases:
        text = _dotted(base)
        if text in classes:
            yield from _lineage(classes, text, seen)
        elif text not in HARMLESS_BASES:
            yield None


def _dotted(expr: ast.expr) -> str:
    """A name of one word or two; empty for any other expression."""
    if isinstance(expr, ast.Attribute) and isinstance(expr.value, ast.Name):
        return f"{expr.value.id}.{expr.attr}"
    return expr.id if isinstance(expr, ast.Name) else ""


def _members(cls: ast.ClassDef) -> Iterator[str]:
    for part in ast.walk(cls):
        if isinstance(part, ast.FunctionDef):
            yield part.name
        elif isinstance(part, ast.Attribute | ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.attr if isinstance(part, ast.Attribute) else part.id


def main(folder: Path) -> None:
    """Writes ``api.json``."""
    found = dict(load_api())
    for path in folder.iterdir():
        try:
            found[Version(path.name)] = Package.of_folder(path).api()
        except InvalidVersion:
            continue
    PATH.write_bytes(render_api(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
