"""Comparison of the contracts of two sides: which operators correspond, and what changed of each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from opschema_cli.diff.constraint_diff import constraint_changes
from opschema_cli.diff.correspondence import (
    contract_of,
    is_declared_for,
    is_moved_to_namespace,
    of_another_full_name,
    renamed,
)
from opschema_cli.diff.entries import LOWERED, Call, Entry
from opschema_cli.diff.kernel_diff import kernel_changes
from opschema_cli.diff.model import Audience, Change, Unclear
from opschema_cli.diff.schema_diff import parsed, schema_differences
from opschema_cli.diff.signature_diff import Side, output_changes, parameter_changes
from opschema_cli.diff.workload_diff import workload_changes
from opschema_cli.phrases import count, listed
from opschema_cli.source.text import Place

_SCHEMA_PARTS = ("declaration", "name", "mutates", "lowering")
"""Parts without which nothing can be said about arguments and returns."""


class Doubt(msgspec.Struct, frozen=True):
    """Checks whether an operator that one side lacks may still be there; each answer is empty if there is no such reason.

    ``still_there`` returns why it may still exist on the new side, ``was_there`` why it may have been on the old one, and
    ``still_defined`` where the code of a declared operator still is.
    """

    still_there: Callable[[Entry], str] = lambda _: ""
    was_there: Callable[[Entry], str] = lambda _: ""
    still_defined: Callable[[Entry], str] = lambda _: ""


class Comparison(msgspec.Struct, frozen=True):
    """Result of a comparison: changes, in the order of the operators' names, and what could not be compared."""

    changes: tuple[Change, ...]
    unclear: tuple[Unclear, ...]
    operators: int


_NO_DOUBT = Doubt()


def compare(old: Sequence[Entry], new: Sequence[Entry], doubt: Doubt = _NO_DOUBT) -> Comparison:
    """Compare two sides; entries of one pack and name correspond."""
    changes: list[Change] = []
    unclear: list[Unclear] = []
    before, now = _by_name(old), _by_name(new)
    removed, added = _only_in(before, now), _only_in(now, before)
    kept = [found for key, items in before.items() if key in now for found in _same_name(items, now[key])]
    for one, other in of_another_full_name(removed, added):
        removed.remove(one)
        added.remove(other)
        kept += changes_of(one, other)
    foreign = [*_foreign([item for item in removed if item.foreign], [item for item in added if item.foreign])]
    removed, added = ([item for item in side if not item.foreign] for side in (removed, added))
    unpaired = _unpaired(removed, added, _nameless(old, new), doubt)
    for found in (*kept, *foreign, *unpaired):
        if isinstance(found, Unclear):
            unclear.append(found)
        else:
            changes.append(found)
    changes.sort(key=lambda item: (item.operator, item.kind, item.message))
    return Comparison(tuple(changes), tuple(unclear), len({*before, *now}))


def _only_in(
    side: Mapping[tuple[str, str], Sequence[Entry]], other: Mapping[tuple[str, str], Sequence[Entry]]
) -> list[Entry]:
    return [item for key, items in side.items() if key not in other for item in items[:1]]


def _foreign(removed: Iterable[Entry], added: Iterable[Entry]) -> Iterator[Change]:
    """Operators of an installed package for which only one side registers kernels: the operator stays, its kernels change."""
    for item in removed:
        yield from _registered(item, _bare(item), item.place, None)
    for item in added:
        yield from _registered(_bare(item), item, None, item.place)


def _registered(one: Entry, other: Entry, old: Place | None, new: Place | None) -> Iterator[Change]:
    for change in (*kernel_changes(one, other), *_semantics(one, other)):
        yield replace(change, old=old, new=new, pack=one.pack)


def _bare(item: Entry) -> Entry:
    """Return an operator of an installed package without the workspace's registrations."""
    return replace(item, keys={}, backends=(), kernels=())


def _nameless(old: Sequence[Entry], new: Sequence[Entry]) -> list[Entry]:
    """The operators of the new side whose names are not known, of the packs that have more of them than on the old side."""
    before, now = (Counter(item.pack for item in side if "name" in item.unknown) for side in (old, new))
    more = now - before
    return [item for item in new if "name" in item.unknown and more[item.pack]]


def _by_name(entries: Sequence[Entry]) -> dict[tuple[str, str], list[Entry]]:
    found: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for item in entries:
        if "name" not in item.unknown:
            found[item.pack, item.name].append(item)
    return found


# -- operators of one side only ------------------------------------------------------------------------------------------


