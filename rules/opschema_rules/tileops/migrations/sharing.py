"""Ops that share methods."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from weakref import WeakKeyDictionary

from opschema_cli.source.program import FunctionRef
from opschema_rules.tileops.migrations.call_sites import FunctionKey, key_of
from opschema_rules.tileops.model import Manifest, OpEntry

METHODS = ("forward", "_infer_output_shapes", "_validate_dtypes", "eval_roofline")
"""The methods whose parameters bear the names of inputs."""

_USERS: WeakKeyDictionary[Manifest, Mapping[FunctionKey, list[OpEntry]]] = WeakKeyDictionary()


def others(manifest: Manifest, ref: FunctionRef, chosen: Collection[OpEntry]) -> Iterator[OpEntry]:
    """The entries, apart from those chosen, whose op runs a method too."""
    if manifest not in _USERS:
        _USERS[manifest] = _users(manifest)
    return (entry for entry in _USERS[manifest].get(key_of(ref), ()) if entry not in chosen)


def _users(manifest: Manifest) -> Mapping[FunctionKey, list[OpEntry]]:
    found: dict[FunctionKey, list[OpEntry]] = {}
    for op in manifest.implementations:
        for name in (*METHODS, "__init__"):
            method = op.method(name)
            if method is not None:
                found.setdefault(key_of(method), []).append(op.entry)
    return found
