"""The present place of a file that an entry names: by its content, else by its name."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.migrate.mentions import occurrences
from opschema_cli.phrases import quoted
from opschema_cli.sequences import shared_start
from opschema_cli.source.program import ClassRef
from opschema_cli.source.yaml import Node
from opschema_rules.tileops.migrations.fields import read_value
from opschema_rules.tileops.model import Manifest, OpEntry

BY_NAME = "by its name alone"


class Found(NamedTuple):
    """The present path of a file, or several if it was split; ``doubt`` is the evidence, if it is weaker than a class."""

    paths: tuple[str, ...]
    doubt: str = ""

    @property
    def text(self) -> str:
        """The paths, for a message."""
        return quoted(self.paths)


class Fault(NamedTuple):
    """A path that a rule reports."""

    entry: OpEntry
    key: str
    node: Node
    reported: Diagnostic

    @property
    def path(self) -> str:
        """The path."""
        return self.node.value

    def written(self, path: str) -> str:
        """A path of the workspace the way the entry wrote this one; `op` and `kernel` may be written as they lie below `src`."""
        base = self.entry.manifest.base
        below = path if base == "." else path.removeprefix(f"{base}/")
        keeps_src = self.key not in ("op", "kernel") or self.path.startswith("src/")
        return below if keeps_src else below.removeprefix("src/")

    @property
    def is_folder(self) -> bool:
        """Whether it leads to a folder."""
        base = self.entry.manifest.base
        full = posixpath.normpath(self.path if base == "." else f"{base}/{self.path}")
        return bool(self.entry.manifest.project.workspace.under(full))


def search(fault: Fault) -> Found | None:
    """Find the present place of a path's file; None if it is not known."""
    if fault.is_folder and fault.key in ("test", "bench"):
        return None  # all that lies in it may be meant
    sure = _from_rule(fault, certain=True) or _by_class(fault) or _by_kernels(fault)
    if sure is not None or "," in fault.path:
        return sure
    return next((found for found in _by_name(fault) if not _is_anothers(fault, found)), None)


def _from_rule(fault: Fault, *, certain: bool) -> Found | None:
    """The path that the rule's fix would write."""
    fix = fault.reported.fix
    if fix is None or len(fix.edits) != 1 or bool(fix.why_unsafe) is certain:
        return None
    path = read_value(fix.edits[0].edit.replacement)
    if not isinstance(path, str) or any(path == other for _, other in fault.entry.source_paths(fault.key)):
        return None  # the list has it already, so that this item stood for another file
    nearly = path.rpartition("/")[2] != fault.path.rpartition("/")[2]
    return Found((path,), "" if certain else "as a file of nearly that name" if nearly else BY_NAME)


def _home(fault: Fault, name: str) -> str | None:
    """The file that defines a class: the only one, or of several the only one below the same top folder."""
    found = fault.entry.manifest.definitions.all_of_class(name)
    if len(found) > 1:
        top = fault.path.partition("/")[0]
        found = [path for path in found if fault.written(path).partition("/")[0] == top]
    return found[0] if len(found) == 1 else None


def _by_class(fault: Fault) -> Found | None:
    """The file of the op's class."""
    home = _home(fault, fault.entry.name) if fault.key == "op" else None
    return Found((fault.written(home),)) if home is not None else None


def _by_kernels(fault: Fault) -> Found | None:
    """The files that define kernels of the op, apart from those that the entry names already; one, unless it names no list."""
    entry, manifest = fault.entry, fault.entry.manifest
    kernels = entry.data_at("source", "kernel_map") if fault.key == "kernel" else None
    names = [name for name in kernels.values() if isinstance(name, str)] if isinstance(kernels, dict) else []
    homes = [_home(fault, name) for name in names]
    own = {manifest.locate(path) for node, path in entry.source_paths("kernel") if node is not fault.node}
    left = dict.fromkeys(fault.written(home) for home in homes if home is not None and home not in own)
    several = len(entry.source_paths("kernel")) == 1 and entry.get("source", "kernel") is fault.node
    return Found(tuple(left)) if left and None not in homes and (several or len(left) == 1) else None


