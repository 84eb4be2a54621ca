"""Queries of migrations on a draft: its manifests, and the entries that an option names."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, OptionError, Site
from opschema_cli.source.yaml_edit import YamlEditError
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.tileops.model import Manifest, OpEntry


def manifests(draft: Draft) -> list[Manifest]:
    """The manifests of the draft, as of its last step."""
    return [item for item in draft.loaded.subjects if isinstance(item, Manifest)]


def all_entries(draft: Draft) -> list[OpEntry]:
    """The entries of all manifests, in order."""
    return [entry for manifest in manifests(draft) for entry in manifest.entries]


def words_of(text: str) -> list[str]:
    """The parts of an option that lists several things with commas."""
    return [word for word in (part.strip() for part in text.split(",")) if word]


def named(entries: Sequence[OpEntry], patterns: str) -> list[OpEntry]:
    """The entries that a list of names or shell patterns chooses; all for an empty one.

    Raises:
        OptionError: a name or pattern chooses none.
    """
    wanted = words_of(patterns)
    for pattern in wanted:
        if not any(fnmatchcase(entry.name, pattern) for entry in entries):
            raise OptionError(
                f"no op is called `{pattern}`{did_you_mean(near_name(pattern, (item.name for item in entries)))}"
            )
    return [entry for entry in entries if not wanted or any(fnmatchcase(entry.name, item) for item in wanted)]


def by_manifest(entries: Iterable[OpEntry]) -> list[list[OpEntry]]:
    """The entries of each manifest."""
    found: dict[int, list[OpEntry]] = {}
    for entry in entries:
        found.setdefault(id(entry.manifest), []).append(entry)
    return list(found.values())


def identity(entry: OpEntry) -> tuple[str, str]:
    """The identity of an entry after the draft has settled, if no other of its manifest has its name."""
    return entry.manifest.folder, entry.name


def places_of(entries: Iterable[OpEntry]) -> str:
    """The places of entries, for a message."""
    lines = (f"{entry.file.path}:{entry.file.source.position(entry.key.start).line}" for entry in entries)
    return " and ".join(lines)


def without_repeated(draft: Draft, sites: Iterable[Site]) -> tuple[list[Site], list[Note]]:
    """The sites of ops that have one entry in their manifest, and notes on the others: which entry is meant is not known."""
    repeated = {
        name: found for manifest in manifests(draft) for name, found in manifest.by_name.items() if len(found) > 1
    }
    kept: list[Site] = []
    notes: list[Note] = []
    for site in sites:
        name = next((op for op in site.ops if op in repeated), None)
        if name is None:
            kept.append(site)
        else:
            text = (
                f"`{name}` has {len(repeated[name])} entries, {places_of(repeated[name])}; leave one, then {site.title}"
            )
            notes.append(Note(site.place, text, leaves_site=True))
    return kept, notes


def is_name(text: str) -> bool:
    """Whether Python code can have a class, function or parameter of that name."""
    return text.isidentifier() and not keyword.iskeyword(text)


def is_inside(path: str) -> bool:
    """Whether a path from the root stays below it, as written."""
    return all(part not in ("", ".", "..") for part in path.split("/")) and "\\" not in path and path.isprintable()


def refusal(site: Place, what: str, error: YamlEditError | ValueError) -> Note:
    """Return the note on a site that the editor refused to change."""
    return Note(site, f"{what} by hand: {error}", leaves_site=True)


def unique(notes: Iterable[Note]) -> Iterator[Note]:
    """The notes, each once."""
    yield from dict.fromkeys(notes)
