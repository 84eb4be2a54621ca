"""`move-sources`: the paths of entries whose files have moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import NoMigrationOptions, Note, Site, migration
from opschema_cli.source.program import ClassRef
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_edit import YamlEditError, set_value
from opschema_rules.tileops.migrations.entries import manifests, refusal
from opschema_rules.tileops.migrations.fields import read_value
from opschema_rules.tileops.migrations.words import occurrences
from opschema_rules.tileops.model import SOURCE_PATH_KEYS, Manifest, OpEntry
from opschema_rules.tileops.rules.sources import op_class, source_path


class _Found(NamedTuple):
    """Where a file is now; ``doubt`` says on what it rests, if on less than the class it defines."""

    path: str
    doubt: str = ""


class _Fault(NamedTuple):
    """A path that a rule reports."""

    entry: OpEntry
    key: str
    node: Node
    reported: Diagnostic


@dataclass(frozen=True)
class _Move:
    """One path, or name of a kernel, to write."""

    entry: OpEntry
    key: str
    node: Node
    found: _Found


def find(draft: Draft, options: NoMigrationOptions) -> Iterator[Site]:
    """The paths that lead to no file, or to one without the op's class, and for which a new place is found."""
    for manifest in manifests(draft):
        for move in (*_moved_files(manifest), *_renamed_kernels(manifest)):
            title = f"write `source.{move.key}` of `{move.entry.name}` as `{move.found.path}`"
            codes = ("SRC103",) if "." in move.key else ("SRC101", "SRC102")
            yield Site(move.entry.at(move.node), title, (move.entry.name,), codes, move)


@migration("move-sources", find=find)
def move_sources(draft: Draft, sites: Sequence[Site], options: NoMigrationOptions) -> Iterator[Note]:
    """Write the paths under `source` whose files have moved as they are now.

    What is changed are the paths that `source-path` (SRC101) and `op-class` (SRC102) report, in `op`, `kernel`, `test` and
    `bench`, one path or a list. A file is found by what it holds: the op's class, the one kernel that `kernel_map` names,
    or the one file that defines all of them. Next by its name: the only file of that name, a package that became a module or
    the other way round, nearly that name in the same folder. A test or benchmark is found as the only one below the same top
    folder that names the op's class, or where the same path of every other entry went. What rests on less than a class is
    noted; so is what is found nowhere.

    A kernel in `kernel_map` that the entry's kernel files define in another case only (`GqaKernel`, now `GQAKernel`) is
    written as they do.

        opschema migrate move-sources
    """
    for site in sites:
        if isinstance(site.subject, _Move):
            yield from _apply(draft, site.subject)
    draft.settle()
    for manifest in manifests(draft):
        yield from map(_unfound, _faults(manifest))


def _apply(draft: Draft, move: _Move) -> Iterator[Note]:
    entry, node, (path, doubt) = move.entry, move.node, move.found
    try:
        draft.edit(entry.file.path, set_value(entry.file, node, path))
    except (YamlEditError, ValueError) as error:
        yield refusal(entry.at(node), f"write `{path}`", error)
        return
    if doubt:
        yield Note(entry.at(node), f"`source.{move.key}` of `{entry.name}` is now `{path}`, found {doubt}")


def _unfound(fault: _Fault) -> Note:
    entry, key, node, _ = fault
    return Note(
        entry.at(node), f"`source.{key}` of `{entry.name}` names `{node.value}`; where that is now is not known"
    )


def _faults(manifest: Manifest) -> Iterator[_Fault]:
    """The paths that the rules report, each once."""
    reported: dict[Place, Diagnostic] = {}
    for diagnostic in (*source_path(manifest), *op_class(manifest)):
        reported.setdefault(diagnostic.place, diagnostic)
    for entry in manifest.entries:
        for key in SOURCE_PATH_KEYS:
            for node, _ in entry.source_paths(key):
                found = reported.pop(entry.at(node), None)
                if found is not None:
                    yield _Fault(entry, key, node, found)


def _moved_files(manifest: Manifest) -> Iterator[_Move]:
    faults = list(_faults(manifest))
    found = [_from_rule(fault) or _search(fault) for fault in faults]
    went: dict[tuple[str, str], set[str]] = {}
    for fault, place in zip(faults, found, strict=True):
        if place is not None:
            went.setdefault((fault.key, fault.node.value), set()).add(place.path)
    for fault, place in zip(faults, found, strict=True):
        places = went.get((fault.key, fault.node.value), set())
        place = place or (_Found(min(places), "where other entries have it") if len(places) == 1 else None)
        if place is not None and place.path != fault.node.value:
            yield _Move(fault.entry, fault.key, fault.node, place)


