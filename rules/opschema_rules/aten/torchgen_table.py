"""The torchgen of every release that is known, and its operators: ``torchgen.json``.

``python -m opschema_rules.aten.torchgen_history`` writes the file, from the releases' own text. It holds of each release
what changed since the one before: the members that a set gained (``+``) and lost (``-``), other values as they are now.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.regular_files import content_digest
from opschema_cli.requirements import Version, dotted, nearest_release, read_version
from opschema_rules.aten.torchgen import Torchgen

TABLE = Path(__file__).with_name("torchgen.json")


class TorchRelease(msgspec.Struct, frozen=True):
    """One release: its torchgen, and the operators of its native_functions.yaml."""

    torchgen: Torchgen
    operators: frozenset[str]


def plain(release: TorchRelease) -> dict[str, Any]:
    """A release as JSON: a value for each field, sets as sorted lists, fields of parts by dotted names."""
    # Of `takes_options` the release on its way is to decide (PyTorch PR #172539), so that only a torchgen's text counts.
    unwritten = ("torchgen.origin", "torchgen.doubt", "torchgen.digest", "torchgen.limits.takes_options")
    return {name: value for name, value in _flat(msgspec.to_builtins(release), "") if name not in unwritten}


def _flat(value: Mapping[str, Any], prefix: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, item in value.items():
        if isinstance(item, dict):
            found += _flat(item, f"{prefix}{name}.")
        else:
            found.append((f"{prefix}{name}", sorted(item) if isinstance(item, list) else item))
    return found


def change(before: object, now: object) -> object:
    """The change of a value; the value itself where one of both is not a set."""
    if not isinstance(before, list) or not isinstance(now, list):
        return now
    gained, lost = [item for item in now if item not in before], [item for item in before if item not in now]
    return {sign: items for sign, items in (("+", gained), ("-", lost)) if items}


def _changed(before: object, step: object) -> object:
    """A value after a change."""
    if not isinstance(step, dict):
        return step
    kept = [item for item in before if item not in step.get("-", ())] if isinstance(before, list) else []
    return [*kept, *step.get("+", ())]


@lru_cache(maxsize=1)
def _releases() -> dict[Version, TorchRelease]:
    data = TABLE.read_bytes()
    found: dict[Version, TorchRelease] = {}
    state: dict[str, object] = {}
    for name, steps in msgspec.json.decode(data, type=dict[str, dict[str, Any]]).items():
        state = {**state, **{field: _changed(state.get(field), step) for field, step in steps.items()}}
        version = read_version(name)
        assert version is not None
        found[version] = msgspec.convert(_nested(state, name, data), TorchRelease)
    return found


def _nested(state: Mapping[str, object], name: str, data: bytes) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for field, value in state.items():
        *parts, last = field.split(".")
        inner = whole
        for part in parts:
            inner = inner.setdefault(part, {})
        inner[last] = value
    whole["torchgen"].update(origin=f"torch {name}", digest=f"{name} {content_digest(data)}")
    return whole


def known_releases() -> tuple[Version, ...]:
    """The releases that are known, the oldest first."""
    return tuple(_releases())


def known_release(name: str) -> Version:
    """The known release of that name (``2.15``).

    Raises:
        OpschemaError: it is none; the message names those that are known.
    """
    version = read_version(name)
    if version is None or version not in known_releases():
        known = ", ".join(map(dotted, known_releases()))
        raise OpschemaError(f"torch {name} is not a release that opschema knows; it knows {known}")
    return version


def torchgen_of(version: Version) -> Torchgen:
    """Return the torchgen of a release; for an unknown one, that of the nearest older release."""
    return _releases()[nearest_release(version, known_releases())].torchgen


def operators_of(version: Version) -> frozenset[str]:
    """The names of the operators that the native_functions.yaml of a known release declares."""
    return _releases()[version].operators


def newest_torchgen() -> Torchgen:
    """The torchgen of the newest known release."""
    return torchgen_of(known_releases()[-1])


def own_types(torchgen: Torchgen) -> frozenset[str]:
    """The types that a torchgen has, and the newest known one does not."""
    return torchgen.vocabulary.types - newest_torchgen().vocabulary.types


@lru_cache(maxsize=1)
def ever_operators() -> frozenset[str]:
    """The operators that any known release has in its native_functions.yaml."""
    return frozenset().union(*(item.operators for item in _releases().values()))


MISSING = 3
"""So many operators may be a fork's own; of more the file is of another release."""


_UNKNOWN = 1 / 20
"""The part of the names of a file that no known release has, from which on it is of an older one.

PyTorch 1.9 has 6 %, 1.0 has 37 %.
"""


class Fit(msgspec.Struct, frozen=True):
    """The known release whose operators a native_functions.yaml has, and why that may not be its release."""

    version: Version
    doubt: str = ""


def fitting_release(names: frozenset[str]) -> Fit:
    """The release to which a native_functions.yaml of PyTorch belongs, by the names of its operators."""
    releases = _releases()
    ever = ever_operators()
    own = names & ever
    version = min(releases, key=lambda item: (len(own ^ releases[item].operators), -item[0], -item[1]))
    first, last = known_releases()[0], known_releases()[-1]
    missing, more = releases[version].operators - own, names - ever
    if version == last and len(more) > MISSING:
        return Fit(version, f"opschema knows torch {dotted(first)} to {dotted(last)}, which lack {_some(more)}")
    is_unlike = version != last and len(names) * _UNKNOWN < len(more) < len(own)
    if (version == first or is_unlike) and len(missing) > MISSING:  # a fork has all of its release
        return Fit(
            version, f"opschema knows torch {dotted(first)} to {dotted(last)}, which have {_some(missing)} as well"
        )
    return Fit(version)


def release_of_part(names: frozenset[str]) -> Version | None:
    """Return the newest release with most operators of a file that lists a part of them, such as those of one backend; None for
    a file that is about as long as PyTorch's own.
    """
    releases = _releases()
    version = min(releases, key=lambda item: (len(names - releases[item].operators), -item[0], -item[1]))
    operators = releases[version].operators
    return version if len(operators & names) < len(operators) * _PART else None


_PART = 2 / 3


def _some(names: frozenset[str]) -> str:
    return f"`{min(names)}` and {len(names) - 1} operators more"
