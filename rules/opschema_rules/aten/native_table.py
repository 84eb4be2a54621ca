"""The native_functions.yaml of every release that is known: ``native_functions.json.z``.

:mod:`.native_history` writes the file. It holds each text cut into entries, which the releases share.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import msgspec

from opschema_cli.installed_tables import installed_table
from opschema_cli.requirements import Version, dotted

TABLE = Path(__file__).with_name("native_functions.json.z")

_ENTRY = re.compile(r"(?m)^(?=- func:)")


class Packed(msgspec.Struct, frozen=True):
    """The entries of all releases, and those of each release: the index of its first one, then alternately the length of a run
    of entries and the distance to the next run.
    """

    releases: dict[str, list[int]]
    entries: list[str]


def packed(texts: Mapping[Version, str]) -> Packed:
    """The texts of releases, cut into shared entries; versions of one entry are neighbours, which compresses best."""
    cut = {version: _ENTRY.split(texts[version]) for version in sorted(texts)}
    entries: list[str] = []
    for found in reversed(cut.values()):
        entries = _merged(entries, found)
    index = {entry: number for number, entry in enumerate(entries)}
    return Packed(
        {dotted(version): _runs([index[entry] for entry in found]) for version, found in cut.items()}, entries
    )


def _merged(known: Sequence[str], found: Sequence[str]) -> list[str]:
    """Return the known entries, with each new one after the known one that it follows."""
    seen, behind, last = set(known), dict[str, list[str]](), ""
    for entry in found:
        if entry in seen:
            last = entry
        else:
            seen.add(entry)
            behind.setdefault(last, []).append(entry)
    return [*behind.get("", ()), *(item for entry in known for item in (entry, *behind.get(entry, ())))]


def _runs(numbers: Sequence[int]) -> list[int]:
    breaks = [at for at, (one, other) in enumerate(pairwise(numbers), 1) if other != one + 1]
    found, start = [numbers[0]], 0
    for at in breaks:
        found += [at - start, numbers[at] - numbers[at - 1] - 1]
        start = at
    return [*found, len(numbers) - start]


def _numbers(runs: Sequence[int]) -> Iterator[int]:
    number = 0
    for gap, length in zip(runs[::2], runs[1::2], strict=True):
        number += gap
        yield from range(number, number + length)
        number += length


def encoded(content: Packed) -> bytes:
    """The bytes of the file."""
    return zlib.compress(msgspec.json.encode(content), 9)


@lru_cache(maxsize=1)
def _table() -> Packed:
    return installed_table(TABLE, Packed, compressed=True)


def entry_releases() -> Iterator[tuple[str, tuple[Version, ...]]]:
    """The entries of all known releases, each with those that have it, the oldest first."""
    table = _table()
    found: dict[int, list[Version]] = {}
    for name, runs in table.releases.items():
        major, minor = map(int, name.split("."))
        for number in _numbers(runs):
            found.setdefault(number, []).append((major, minor))
    for number, versions in found.items():
        yield table.entries[number], tuple(sorted(versions))


def native_text(version: Version) -> str:
    """The native_functions.yaml of a known release, as PyTorch ships it."""
    return "".join(_entries(version))


def native_path(version: Version) -> str:
    """The name under which that text is shown."""
    return f"<torch {dotted(version)}>/native_functions.yaml"


_NAME = re.compile(r"- func:\s*([\w.]+)\(")


def differing_names(old: Version, new: Version) -> frozenset[str]:
    """Return the names of the entries that differ as text between two releases, or exist in only one of them."""
    before, now = (frozenset(_entries(version)) for version in (old, new))
    return frozenset(match[1] for entry in before ^ now if (match := _NAME.match(entry)))


def reduced_text(version: Version, is_kept: Callable[[str], bool]) -> str:
    """The text of a release with blanks in the place of all entries but those whose names are kept, which stay where they are."""
    found: list[str] = []
    for entry in _entries(version):
        name = _NAME.match(entry)
        kept = name is not None and is_kept(name[1])
        found.append(entry if kept else _blank(entry))
    return "".join(found)


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


def _entries(version: Version) -> Iterator[str]:
    table = _table()
    return (table.entries[number] for number in _numbers(table.releases[dotted(version)]))