def _unpaired(
    removed: Sequence[Entry],
    added: Sequence[Entry],
    nameless: Sequence[Entry],
    doubt: Doubt,
) -> Iterator[Change | Unclear]:
    """Yield operators that only one side has: renamed, removed, or added."""
    names = renamed(removed, added)
    for item in removed:
        other = names.get(item.name)
        is_moved = other is not None and is_moved_to_namespace(item, other)
        reason = "" if is_moved else doubt.still_there(item) or _may_be_nameless(item, nameless)
        if reason:
            yield Unclear(item.name, f"`{item.name}` is not found on the new side, but {reason}", item.place)
        elif other is not None:
            yield _rename(item, other)
        else:
            yield _removed(item, doubt.still_defined(item))
    taken = {other.name for other in names.values()}
    for item in added:
        reason = doubt.was_there(item)
        if item.name not in taken and reason:
            yield Unclear(item.name, f"`{item.name}` is not found on the old side, but {reason}", item.place, True)
        elif item.name not in taken:
            yield Change("operator-added", item.name, f"`{item.name}` was added", None, item.place, pack=item.pack)


def _may_be_nameless(item: Entry, nameless: Sequence[Entry]) -> str:
    """Return why an operator may be one with an unknown name: it takes the same calls, as far as is known."""
    found = [other for other in nameless if other.pack == item.pack and not _breaks_callers(item, other)]
    return f"the names of {count(len(found), 'operator')} there are not known" if found else ""


def _breaks_callers(old: Entry, new: Entry) -> bool:
    if any(part in new.unknown for part in _SCHEMA_PARTS if part != "name"):
        return False
    return any(isinstance(change, Change) and change.breaks("callers") for change in _signature_changes(old, new))


def _removed(item: Entry, defined: str) -> Change:
    hits = _users(item)
    message = f"`{item.name}` was removed"
    if defined:
        message, hits = (
            f"`{item.name}` is not declared any more; `{item.symbol}` is still defined in {defined}",
            ("semantics",),
        )
    elif item.planned:
        message, hits = f"`{item.name}` was removed; it was declared as not implemented", ("semantics",)
    elif not item.schema and not item.calls and item.backends:
        message, hits = f"{listed(item.backends)} does not list `{item.name}` any more", ("backends",)
        return Change("backend", item.name, message, item.place, None, hits, item.pack)
    return Change("operator-removed", item.name, message, item.place, None, hits, item.pack)


def _users(item: Entry) -> tuple[Audience, ...]:
    """Return who uses an operator by its name: graphs and backends use one of torch, not the class of a manifest's op."""
    is_of_torch = bool(item.schema) or "::" in item.name
    return ("callers", "graphs", "backends") if is_of_torch else ("callers",)


def _rename(old: Entry, new: Entry) -> Change:
    message = f"`{old.name}` is now called `{new.name}`"
    hits: tuple[Audience, ...] = ("semantics",) if old.planned else _users(old)
    if "graphs" not in hits and is_declared_for(old, new):
        message, hits = f"{message}; its class is still `{new.symbol}`", ("semantics",)
    return Change("operator-renamed", old.name, message, old.place, new.place, hits, old.pack)


# -- operators of both sides ---------------------------------------------------------------------------------------------


def _same_name(old: Sequence[Entry], new: Sequence[Entry]) -> Iterator[Change | Unclear]:
    """Yield the changes of operators that share a name on each side: first those with the same contract, then the remaining one.
    One that is declared twice, as in a linked file, may be declared once.
    """
    left, free = [*old], [*new]
    for item in old:
        other = next((other for other in free if contract_of(other) == contract_of(item)), None)
        if other is not None:
            left.remove(item)
            free.remove(other)
            yield from changes_of(item, other)
    left = [item for item in left if all(contract_of(item) != contract_of(other) for other in new)]
    if len(left) == len(free) == 1:
        yield from changes_of(left[0], free[0])
    elif left:
        verb = "have" if len(new) > 1 else "has"
        reason = f"{count(len(old), 'operator')} had the name `{old[0].name}`, and {len(new)} {verb} it now"
        yield Unclear(old[0].name, reason, new[0].place, True)


def changes_of(old: Entry, new: Entry) -> Iterator[Change | Unclear]:
    """The changes of one operator."""
    if old.planned and new.planned:
        return
    for change in _all_changes(old, new):
        if isinstance(change, Change):
            places = change.old or old.place, change.new or new.place
            change = replace(change, old=places[0], new=places[1], pack=old.pack)
            if old.planned:  # nobody can call it yet
                change = replace(change, hits=())
        yield change


