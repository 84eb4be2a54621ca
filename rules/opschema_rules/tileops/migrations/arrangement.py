"""Moves entries between the files of a manifest: their text is unchanged, with its comments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft, DraftError
from opschema_cli.migrate.mentions import occurrences, texts_with
from opschema_cli.migrate.migration import Note, OptionError
from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Data, YamlFile
from opschema_cli.source.yaml_places import line_start
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.tileops.migrations.entries import all_entries, manifests, places_of, words_of
from opschema_rules.tileops.migrations.layouts import Chunk, Layout, Parts, Unfit, crossing, put_together, take_apart
from opschema_rules.tileops.model import Manifest, OpEntry

OpsKey: TypeAlias = Literal["keep", "drop"]
"""The treatment of a top-level ``ops:``."""


class _Target(msgspec.Struct):
    """A file after the migration: its source, the entries that stay, and the new ones."""

    parts: Parts
    layout: Layout
    kept: list[Chunk]
    added: list[tuple[Chunk, Layout]]


def is_chosen(path: str, patterns: str) -> bool:
    """Whether a list of paths or shell patterns chooses a file; an empty one chooses all."""
    wanted = words_of(patterns)
    return not wanted or any(fnmatchcase(path, pattern) for pattern in wanted)


def check_files(draft: Draft, patterns: str) -> None:
    """Check that each path or pattern of a list selects a file of a manifest, or one that the draft has removed.

    Raises:
        OptionError: one chooses none.
    """
    known = {file.path for manifest in manifests(draft) for file in manifest.files}
    known.update(change.path for change in draft.changes if change.after is None)
    for pattern in words_of(patterns):
        if not any(fnmatchcase(path, pattern) for path in known):
            raise OptionError(f"no file of a manifest is `{pattern}`{did_you_mean(near_name(pattern, sorted(known)))}")


def has_ops_key(file: YamlFile) -> bool:
    """Whether a file holds its entries below ``ops:``."""
    try:
        return bool(take_apart(file).layout.opening)
    except Unfit:
        return False


def _anchors(manifest: Manifest, targets: Mapping[OpEntry, str]) -> dict[tuple[str, str], set[str]]:
    """The present files of each anchor, by the file that it goes to and its name."""
    found: dict[tuple[str, str], set[str]] = {}
    for entry in manifest.entries:
        for node in entry.node.walk():
            if node.anchor:
                found.setdefault((targets.get(entry, entry.file.path), node.anchor), set()).add(entry.file.path)
    return found


class Arrangement:
    """Puts the entries of one manifest into files; ``targets`` holds the file of each entry that moves."""

    def __init__(self, draft: Draft, manifest: Manifest, targets: Mapping[OpEntry, str], ops: OpsKey) -> None:
        self.draft = draft
        self.manifest = manifest
        self.targets = targets
        self.ops = ops
        self._anchors = _anchors(manifest, targets)
        self._parts: dict[str, Parts] = {}
        self._result: dict[str, _Target] = {}

    def apply(self) -> Iterator[Note]:
        """Draft the files and settle.

        Raises:
            DraftError: the entries would not all be read from their new files as they were.
        """
        concerned = {entry.file.path for entry in self.targets} | set(self.targets.values())
        for file in self.manifest.files:
            if file.path in concerned or self.ops == "drop":
                yield from self._take(file)
        yield from self._blocked()
        before = _contents(self.draft)
        removed = [path for path in self._parts if self._is_empty(path)]
        for path, parts in self._parts.items():
            self._distribute(path, parts, path in removed)
        self._write(removed)
        self.draft.settle()
        after = _contents(self.draft)
        lost = [name for name, data in before.items() if name not in after or after[name] != data]
        if lost or len(after) != len(before):
            raise DraftError(f"{lost[0] if lost else 'an entry'} would not be read as it was from its new file")
        yield from self._mentions(removed)

    def _take(self, file: YamlFile) -> Iterator[Note]:
        """Split a file into its entries; yield a note if that is impossible."""
        try:
            self._refuse_repeated(file)
            self._refuse_anchors(file)
            self._refuse_same_anchors(file)
            self._parts[file.path] = take_apart(file)
        except Unfit as unfit:
            line = file.source.position(unfit.place.span.start).line
            text = f"{file.path} is left unchanged: {unfit.reason} (line {line})"
            yield Note(Place(file.path, Span(0, 0)), text, leaves_site=True)

    def _blocked(self) -> Iterator[Note]:
        """The files that keep entries because their new file stays unchanged."""
        kept = {(entry.file.path, path) for entry, path in self.targets.items() if self._target_of(entry) != path}
        for own, path in sorted(kept):
            if own in self._parts:
                text = f"entries stay here that would go to {path}, which is left unchanged"
                yield Note(Place(own, Span(0, 0)), text, leaves_site=True)

    def _refuse_repeated(self, file: YamlFile) -> None:
        for entry in self._entries(file.path):
            same = self.manifest.by_name[entry.name]
            if len(same) > 1:
                raise Unfit(entry.place, f"`{entry.name}` has {len(same)} entries, {places_of(same)}")

    def _refuse_anchors(self, file: YamlFile) -> None:
        groups: dict[str, list[Span]] = {}
        for entry in self._entries(file.path):
            span = Span(line_start(file, entry.key.start), max(entry.node.end, entry.key.end))
            groups.setdefault(self.targets.get(entry, file.path), []).append(span)
        anchored = crossing(file, groups.values())
        if anchored is not None:
            raise Unfit(
                Place(file.path, anchored.span),
                f"`*{anchored.anchor}` would be in another file than `&{anchored.anchor}`",
            )

    def _refuse_same_anchors(self, file: YamlFile) -> None:
        """Refuse a file that would share an anchor's name with another one in their new file: PyYAML reads neither of them."""
        for entry in self._entries(file.path):
            target = self.targets.get(entry, file.path)
            for node in entry.node.walk():
                others = self._anchors.get((target, node.anchor), set()) - {file.path}
                if node.anchor and others:
                    raise Unfit(Place(file.path, node.span), f"`&{node.anchor}` is an anchor of {min(others)} too")

    def _entries(self, path: str) -> list[OpEntry]:
        return [entry for entry in self.manifest.entries if entry.file.path == path]

    def _target_of(self, entry: OpEntry) -> str:
        """The file of an entry; its own where that or the target is not written entry by entry."""
        own = entry.file.path
        target = self.targets.get(entry, own)
        blocked = self.draft.project.workspace.is_file(target) and target not in self._parts
        return own if own not in self._parts or blocked else target

    def _is_empty(self, path: str) -> bool:
        return all(self._target_of(entry) != path for entry in self.manifest.entries)

    def _distribute(self, path: str, parts: Parts, removed: bool) -> None:
        """Hand a file's entries to their targets; the first takes the head of a file that goes along."""
        entries = self._entries(path)
        for number, (entry, chunk) in enumerate(zip(entries, parts.chunks, strict=True)):
            target = self._target_of(entry)
            result = self._open(target, parts)
            if target == path:
                result.kept.append(chunk)
                continue
            if removed and number == 0 and target not in self._parts and not result.added:
                result.parts = replace(result.parts, head=parts.head)
            elif removed and number == 0:
                chunk = replace(chunk, head=parts.head)
            result.added.append((chunk, parts.layout))

    def _open(self, path: str, origin: Parts) -> _Target:
        if path not in self._result:
            parts = self._parts.get(path, Parts("", origin.layout, (), origin.newline))
            layout = Layout() if self.ops == "drop" else parts.layout
            self._result[path] = _Target(parts, layout, [], [])
        return self._result[path]

    def _write(self, removed: Sequence[str]) -> None:
        for path, target in self._result.items():
            text = put_together(target.parts, target.layout, target.kept, target.added)
            if path not in self._parts:
                self.draft.create(path, text)
            elif text != target.parts.text:
                old = self.draft.text(path)
                self.draft.edit(path, [_difference(old, text)])
        for path in removed:
            self.draft.delete(path)

    def _mentions(self, removed: Sequence[str]) -> Iterator[Note]:
        """Mentions of files that were removed, or of a key that the files no longer have."""
        for path in removed:
            name = path.rpartition("/")[2]
            for source in texts_with(self.draft.project, [name]):
                span = next(occurrences(source.text, name), None)
                if span is not None:
                    yield Note(Place(source.path, span), f"this names `{name}`; `{path}` was removed")
        if self.ops == "drop" and any(parts.layout.opening for parts in self._parts.values()):
            yield from self._readers_of_ops()

    def _readers_of_ops(self) -> Iterator[Note]:
        for source in texts_with(self.draft.project, ["ops"]):
            for quoted in ('["ops"]', "['ops']", '.get("ops"', ".get('ops'"):
                at = source.text.find(quoted) if source.path.endswith(".py") else -1
                if at >= 0:
                    yield Note(
                        Place(source.path, Span(at, at + len(quoted))),
                        "this reads a key `ops`; the manifest no longer has one",
                    )
                    break


def _difference(old: str, new: str) -> Edit:
    """One edit for the stretch in which two texts differ."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return Edit(Span(start, len(old) - end), new[start : len(new) - end])


def _contents(draft: Draft) -> dict[str, Data]:
    """The content of every entry, by its name."""
    return {entry.name: entry.data for entry in all_entries(draft)}