def _by_name(fault: Fault) -> Iterator[Found]:
    """The files that may be meant, by their names."""
    manifest, path = fault.entry.manifest, fault.path
    if fault.key == "op" and fault.entry.name != fault.entry.name.lower() and manifest.locate(path) is None:
        yield from _by_folding(
            manifest, path
        )  # a file of that name that does not define the op's class is another file
        return
    if manifest.locate(path) is None:
        yield from _alike(fault)
    yield from filter(None, [_from_rule(fault, certain=False)])
    yield from _by_folding(manifest, path)
    if fault.key in ("test", "bench"):
        yield from _by_mention(fault)


def _alike(fault: Fault) -> Iterator[Found]:
    """Yield the file whose path only differs in case from the old one, the only one of its name, or the one with the same
    folders above.
    """
    manifest, path = fault.entry.manifest, fault.path
    same = [item for item in manifest.definitions.files if fault.written(item).lower() == path.lower()]
    named = manifest.definitions.all_of_basename(path)
    if len(same) == 1:
        yield Found((fault.written(same[0]),), "as the same path in another case")
    elif len(named) == 1:
        yield Found((fault.written(named[0]),), BY_NAME)
    else:
        ranked = sorted(named, key=lambda item: _shared_end(item, path))
        if ranked and _shared_end(ranked[-1], path) > max(1, _shared_end(ranked[-2], path)):
            yield Found((fault.written(ranked[-1]),), "by its name and the folder above it")


def _shared_end(one: str, other: str) -> int:
    """The number of parts that two paths share at their end."""
    return shared_start(reversed(one.split("/")), reversed(other.split("/")))


def _by_folding(manifest: Manifest, path: str) -> Iterator[Found]:
    """The module that a package has become, or the package that a module has."""
    folder = path.rpartition("/")[0]
    for candidate in (f"{folder}.py", f"{path.removesuffix('.py')}/__init__.py"):
        if folder and manifest.locate(candidate) is not None:
            yield Found((candidate,), "by its name: a package has become a module, or the other way round")


def _by_mention(fault: Fault) -> Iterator[Found]:
    """The only file below the same top folder that names the op's class."""
    entry, path = fault.entry, fault.path
    manifest, top = entry.manifest, path.partition("/")[0]
    below = top if manifest.base == "." else f"{manifest.base}/{top}"
    files = [item for item in manifest.project.workspace.under(below, ".py") if _is_named_like(item, path)]
    naming = [item for item in files if _names(entry, item)]
    if len(naming) == 1:
        yield Found((fault.written(naming[0]),), "as the only one that names its class")


def _is_named_like(file: str, path: str) -> bool:
    """Whether two files are of one kind, by the first word of their names (``test_``, ``bench_``)."""
    return file.rpartition("/")[2].partition("_")[0] == path.rpartition("/")[2].partition("_")[0]


def _names(entry: OpEntry, path: str) -> bool:
    """Whether a file names the op's class."""
    ref, source = entry.op_class, entry.manifest.project.source(path)
    name = ref.name if isinstance(ref, ClassRef) else entry.name
    return source is not None and any(occurrences(source.text, name))


def _is_anothers(fault: Fault, found: Found) -> bool:
    """Whether a file that was found by its name belongs to other entries, and nothing in it speaks of this one."""
    manifest, entry = fault.entry.manifest, fault.entry
    places = {manifest.locate(path) for path in found.paths}
    if fault.key in ("test", "bench") and any(place is not None and _names(entry, place) for place in places):
        return False
    if fault.key not in ("test", "bench") and "nearly" not in found.doubt:
        return False
    others = (item for item in manifest.entries if item is not entry)
    return any(manifest.locate(path) in places for path in _paths(others, fault.key))


def _paths(entries: Iterable[OpEntry], key: str) -> Iterator[str]:
    return (path for entry in entries for _, path in entry.source_paths(key))