def _all_changes(old: Entry, new: Entry) -> Iterator[Change | Unclear]:
    parts = [part for part in _SCHEMA_PARTS if part in old.unknown or part in new.unknown]
    if parts and _is_untouched(old, new):
        pass
    elif parts:
        yield Unclear(old.name, f"`{old.name}`: its {parts[0]} is not known on both sides", new.place, True)
    else:
        yield from _signature_changes(old, new)
    yield from _stated(new, constraint_changes(old, new)) if not parts else ()
    yield from _status(old, new)
    yield from workload_changes(old, new)
    yield from kernel_changes(old, new)
    yield from _semantics(old, new)


def _is_untouched(old: Entry, new: Entry) -> bool:
    """Whether all known parts of an operator are equal: a part that is known on neither side is probably the same."""
    return contract_of(old) == contract_of(new) and old.unknown == new.unknown


def _signature_changes(old: Entry, new: Entry) -> Iterator[Change | Unclear]:
    if old.schema != new.schema:
        before, now = parsed(old.schema), parsed(new.schema)
        if before is None or now is None:
            yield Unclear(old.name, f"`{old.name}`: its schema is not known on both sides", new.place, True)
        else:
            yield from schema_differences(old.name, before, now, (old.places, new.places))
        return
    called = list(_calls(old, new))
    yield from called
    shown = {(change.kind, name) for change in called for name in _names(change)}
    known = bool(old.calls) and bool(new.calls)
    declared = Side(
        old.name, "the declaration: " if known else "", ("semantics",) if known else ("callers", "semantics")
    )
    for change in _stated(new, parameter_changes(declared, old.arguments, new.arguments)):
        if not any((change.kind, name) in shown for name in _names(change)):
            yield change
    has_arguments = bool(old.arguments or new.arguments)
    yield from _stated(new, output_changes(old.name, old.returns, new.returns)) if has_arguments else ()


def _stated(new: Entry, changes: Iterable[Change]) -> Iterator[Change]:
    """Yield the changes of a declaration. One that is not implemented yet narrows no call: the code is still that of the earlier
    one.
    """
    for change in changes:
        yield replace(change, hits=("semantics",)) if new.planned and change.hits else change


def _calls(old: Entry, new: Entry) -> Iterator[Change]:
    """The changes of the Python signatures that are known on both sides."""
    after = {call.name: call for call in new.calls}
    for call in old.calls:
        other = after.get(call.name)
        if other is not None:
            for change in parameter_changes(_side_of(old, call), call.parameters, other.parameters):
                places = change.old or call.place, change.new or other.place
                yield replace(change, old=places[0], new=places[1])


def _side_of(entry: Entry, call: Call) -> Side:
    if any(item.role == LOWERED for item in call.parameters):
        return Side(entry.name, "the lowered schema: ", ("callers", "graphs"))
    return Side(entry.name, f"`{call.name}()`: " if call.name else "", ("callers",))


def _names(change: Change) -> list[str]:
    """Return the names that a message quotes."""
    return [part for part in change.message.split("`")[1::2] if not part.endswith("()")]


def _status(old: Entry, new: Entry) -> Iterator[Change]:
    if old.status != new.status:
        message = f"its status is now `{new.status or 'none'}`; it was `{old.status or 'none'}`"
        hits: tuple[Audience, ...] = ("semantics",) if new.planned else ()
        yield Change("status", old.name, message, hits=hits)


def _semantics(old: Entry, new: Entry) -> Iterator[Change]:
    """Changes of fakes, gradients and tags."""
    lost, gained = sorted({*old.tags} - {*new.tags}), sorted({*new.tags} - {*old.tags})
    if lost:
        yield Change("tag", old.name, f"it does not have the tag {listed(lost)} any more", hits=("semantics",))
    if gained:
        risky = "nondeterministic_seeded" in gained
        yield Change("tag", old.name, f"it now has the tag {listed(gained)}", hits=("semantics",) if risky else ())
    words = {"fake": "fake (meta) kernel", "autograd": "autograd formula"}
    for role, word in words.items():
        has = [role in item.keys for item in (old, new)]
        if has[0] != has[1] and not {role, "registrations"} & {*old.unknown, *new.unknown}:
            text = f"it has no {word} any more" if has[0] else f"it now has a {word}"
            yield Change(role, old.name, text, hits=("semantics",) if has[0] else ())
