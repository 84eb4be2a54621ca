"""A person's changes in a commit, compared with those of a migration in its parent: data of manifests, code signatures."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from opschema_cli.cache import Cache
from opschema_cli.migrate.draft import Draft
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.tileops.detection import TileopsOptions
from opschema_rules.tileops.load import load
from opschema_rules.tileops.migrations.entries import manifests

Leaf = tuple[object, ...]

_PLACES = ("ops_manifest.yaml", "tileops/ops_manifest.yaml", "tileops/manifest/*.yaml", "src/tileops/manifest/*.yaml")


def manifest_texts(root: Path) -> dict[str, str]:
    """The manifest files of a tree by their paths."""
    return {
        path.relative_to(root).as_posix(): path.read_text() for place in _PLACES for path in sorted(root.glob(place))
    }


def open_parent(corpus: Path, commit: str) -> Draft:
    """The tree before a commit."""
    return _open(corpus / f"tileops-{commit}-parent", {})


def open_moved(corpus: Path, commit: str, below: str = "") -> Draft:
    """The tree after a commit, with the manifest from before it; ``below`` is where that moved to."""
    child = corpus / f"tileops-{commit}"
    before = {below + path: text for path, text in manifest_texts(corpus / f"tileops-{commit}-parent").items()}
    return _open(child, {**dict.fromkeys(manifest_texts(child), None), **before})


def _open(root: Path, overlay: Mapping[str, str | None]) -> Draft:
    plain = Workspace(root)
    workspace = plain.with_overlay(overlay) if plain.files and overlay else plain
    return Draft(Project(workspace, Cache.for_workspace(root)), lambda project: load(project, TileopsOptions()))


def entries_of(texts: Mapping[str, str]) -> dict[str, object]:
    """All entries of manifest files."""
    found: dict[str, object] = {}
    for text in texts.values():
        data = yaml.safe_load(text) or {}
        old = data.get("ops")
        found.update(old if isinstance(old, dict) and "signature" not in old else data)
    return found


def drafted_texts(draft: Draft) -> dict[str, str]:
    """The manifest files of a draft."""
    return {file.path: draft.text(file.path) for manifest in manifests(draft) for file in manifest.files}


def leaves(value: object, path: Leaf = ()) -> Iterator[tuple[Leaf, str]]:
    """The values of nested data by their paths; a list of plain values is one."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for number, item in enumerate(value):
            yield from leaves(item, (*path, number))
    else:
        yield path, repr(value)


@dataclass(frozen=True)
class Comparison:
    """Leaves that a person changed, those of them that the migration changed in the same way, and what it alone changed."""

    human: frozenset[Leaf]
    same: frozenset[Leaf]
    other: frozenset[Leaf]

    def of(self, *names: str) -> tuple[int, int, int]:
        """How many, how many of them reproduced, and how many besides, counting only leaves with one of ``names`` in them."""
        chosen = [
            {leaf for leaf in leaves if not names or set(names) & set(leaf)} for leaves in (self.human, self.same)
        ]
        return len(chosen[0]), len(chosen[1]), len(self.other)


def compare_data(corpus: Path, commit: str, draft: Draft) -> Comparison:
    """The parsed YAML of a parent, its migrated draft, and the commit."""
    before = dict(leaves(entries_of(manifest_texts(corpus / f"tileops-{commit}-parent"))))
    human = dict(leaves(entries_of(manifest_texts(corpus / f"tileops-{commit}"))))
    after = dict(leaves(entries_of(drafted_texts(draft))))
    changed = frozenset(key for key in {*before, *human} if before.get(key) != human.get(key))
    ours = frozenset(key for key in {*before, *after} if before.get(key) != after.get(key))
    same = frozenset(key for key in changed if after.get(key) == human.get(key))
    return Comparison(changed, same, ours - same)


def signatures(text: str) -> dict[str, str]:
    """The parameters of each function of a module, by its qualified name."""
    found: dict[str, str] = {}

    def walk(node: ast.AST, above: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = above + child.name if isinstance(child, ast.FunctionDef | ast.ClassDef) else ""
            if isinstance(child, ast.FunctionDef):
                found[name] = ast.unparse(child.args)
            walk(child, f"{name}." if name else above)

    walk(ast.parse(text), "")
    return found


def compare_code(corpus: Path, commit: str, draft: Draft, folder: str) -> Comparison:
    """The signatures of all functions that both trees have, below a folder."""
    parent, child = corpus / f"tileops-{commit}-parent", corpus / f"tileops-{commit}"
    human: set[Leaf] = set()
    same: set[Leaf] = set()
    other: set[Leaf] = set()
    for path in sorted((parent / folder).rglob("*.py")):
        name = path.relative_to(parent).as_posix()
        if not (child / name).is_file():
            continue
        before, after, wanted = (
            signatures(text) for text in (path.read_text(), draft.text(name), (child / name).read_text())
        )
        for function in before.keys() & wanted.keys():
            if before[function] != wanted[function]:
                human.add((name, function))
            if after.get(function) == wanted[function] != before[function]:
                same.add((name, function))
            elif after.get(function) != before[function]:
                other.add((name, function))
    return Comparison(frozenset(human), frozenset(same), frozenset(other))
