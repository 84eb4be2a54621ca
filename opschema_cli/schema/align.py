"""Comparison of declared slots with observed uses, which all signature rules share.

A *declaration* (a manifest's inputs, a ``custom_op``'s signature, a schema string) states slots; an *observation* (a
method's parameters, a fake's, a call) uses them. A pack turns both sides into slots, says how they bind, and words
what differs; here they are only compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from opschema_cli.sequences import longest_rise
from opschema_cli.source.python import Param, ParamKind
from opschema_cli.source.text import Span

Binding = Literal["name", "position"]

POSITIONAL: frozenset[ParamKind] = frozenset({"posonly", "normal"})
"""Kinds that an argument can fill by its place."""

NAMED: frozenset[ParamKind] = frozenset({"normal", "kwonly"})
"""Kinds that an argument can fill by its name."""


NOWHERE = Span(0, 0)


class Slot(msgspec.Struct, frozen=True):
    """One argument of a signature. ``required`` means that it has no default; ``span`` is where its name is written."""

    name: str
    kind: ParamKind = "normal"
    required: bool = True
    span: Span = NOWHERE


class Alignment(msgspec.Struct, frozen=True):
    """Comparison of two signatures; every pair is (declared, observed).

    ``matched`` are the same slot on both sides. ``renamed`` stand at the same place under two names. ``swallowed`` are declared
    slots that the other side takes by ``*args`` or ``**kwargs``. ``missing`` are declared and not observed, ``extra``
    observed and not declared. ``reordered`` are the fewest matched pairs whose move would put the observed order right.
    """

    matched: tuple[tuple[Slot, Slot], ...] = ()
    renamed: tuple[tuple[Slot, Slot], ...] = ()
    swallowed: tuple[tuple[Slot, Slot], ...] = ()
    missing: tuple[Slot, ...] = ()
    extra: tuple[Slot, ...] = ()
    reordered: tuple[tuple[Slot, Slot], ...] = ()


def slots(params: Iterable[Param]) -> list[Slot]:
    """The parameters of a function as slots."""
    return [Slot(item.name, item.kind, item.default is None and item.by_name, item.span) for item in params]


def align(declared: Sequence[Slot], observed: Sequence[Slot], *, by: Binding = "name") -> Alignment:
    """Compare a declaration with a use.

    ``by`` says how arguments find their slots. By name, a slot matches the one of its name, wherever it stands. By
    position, the first positional slot matches the first and so on, whatever their names; keyword-only ones still
    match by name.
    """
    return _by_name(declared, observed) if by == "name" else _by_position(declared, observed)


def _by_name(declared: Sequence[Slot], observed: Sequence[Slot]) -> Alignment:
    uses = {slot.name: slot for slot in observed if slot.kind not in ("vararg", "kwarg")}
    names = {slot.name for slot in declared}
    matched = [(slot, uses[slot.name]) for slot in declared if slot.name in uses]
    left = [slot for slot in declared if slot.name not in uses]
    extra = [slot for slot in uses.values() if slot.name not in names]
    swallowed, left = _swallow(left, observed)
    renamed = _same_place(declared, observed, left, extra)
    return Alignment(
        tuple(matched),
        tuple(renamed),
        tuple(swallowed),
        tuple(slot for slot in left if slot not in [pair[0] for pair in renamed]),
        tuple(slot for slot in extra if slot not in [pair[1] for pair in renamed]),
        tuple(_out_of_order(matched, observed)),
    )


def _by_position(declared: Sequence[Slot], observed: Sequence[Slot]) -> Alignment:
    takers = [slot for slot in observed if slot.kind in POSITIONAL]
    givers = [slot for slot in declared if slot.kind in POSITIONAL]
    pairs = list(zip(givers, takers, strict=False))
    named = [slot for slot in declared if slot.kind not in POSITIONAL]
    rest = _by_name(named, [*takers[len(pairs) :], *(slot for slot in observed if slot.kind not in POSITIONAL)])
    swallowed, missing = _swallow(givers[len(pairs) :], observed)
    return Alignment(
        (*(pair for pair in pairs if pair[0].name == pair[1].name), *rest.matched),
        (*(pair for pair in pairs if pair[0].name != pair[1].name), *rest.renamed),
        (*swallowed, *rest.swallowed),
        (*missing, *rest.missing),
        rest.extra,
    )


def _swallow(left: list[Slot], observed: Sequence[Slot]) -> tuple[list[tuple[Slot, Slot]], list[Slot]]:
    """Of unmatched declared slots, those that ``*args`` or ``**kwargs`` take, and the others."""
    swallowed: list[tuple[Slot, Slot]] = []
    missing: list[Slot] = []
    for slot in left:
        taken = next((use for use in observed if _takes(use, slot)), None)
        if taken is None:
            missing.append(slot)
        else:
            swallowed.append((slot, taken))
    return swallowed, missing


def _takes(use: Slot, slot: Slot) -> bool:
    return (use.kind == "vararg" and slot.kind in POSITIONAL) or (use.kind == "kwarg" and slot.kind in NAMED)


def _same_place(
    declared: Sequence[Slot], observed: Sequence[Slot], left: Sequence[Slot], extra: Sequence[Slot]
) -> list[tuple[Slot, Slot]]:
    """Return the unmatched slots of both sides that have the same position."""
    return [
        (slot, use)
        for slot, use in zip(declared, observed, strict=False)
        if slot in left and use in extra and slot.kind in POSITIONAL and use.kind in POSITIONAL
    ]


def _out_of_order(matched: Sequence[tuple[Slot, Slot]], observed: Sequence[Slot]) -> list[tuple[Slot, Slot]]:
    """The pairs outside a longest run that keeps the declared order; keyword-only slots have none."""
    place = {slot.name: index for index, slot in enumerate(observed)}
    pairs = [pair for pair in matched if pair[0].kind in POSITIONAL and pair[1].kind in POSITIONAL]
    kept = set(longest_rise([place[pair[1].name] for pair in pairs]))
    return [pair for index, pair in enumerate(pairs) if index not in kept]
