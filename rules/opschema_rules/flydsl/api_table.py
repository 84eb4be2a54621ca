"""FlyDSL's names by release: what each of its modules has, and what has been added and removed.

The table is ``api.json``, which ``api_reading`` writes from the wheels. It groups a module's names by the releases
that have them: ``0.2.2-`` is from 0.2.2 on, ``0.1.5-0.2.1`` both and those between, ``-`` all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

import msgspec
from packaging.version import Version

PATH = Path(__file__).with_name("api.json")

Api: TypeAlias = "dict[str, frozenset[str] | None]"
"""The names of one release by module; None for a module that is not known in full."""


class _Module(msgspec.Struct, omit_defaults=True):
    """A module: the releases that have it, the releases in which its names are not all known, and its names by release."""

    releases: str
    open: str = ""
    names: dict[str, str] = {}


class _Table(msgspec.Struct):
    releases: list[str]
    modules: dict[str, _Module]


class _Releases(msgspec.Struct):
    """The part of the table that lists the releases."""

    releases: list[str]


def read_releases() -> tuple[Version, ...]:
    """Return the releases in the table, in order: those on PyPI when it was written."""
    return tuple(map(Version, msgspec.json.decode(PATH.read_bytes(), type=_Releases).releases))


@cache
def load_api() -> dict[Version, Api]:
    """Return the names of every release in the table."""
    return parse_api(PATH.read_bytes())


def parse_api(data: bytes) -> dict[Version, Api]:
    """Parse the text of the table into the names of every release."""
    table = msgspec.json.decode(data, type=_Table)
    releases = [Version(item) for item in table.releases]
    found: dict[Version, Api] = {item: {} for item in releases}
    for name, module in table.modules.items():
        groups = [(_releases(key, releases), frozenset(words.split())) for key, words in module.names.items()]
        unknown = _releases(module.open, releases) if module.open else set()
        for release in _releases(module.releases, releases):
            names = (words for group, words in groups if release in group)
            found[release][name] = None if release in unknown else frozenset().union(*names)
    return found


def render_api(found: dict[Version, Api]) -> bytes:
    """Render the text of the table."""
    releases = sorted(found)
    modules = sorted({name for api in found.values() for name in api})
    table = _Table([str(item) for item in releases], {name: _module(found, releases, name) for name in modules})
    return msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n"


def has(name: str, release: Version) -> bool | None:
    """Whether a release has a name (``flydsl.expr.rocdl.make_buffer_tensor``); None when that is not known.

    What lies below a name that is not a module is not looked at.
    """
    return missing_from(name, release) == "" if release in load_api() else None


def missing_from(name: str, release: Version) -> str:
    """Return the first part of a dotted name that a release does not have; empty if every known part exists."""
    return first_missing(name, load_api().get(release, {}))


def first_missing(name: str, api: Mapping[str, frozenset[str] | None]) -> str:
    """Return the first part of a dotted name that the modules do not have; empty if every known part exists."""
    module, _, rest = name.partition(".")
    while rest and module in api:
        names = api[module]
        word, _, rest = rest.partition(".")
        if names is not None and word not in names and not word.startswith("__"):
            return f"{module}.{word}"
        module = f"{module}.{word}"
    return ""


def members(wrapper: str, release: Version) -> frozenset[str] | None:
    """Return the attributes of tensors wrapped by ``from_dlpack`` or ``from_torch_tensor``; None if they are not known."""
    return load_api().get(release, {}).get(f"flydsl.compiler.{wrapper}()")


def having(name: str) -> list[Version]:
    """The releases that have a name."""
    return [release for release in sorted(load_api()) if not missing_from(name, release)]


def _module(found: dict[Version, Api], releases: Sequence[Version], name: str) -> _Module:
    present = [item for item in releases if name in found[item]]
    unknown = [item for item in present if found[item][name] is None]
    groups: dict[str, list[str]] = {}
    for word in sorted({word for item in present for word in found[item][name] or ()}):
        groups.setdefault(_key([item for item in present if word in (found[item][name] or ())], releases), []).append(
            word
        )
    names = {key: " ".join(words) for key, words in sorted(groups.items())}
    return _Module(_key(present, releases), _key(unknown, releases), names)


def _key(some: Iterable[Version], releases: Sequence[Version]) -> str:
    """Format releases as ranges."""
    places = [releases.index(item) for item in some]
    starts = [place for place in places if place - 1 not in places]
    ends = [place for place in places if place + 1 not in places]
    words = [_stretch(start, end, releases) for start, end in zip(starts, ends, strict=True)]
    return ",".join(words)


def _stretch(start: int, end: int, releases: Sequence[Version]) -> str:
    first, last = releases[start] if start else "", releases[end] if end < len(releases) - 1 else ""
    return f"{first}-{last}"


def _releases(key: str, releases: Sequence[Version]) -> set[Version]:
    found: set[Version] = set()
    for stretch in key.split(","):
        first, _, last = stretch.partition("-")
        low, high = Version(first) if first else releases[0], Version(last) if last else releases[-1]
        found.update(item for item in releases if low <= item <= high)
    return found
