"""What nothing uses any more once the carriers are gone: helpers, variables, imports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import libcst as cst

from opschema_cli.migrate.codemods.imports import drop_exports, drop_imports, unused_imports
from opschema_cli.migrate.codemods.rewrite import Refused, Rewrite
from opschema_cli.migrate.mentions import mentions
from opschema_cli.source.program import FunctionRef, Program, ValueRef
from opschema_cli.source.python import PythonFile
from opschema_cli.source.python_tree import PythonTree
from opschema_rules.tileops.bodies import Bodies
from opschema_rules.tileops.migrations.drop_carrier.left import LeftAlone
from opschema_rules.tileops.migrations.drop_carrier.workshop import Workshop


@dataclass(frozen=True)
class Definition:
    """A function or variable of a module."""

    path: str
    name: str
    text: str = field(default="", compare=False)


def sweep(shop: Workshop, bodies: Bodies) -> list[Definition]:
    """Take out what only removed code used, in the package of ops; what was taken out."""
    tried: list[Definition] = []
    gone: list[Definition] = []
    while dead := _unmentioned(shop, bodies, [item for item in _lost(shop, bodies) if item not in tried]):
        tried += dead
        for item in dead:
            with suppress(LeftAlone), shop.atomic():
                _delete(shop, item)
                gone.append(item)
    for path, rewrite in shop.rewrites.items():
        _drop_imports(shop, path, rewrite)
    return gone


def _lost(shop: Workshop, bodies: Bodies) -> list[Definition]:
    """The package's definitions that some removed code used."""
    found: dict[Definition, None] = {}
    package = set(bodies.paths)
    for path, rewrite in shop.rewrites.items():
        file = shop.draft.project.python(path)
        for name in _lost_names(rewrite, file) if file is not None else ():
            item = _definition(bodies.program, file, name) if file is not None else None
            if item is not None and item.path in package:
                found[item] = None
    return list(found)


def _lost_names(rewrite: Rewrite, file: PythonFile) -> Iterator[str]:
    """The names of a module's scope of which a use is gone."""
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


def _unmentioned(shop: Workshop, bodies: Bodies, items: list[Definition]) -> list[Definition]:
    """Those that no code of the workspace names any more, but to define, import or export them."""
    by_name: dict[str, list[Definition]] = {}
    for item in items:
        by_name.setdefault(item.name, []).append(item)
    paths = [path for path in bodies.program.files if path.endswith((".py", ".pyi"))]
    places = {(found.name, found.place.path) for found in mentions(shop.draft.project, by_name.keys(), paths)}
    alive = {name for name, path in sorted(places) if _is_used(shop, path, name)}
    return [item for name, found in by_name.items() if name not in alive and len(found) == 1 for item in found]


def _is_used(shop: Workshop, path: str, name: str) -> bool:
    """Whether the code of a file names something, other than to define, import or export it."""
    rewrite, file = shop.rewrites.get(path), shop.draft.project.python(path)
    if rewrite is None or file is None:
        imported = (
            {word for item in file.body.imports for word in (item.name, item.attr)} if file is not None else {name}
        )
        return name in imported or (file is not None and name in file.body.names())
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
    """Whether a name stands in its own definition at the top of a module."""
    for item in (node, *tree.ancestors(node)):
        if isinstance(item, cst.FunctionDef) and item.name.value == node.value:
            return isinstance(tree.parent(item), cst.Module)
    above = tree.parent(node)
    if isinstance(above, cst.AssignTarget | cst.AnnAssign) and above.target is node:
        return isinstance(tree.parent(tree.parent(tree.statement(node)) or node), cst.Module)
    return False


def _delete(shop: Workshop, item: Definition) -> None:
    for path in shop.rewrites:
        with shop.on(path) as rewrite:
            names = [node for node in rewrite.tree.names(item.name) if not rewrite.is_gone(node)]
            if path != item.path and names:
                drop_imports(rewrite, [item.name])
            if rewrite.tree.strings(item.name):
                drop_exports(rewrite, [item.name])
    with shop.on(item.path) as rewrite:
        for node in rewrite.tree.names(item.name):
            if not rewrite.is_gone(node) and _is_bound(rewrite.tree, node):
                above = rewrite.tree.parent(node)
                if isinstance(above, cst.FunctionDef):
                    rewrite.remove(above)
                elif isinstance(above, cst.AssignTarget | cst.AnnAssign):
                    rewrite.remove(rewrite.tree.statement(node))


def _drop_imports(shop: Workshop, path: str, rewrite: Rewrite) -> None:
    """Take out the imports of which every use is gone."""
    file = shop.draft.project.python(path)
    used = [name for name in (file.imports if file is not None else ()) if _lost_all(rewrite, name)]
    try:
        drop_imports(rewrite, used)
    except Refused:
        drop_imports(rewrite, unused_imports(rewrite, used))


def _lost_all(rewrite: Rewrite, name: str) -> bool:
    uses = [node for node in rewrite.tree.names(name) if rewrite.tree.enclosing(node, cst.ImportAlias) is None]
    return bool(uses) and all(rewrite.is_gone(node) for node in uses)
