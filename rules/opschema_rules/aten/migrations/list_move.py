"""An operator that goes from one list of a backend's YAML to another, and the variants that it cannot go without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from opschema_cli.phrases import listed
from opschema_rules.aten.catalogue_reading import variants_across
from opschema_rules.aten.migrations.backend_lists import KERNELS
from opschema_rules.aten.model import BackendFile
from opschema_rules.aten.rules.backend_keys import is_strict


class Move(msgspec.Struct, frozen=True):
    """One operator of a file: the lists that it leaves, and the one that it joins unless that is empty."""

    backend: BackendFile
    name: str
    leaves: tuple[str, ...]
    joins: str


def torn_apart(backend: BackendFile, moves: Sequence[Move]) -> Mapping[str, str]:
    """The reason why operators cannot go, by name: a variant would be on the other side of autograd, and none is yet."""
    if not is_strict(backend):
        return {}
    (before, before_autograd), (forward, autograd) = _sides(backend, ()), _sides(backend, moves)
    groups = variants_across(backend.reference, forward, autograd)
    split = {groups.get(name) for name in before} & {groups.get(name) for name in before_autograd}
    found = {}
    for move in moves:
        number = groups.get(move.name)
        across = forward if move.name in autograd else autograd if move.name in forward else ()
        others = [name for name in sorted(across) if groups.get(name) == number]
        if number is not None and number not in split and others:
            found[move.name] = (
                f"{listed(others)} would stay behind, and torchgen wants all variants of an operator on one side of "
                f"`autograd`; name {'it' if len(others) == 1 else 'them'} in -o ops=, too"
            )
    return found


def _sides(backend: BackendFile, moves: Sequence[Move]) -> tuple[set[str], set[str]]:
    """The operators that a backend lists for itself, and those for its autograd, once some are moved."""
    places = {(item.section, item.name) for item in backend.items if item.section in KERNELS}
    for move in moves:
        places -= {(section, move.name) for section in move.leaves}
        places |= {(move.joins, move.name)} if move.joins in KERNELS else set()
    autograd = {name for section, name in places if section == "autograd"}
    return {name for section, name in places if section != "autograd"}, autograd
