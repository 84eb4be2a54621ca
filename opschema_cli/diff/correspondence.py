"""Operators that correspond under different names on the two sides: moved files and folders, and renamed operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

from opschema_cli.diff.entries import Entry
from opschema_cli.file_kinds import is_yaml

Pair: TypeAlias = tuple[Entry, Entry]


def contract_of(item: Entry) -> object:
    """The contract without names and places of operators."""
    arguments = [(one.name, one.type, one.kind, one.role, one.default) for one in item.arguments]
    calls = [[(one.name, one.kind, one.default) for one in call.parameters] for call in item.calls]
    return item.schema, arguments, calls, [(one.name, one.type) for one in item.returns]


# -- names with a file ---------------------------------------------------------------------------------------------------


def of_another_full_name(removed: Iterable[Entry], added: Iterable[Entry]) -> list[Pair]:
    """Pair operators whose names alone are not unique: a name with a file changes if the file moves, or if another operator with
    the short name is added or removed. They correspond if they share a short name that is unique in their file, in its folder,
    or in an enclosing folder.
    """
    left, free = [item for item in removed if item.aliases], [item for item in added if item.aliases]
    found: list[Pair] = []
    for level in range(max((_path(item).count("/") for item in (*left, *free)), default=0) + 2):
        before, now = (Counter(name for item in side for name in _names(item, level)) for side in (left, free))
        owners = {name: item for item in free for name in _names(item, level) if now[name] == 1}
        for item in [*left]:
            others = [owners[name] for name in _names(item, level) if before[name] == 1 and name in owners]
            if others and all(other is others[0] for other in others) and others[0] in free:
                left.remove(item)
                free.remove(others[0])
                found.append((item, others[0]))
    return found


def _names(item: Entry, level: int) -> set[tuple[str, str, str]]:
    """Return the short names of an operator in its file, or that many folders further out; names that are just a number are left
    out.
    """
    path = _path(item)
    where = path if not level else path.rsplit("/", level)[0] if path.count("/") >= level else ""
    return {(item.pack, name, where) for name in item.aliases if not name.isdigit()}


def _path(item: Entry) -> str:
    return item.place.path if item.place is not None else ""


# -- renamed operators ---------------------------------------------------------------------------------------------------


def is_moved_to_namespace(old: Entry, new: Entry) -> bool:
    """Whether the name of a torch operator only differs in its namespace."""
    own, other = old.name.rpartition("::")[2], new.name.rpartition("::")[2]
    return old.pack == new.pack and "::" in old.name and own == other and contract_of(old) == contract_of(new)


def renamed(removed: Iterable[Entry], added: Iterable[Entry]) -> dict[str, Entry]:
    """Return the new operator for each earlier one: the one with its contract that only differs in the namespace; otherwise the
    only one with its contract in the same file or with the same code.
    """
    found: dict[str, Entry] = {}
    for is_renamed in (is_moved_to_namespace, _is_renamed):
        taken = {id(other) for other in found.values()}
        left = [item for item in removed if item.name not in found]
        free = [other for other in added if id(other) not in taken]
        fitting = {id(item): [other for other in free if is_renamed(item, other)] for item in left}
        claims = Counter(id(other) for others in fitting.values() for other in others)
        for item in left:
            others = fitting[id(item)]
            if len(others) == 1 and claims[id(others[0])] == 1:
                found[item.name] = others[0]
    return found


def is_declared_for(old: Entry, new: Entry) -> bool:
    """Whether both are entries of a manifest for the same class, which callers use by its own name."""
    return old.symbol == new.symbol and old.symbol.isidentifier() and is_yaml(_path(old)) and is_yaml(_path(new))


def _is_renamed(old: Entry, new: Entry) -> bool:
    if old.pack != new.pack or not (old.schema or old.arguments or old.calls):
        return False
    is_near = bool(_path(old)) and _path(old) == _path(new)
    is_same_code = bool(old.symbol) and old.symbol == new.symbol
    return (is_near or is_same_code) and contract_of(old) == contract_of(new)
