"""`move-sources`: the paths of entries whose files have moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import NoMigrationOptions, Note, Site, migration
from opschema_cli.source.yaml import Data, Node
from opschema_cli.source.yaml_edit import YamlEditError, set_value
from opschema_rules.tileops.migrations.entries import manifests, refusal
from opschema_rules.tileops.migrations.moved_files import Fault, Found, search
from opschema_rules.tileops.migrations.scopes import ENTRIES
from opschema_rules.tileops.model import SOURCE_PATH_KEYS, Manifest, OpEntry
from opschema_rules.tileops.proofs import ROWS
from opschema_rules.tileops.rules.sources import op_class, source_path


class _Move(msgspec.Struct, frozen=True):
    """One path, or name of a kernel, and its replacement; None if that is not known, with the unknown part."""

    entry: OpEntry
    key: str
    node: Node
    found: Found | None
    reason: str = ""


def find(draft: Draft, options: NoMigrationOptions) -> Iterator[Site]:
    """The paths that lead to no file, or to one without the op's class."""
    for manifest in manifests(draft):
        for move in (*_moved_files(manifest), *_renamed_kernels(manifest)):
            title = (
                f"write `source.{move.key}` of `{move.entry.name}` as {move.found.text if move.found else 'it is now'}"
            )
            codes = ("SRC103",) if "." in move.key else ("SRC101", "SRC102")
            yield Site(move.entry.at(move.node), title, (move.entry.name,), codes, move)


@migration(
    "move-sources",
    find=find,
    scope=ENTRIES,
    settled="every path leads to its file, or the file cannot be determined",
    proof=ROWS,
)
def move_sources(draft: Draft, sites: Sequence[Site], options: NoMigrationOptions) -> Iterator[Note]:
    """Update the paths under `source` whose files have moved.

    The migration changes the paths that `source-path` (SRC101) and `op-class` (SRC102) report, in `op`, `kernel`, `test`
    and `bench`, one path or a list. A file is found by its contents: the op's class, or the kernels that `kernel_map`
    names; where these are in several files now and the path was no part of a list, it becomes one. Of several classes with
    one name, the only one below the same top folder is used. Next by its name, but never a class's op: the same path in
    another case, the only file of that name or with that folder above it, a package that became a module or the other way
    round, nearly that name in the same folder. A test or benchmark is found as the only one below the same top folder that
    names the op's class. Last, the new place of the same path in all other entries. A file that belongs to another entry,
    and does not mention this one, does not count.

    A match on less than a class gets a note; so do paths for which nothing is found, and folders.

    A kernel in `kernel_map` that the entry's kernel files define in another case only (`GqaKernel`, now `GQAKernel`) is
    written as they do.

        opschema migrate move-sources
    """
    for site in sites:
        if isinstance(site.subject, _Move):
            yield from _apply(draft, site.subject)
    draft.settle()


def _apply(draft: Draft, move: _Move) -> Iterator[Note]:
    entry, node, found = move.entry, move.node, move.found
    what = f"`source.{move.key}` of `{entry.name}`"
    if found is None:
        yield Note(entry.at(node), f"{what} names {move.reason} is not known", leaves_site=True)
        return
    value: Data = found.paths[0] if len(found.paths) == 1 else [*found.paths]
    try:
        draft.edit(entry.file.path, set_value(entry.file, node, value))
    except (YamlEditError, ValueError) as error:
        yield refusal(entry.at(node), f"{what}: write {found.text}", error)
        return
    if found.doubt:
        yield Note(entry.at(node), f"{what} is now {found.text}, found {found.doubt}")


def _faults(manifest: Manifest) -> Iterator[Fault]:
    """The paths that the rules report, each once for an entry: by an anchor several may have it."""
    reported: dict[tuple[Place, tuple[str, ...]], Diagnostic] = {}
    for diagnostic in (*source_path(manifest), *op_class(manifest)):
        reported.setdefault((diagnostic.place, diagnostic.ops), diagnostic)
    for entry in manifest.entries:
        for key in SOURCE_PATH_KEYS:
            for node, _ in entry.source_paths(key):
                found = reported.pop((entry.at(node), (entry.name,)), None)
                if found is not None:
                    yield Fault(entry, key, node, found)


def _moved_files(manifest: Manifest) -> Iterator[_Move]:
    faults = list(_faults(manifest))
    found = [search(fault) for fault in faults]
    went: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for fault, place in zip(faults, found, strict=True):
        if place is not None:
            went.setdefault((fault.key, fault.path), set()).add(place.paths)
    for fault, place in zip(faults, found, strict=True):
        # Another op's class says nothing of where this one's is.
        places = went.get((fault.key, fault.path), set()) if fault.key != "op" else ()
        if place is None and len(places) == 1:
            place = Found(min(places), "where other entries have it")
        place = place if place is not None and place.paths != (fault.path,) else None
        yield _Move(fault.entry, fault.key, fault.node, place, _unknown(fault))


def _unknown(fault: Fault) -> str:
    """Describe what is not known about a path for which nothing is found."""
    if fault.is_folder:
        return f"the folder `{fault.path}`; which of its files is meant"
    if fault.entry.manifest.locate(fault.path) is not None:
        return f"`{fault.path}`, which does not define its class; where that is now"
    return f"`{fault.path}`; where that is now"


def _renamed_kernels(manifest: Manifest) -> Iterator[_Move]:
    for entry in manifest.entries:
        owner = entry.get("source", "kernel_map")
        pairs = owner.pairs() if owner is not None else ()
        unknown = [(key, node) for key, node in pairs if manifest.definitions.of_class(node.value) is None]
        classes = _kernel_classes(entry) if unknown else set()
        for key, node in unknown:
            alike = [name for name in classes if name.lower() == node.value.lower()]
            if len(alike) == 1 and node.value not in classes:
                yield _Move(
                    entry, f"kernel_map.{key.value}", node, Found((alike[0],), "with the case that it has there")
                )


def _kernel_classes(entry: OpEntry) -> set[str]:
    """The classes that the entry's kernel files define."""
    places = (entry.manifest.locate(path) for _, path in entry.source_paths("kernel"))
    files = (entry.manifest.project.python(place) for place in places if place is not None and place.endswith(".py"))
    return {name for file in files if file is not None for name in file.classes}