def _from_rule(fault: _Fault) -> _Found | None:
    """What the rule's fix would write."""
    fix = fault.reported.fix
    if fix is None or len(fix.edits) != 1:
        return None
    path = read_value(fix.edits[0].edit.replacement)
    if not isinstance(path, str) or any(path == other for _, other in fault.entry.source_paths(fault.key)):
        return None  # the list has it already, so that this item stood for another file
    return _Found(path, "by its name alone" if fix.why_unsafe else "")


def _search(fault: _Fault) -> _Found | None:
    entry, key, node, _ = fault
    found = _by_kernels(entry, node) if key == "kernel" else None
    found = found or _by_name(entry.manifest, node.value) or _by_folding(entry.manifest, node.value)
    return found or (_by_mention(entry, node.value) if key in ("test", "bench") else None)


def _by_kernels(entry: OpEntry, node: Node) -> _Found | None:
    """The one file that defines kernels of the op, apart from those that the entry names already."""
    kernels = entry.data_at("source", "kernel_map")
    names = [name for name in kernels.values() if isinstance(name, str)] if isinstance(kernels, dict) else []
    homes = [entry.manifest.definitions.of_class(name) for name in names]
    named = {entry.manifest.locate(path) for other, path in entry.source_paths("kernel") if other is not node}
    left = {_as_written(entry.manifest, home, node.value) for home in homes if home is not None and home not in named}
    return _Found(left.pop()) if len(left) == 1 and None not in homes else None


def _renamed_kernels(manifest: Manifest) -> Iterator[_Move]:
    for entry in manifest.entries:
        owner = entry.get("source", "kernel_map")
        pairs = owner.pairs() if owner is not None else ()
        unknown = [(key, node) for key, node in pairs if manifest.definitions.of_class(node.value) is None]
        classes = _kernel_classes(entry) if unknown else set()
        for key, node in unknown:
            alike = [name for name in classes if name.lower() == node.value.lower()]
            if len(alike) == 1 and node.value not in classes:
                yield _Move(entry, f"kernel_map.{key.value}", node, _Found(alike[0], "as it is spelled there"))


def _kernel_classes(entry: OpEntry) -> set[str]:
    """The classes that the entry's kernel files define."""
    places = (entry.manifest.locate(path) for _, path in entry.source_paths("kernel"))
    files = (entry.manifest.project.python(place) for place in places if place is not None and place.endswith(".py"))
    return {name for file in files if file is not None for name in file.classes}


def _by_name(manifest: Manifest, path: str) -> _Found | None:
    found = manifest.definitions.of_basename(path) if manifest.locate(path) is None else None
    return _Found(_as_written(manifest, found, path), "by its name alone") if found is not None else None


def _by_folding(manifest: Manifest, path: str) -> _Found | None:
    """The module that a package has become, or the package that a module has."""
    folder = path.rpartition("/")[0]
    for candidate in (f"{folder}.py", f"{path.removesuffix('.py')}/__init__.py"):
        if folder and manifest.locate(candidate) is not None:
            return _Found(candidate, "by its name: a package has become a module, or the other way round")
    return None


def _by_mention(entry: OpEntry, path: str) -> _Found | None:
    """The only file below the same top folder that names the op's class."""
    ref, manifest = entry.op_class, entry.manifest
    top = path.partition("/")[0]
    below = top if manifest.base == "." else f"{manifest.base}/{top}"
    files = [item for item in manifest.project.workspace.under(below, ".py") if _is_named_like(item, path)]
    name = ref.name if isinstance(ref, ClassRef) else entry.name
    texts = ((item, manifest.project.source(item)) for item in files)
    naming = [item for item, source in texts if source is not None and any(occurrences(source.text, name))]
    found = _as_written(manifest, naming[0], path) if len(naming) == 1 else None
    return _Found(found, "as the only one that names its class") if found is not None else None


def _is_named_like(file: str, path: str) -> bool:
    """Whether two files are of one kind, by the first word of their names (``test_``, ``bench_``)."""
    return file.rpartition("/")[2].partition("_")[0] == path.rpartition("/")[2].partition("_")[0]


def _as_written(manifest: Manifest, path: str, old: str) -> str:
    """A workspace path the way the entry wrote the old one."""
    below = path if manifest.base == "." else path.removeprefix(f"{manifest.base}/")
    return below if old.startswith("src/") or not below.startswith("src/") else below.removeprefix("src/")
