"""Helpers, variables and imports that nothing uses any more once the carriers are removed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import libcst as cst

from opschema_cli.migrate.codemods.imports import drop_exports, drop_imports, unused_imports
from opschema_cli.migrate.codemods.rewrite import Refused, Rewrite
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import mentions
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.program import FunctionRef, Program, ValueRef
from opschema_cli.source.python import PythonFile
from opschema_cli.source.python_tree import PythonTree


@dataclass(frozen=True)
class Definition:
    """A function or variable of a module."""

    path: str
    name: str
    text: str = field(default="", compare=False)


class Leftovers:
    """Names in rewritten modules that lost a use; imports that lost every use are removed at once."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._lost: dict[str, list[str]] = {}

    def finish(self, path: str, rewrite: Rewrite) -> None:
        """Record what the rewrite of a file removed, and remove imports that nothing in the file uses any more."""
        file = self.draft.project.python(path)
        if file is not None:
            _drop_imports(rewrite, file)
            self._lost[path] = list(_lost_names(rewrite, file))

    def sweep(self, workbench: Workbench, bodies: Bodies) -> list[Definition]:
        """Remove code that only removed code used, in the package of ops. Return the removed definitions."""
        tried: list[Definition] = []
        removed: list[Definition] = []
        while dead := _unmentioned(
            workbench, bodies, [item for item in self._candidates(workbench, bodies) if item not in tried]
        ):
            tried += dead
            for item in dead:
                with suppress(LeftAlone), workbench.atomic():
                    _delete(workbench, item)
                    removed.append(item)
        return removed

    def _candidates(self, workbench: Workbench, bodies: Bodies) -> list[Definition]:
        """The package's definitions that some removed code used."""
        found: dict[Definition, None] = {}
        package = set(bodies.paths)
        for path in list(workbench.paths):
            workbench.edits(path)
            file = self.draft.project.python(path)
            for name in self._lost.get(path, ()) if file is not None else ():
                item = _definition(bodies.program, file, name) if file is not None else None
                if item is not None and item.path in package:
                    found[item] = None
        return list(found)


def _lost_names(rewrite: Rewrite, file: PythonFile) -> Iterator[str]:
    """The names of a module's scope that lost a use."""
    for name in (*file.functions, *file.assigns, *file.imports):
        if any(rewrite.is_gone(node) for node in rewrite.tree.names(name)):
            yield name


def _definition(program: Program, file: PythonFile, name: str) -> Definition | None:
    found = program.resolve(file, name)
    if isinstance(found, FunctionRef):
        return Definition(found.file.path, found.function.name, found.file.text(found.function.outer))
    if isinstance(found, ValueRef) and found.owner is None:
        return Definition(found.file.path, found.assign.target)
    return None


def _unmentioned(workbench: Workbench, bodies: Bodies, items: list[Definition]) -> list[Definition]:
    """Names that no code of the workspace uses any more, except to define, import or export them."""
    by_name: dict[str, list[Definition]] = {}
    for item in items:
        by_name.setdefault(item.name, []).append(item)
    paths = [path for path in bodies.program.files if path.endswith((".py", ".pyi"))]
    places: dict[str, set[str]] = {}
    for mention in mentions(workbench.draft.project, by_name.keys(), paths):
        places.setdefault(mention.name, set()).add(mention.place.path)
    return [
        item
        for name, found in by_name.items()
        if len(found) == 1 and not _is_used_in(workbench, places.get(name, ()), name)
        for item in found
    ]


def _is_used_in(workbench: Workbench, paths: Iterable[str], name: str) -> bool:
    """Whether the code of some files names something, other than to define, import or export it."""
    rewritten = {path for path in paths if path in workbench.paths}
    if any(_is_known(workbench.draft.project.python(path), name) for path in paths if path not in rewritten):
        return True
    for path in sorted(rewritten):
        if _is_mentioned(workbench, path, name):
            with workbench.on(path) as rewrite:
                if _is_used(rewrite, name):
                    return True
    return False


