"""Which packs are installed, by the entry points of distributions."""

from __future__ import annotations

import hashlib
import os
import sys

import msgspec

from opschema_cli.cache import Cache

GROUP = "opschema.packs"

_KIND = "installed packs"


def installed_packs(cache: Cache) -> dict[str, str]:
    """Where each installed pack is, as ``module:attribute``, by its name.

    Distributions come and go as folders of :data:`sys.path`: while none of these changes, what was found last holds, and
    looking is left to the first run after.
    """
    key = _state_of_path()
    try:
        return msgspec.msgpack.decode(cache.get(_KIND, [key])[key], type=dict[str, str])
    except (KeyError, msgspec.DecodeError):
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
        try:
            changed = os.stat(folder or ".").st_mtime_ns
        except OSError:
            changed = 0
        digest.update(f"{folder}\0{changed}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
