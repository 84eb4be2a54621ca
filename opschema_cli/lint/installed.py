"""Installed packs, by the entry points of distributions."""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress

import msgspec

from opschema_cli.cache import Cache, decoded
from opschema_cli.errors import DISTRIBUTION

GROUP = "opschema.packs"

_KIND = "installed packs"
_MARKS = (".dist-info", ".egg-info")


class InstalledPack(msgspec.Struct, frozen=True, array_like=True):
    """A pack by its entry point: its name, where it is, as ``module:attribute``, and the distribution that brings it."""

    name: str
    where: str
    distribution: str = ""

    @property
    def top(self) -> str:
        """The top package or module that holds it."""
        return self.where.partition(":")[0].partition(".")[0]


def installed_packs(cache: Cache) -> list[InstalledPack]:
    """The installed packs, opschema's own first, then by name. One that two distributions bring is listed once.

    While no folder of :data:`sys.path` changes, and no list of entry points in it, what was found last holds, and looking is
    left to the first run after.
    """
    key = _state_of_path()
    found = decoded(cache.get(_KIND, [key]).get(key), list[InstalledPack])
    if found is None:
        found = _look()
        cache.put(_KIND, {key: msgspec.msgpack.encode(found)})
    return found


def _look() -> list[InstalledPack]:
    # Not at the top: importing it takes as long as reading all files of a large repository.
    from importlib.metadata import entry_points

    found = [
        InstalledPack(point.name, point.value, point.dist.name if point.dist is not None else "")
        for point in entry_points(group=GROUP)
    ]
    found.sort(key=lambda pack: (pack.distribution != DISTRIBUTION, pack.name, pack.distribution))
    return list({(pack.name, pack.where): pack for pack in reversed(found)}.values())[::-1]


def _state_of_path() -> str:
    digest = hashlib.blake2b(sys.version.encode(), digest_size=16)
    for folder in sys.path:
        for path in (folder or ".", *_lists(folder or ".")):
            with suppress(OSError):
                state = os.stat(path)
                digest.update(f"{path}\0{state.st_mtime_ns} {state.st_size}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _lists(folder: str) -> list[str]:
    """Return the files with entry points of the distributions in a folder."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [os.path.join(folder, name, "entry_points.txt") for name in sorted(names) if name.endswith(_MARKS)]
