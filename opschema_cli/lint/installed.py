"""Which packs are installed, by the entry points of distributions."""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress

import msgspec

from opschema_cli.cache import Cache, decoded

GROUP = "opschema.packs"

_KIND = "installed packs"
_MARKS = (".dist-info", ".egg-info")


def installed_packs(cache: Cache) -> dict[str, str]:
    """Where each installed pack is, as ``module:attribute``, by its name.

    While no folder of :data:`sys.path` changes, and no list of entry points in it, what was found last holds, and looking is
    left to the first run after.
    """
    key = _state_of_path()
    found = decoded(cache.get(_KIND, [key]).get(key), dict[str, str])
    if found is None:
        found = _look()
        cache.put(_KIND, {key: msgspec.msgpack.encode(found)})
    return found


def _look() -> dict[str, str]:
    # Not at the top: importing it takes as long as reading all files of a large repository.
    from importlib.metadata import entry_points

    return {point.name: point.value for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def _state_of_path() -> str:
    digest = hashlib.blake2b(sys.version.encode(), digest_size=16)
    for folder in sys.path:
        for path in (folder or ".", *_lists(folder or ".")):
            with suppress(OSError):
                state = os.stat(path)
                digest.update(f"{path}\0{state.st_mtime_ns} {state.st_size}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _lists(folder: str) -> list[str]:
    """Where the distributions in a folder list their entry points, if they have any."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [os.path.join(folder, name, "entry_points.txt") for name in sorted(names) if name.endswith(_MARKS)]
