"""The entries and op classes that an edit is likely to concern: they are checked first, for an editor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from opschema_cli.lint.loaded import Loaded
from opschema_cli.source.program import ClassRef
from opschema_cli.source.text import Span
from opschema_rules.tileops.model import Implementations, Manifest, ManifestFile, OpEntry, OpImplementation

MOST = 6
"""Maximum number of ops to check first."""


def touched(loaded: Loaded, edits: Mapping[str, Span]) -> Iterator[object]:
    """The manifest files that were edited, and the entries whose texts or classes were, with their implementations, each and all
    together.
    """
    for manifest in loaded.subjects:
        if isinstance(manifest, Manifest):
            yield from _of_manifest(manifest, edits)


def _of_manifest(manifest: Manifest, edits: Mapping[str, Span]) -> Iterator[object]:
    entries = [entry for entry in manifest.entries if _meets(Span(entry.key.start, entry.node.end), edits, entry)]
    entries = (entries or list(_by_classes(manifest, edits)))[:MOST]
    ops = [OpImplementation(entry, entry.op_class) for entry in entries if isinstance(entry.op_class, ClassRef)]
    yield from (ManifestFile(manifest, file) for file in manifest.files if file.path in edits)
    yield from entries
    yield from ops
    if ops:
        yield Implementations(manifest, ops)


def _meets(span: Span, edits: Mapping[str, Span], entry: OpEntry) -> bool:
    edit = edits.get(entry.file.path)
    return edit is not None and edit.start <= span.end and span.start <= edit.end


def _by_classes(manifest: Manifest, edits: Mapping[str, Span]) -> Iterable[OpEntry]:
    """The entries whose own classes were edited; if there are none, those of classes that inherit from an edited one, or lie in an
    edited file.
    """
    files = filter(None, map(manifest.project.python, (path for path in edits if path.endswith(".py"))))
    edited = [
        (file.path, cls.start)
        for file in files
        for cls in file.body.classes
        if cls.outer.start <= edits[file.path].end and edits[file.path].start <= cls.outer.end
    ]
    found = [(entry, entry.op_class) for entry in manifest.entries] if any(map(_is_python, edits)) else []
    classes = [(entry, ref) for entry, ref in found if isinstance(ref, ClassRef)]
    own = [entry for entry, ref in classes if ref.key in edited]
    if own or not edited:
        return own or [entry for entry, ref in classes if ref.file.path in edits]
    lineage = manifest.program.lineage
    return [entry for entry, ref in classes if any(above.key in edited for above in lineage(ref))]


def _is_python(path: str) -> bool:
    return path.endswith(".py")