def _is_known(file: PythonFile | None, name: str) -> bool:
    """Whether a file uses, imports or exports a name; one that cannot be parsed may."""
    imported = {word for item in file.body.imports for word in (item.name, item.attr)} if file is not None else set()
    return file is None or name in imported or name in file.body.names()


def _is_mentioned(workbench: Workbench, path: str, name: str) -> bool:
    """Whether a name is a word in the rest of a rewritten file."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", workbench.text(path)) is not None


def _is_used(rewrite: Rewrite, name: str) -> bool:
    """Whether the rest of a file names something, other than to define, import or export it."""
    tree = rewrite.tree
    if any(not rewrite.is_gone(node) and not _is_module(tree, node) for node in tree.attributes(name)):
        return True
    if any(not rewrite.is_gone(node) and not _is_exported(tree, node) for node in tree.strings(name)):
        return True
    named = (node for node in tree.names(name) if not rewrite.is_gone(node) and not _is_module(tree, node))
    left = [node for node in named if not _is_bound(tree, node)]
    return any(tree.enclosing(node, cst.ImportAlias) is None for node in left) or (
        bool(left) and not unused_imports(rewrite, [name])
    )


def _is_exported(tree: PythonTree, node: cst.CSTNode) -> bool:
    statement = tree.statement(node)
    targets = statement.targets if isinstance(statement, cst.Assign) else []
    return any(isinstance(item.target, cst.Name) and item.target.value == "__all__" for item in targets)


def _is_module(tree: PythonTree, node: cst.CSTNode) -> bool:
    """Whether a node is part of the name of the module in ``from module import ...``."""
    statement = tree.enclosing(node, cst.ImportFrom)
    return statement is not None and tree.enclosing(node, cst.ImportAlias) is None


def _is_bound(tree: PythonTree, node: cst.Name) -> bool:
    """Whether a name is in its own top-level definition."""
    for item in (node, *tree.ancestors(node)):
        if isinstance(item, cst.FunctionDef) and item.name.value == node.value:
            return isinstance(tree.parent(item), cst.Module)
    above = tree.parent(node)
    if isinstance(above, cst.AssignTarget | cst.AnnAssign) and above.target is node:
        return isinstance(tree.parent(tree.parent(tree.statement(node)) or node), cst.Module)
    return False


def _delete(workbench: Workbench, item: Definition) -> None:
    for path in [path for path in workbench.paths if _is_mentioned(workbench, path, item.name)]:
        with workbench.on(path) as rewrite:
            names = [node for node in rewrite.tree.names(item.name) if not rewrite.is_gone(node)]
            if path != item.path and names:
                drop_imports(rewrite, [item.name])
            if rewrite.tree.strings(item.name):
                drop_exports(rewrite, [item.name])
    with workbench.on(item.path) as rewrite:
        for node in rewrite.tree.names(item.name):
            if not rewrite.is_gone(node) and _is_bound(rewrite.tree, node):
                above = rewrite.tree.parent(node)
                if isinstance(above, cst.FunctionDef):
                    rewrite.remove(above)
                elif isinstance(above, cst.AssignTarget | cst.AnnAssign):
                    rewrite.remove(rewrite.tree.statement(node))


def _drop_imports(rewrite: Rewrite, file: PythonFile) -> None:
    """Remove the imports that lost every use."""
    used = [name for name in file.imports if _lost_all(rewrite, name)]
    try:
        drop_imports(rewrite, used)
    except Refused:
        drop_imports(rewrite, unused_imports(rewrite, used))


def _lost_all(rewrite: Rewrite, name: str) -> bool:
    tree = rewrite.tree
    imported = [node for node in tree.names(name) if tree.enclosing(node, cst.ImportAlias) is not None]
    uses = [node for node in tree.names(name) if all(node is not item for item in imported)]
    lost = bool(uses) and all(rewrite.is_gone(node) for node in uses)
    return lost and not all(rewrite.is_gone(node) for node in imported)
