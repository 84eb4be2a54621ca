"""Uses of an orchestration's own tensors, by tasks and by itself, in the order in which it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from opschema_cli.source.text import Span
from opschema_rules.pypto.facts import Entry, KernelId, Payload, Submit

Effect = Literal["in", "out", "inout", "unknown"]
"""The effect of a use on the data: read, written without a read, read and written, or unknown."""

_KINDS: dict[str, Effect] = {
    "in": "in",
    "out": "out",
    "inout": "inout",
    "no_dep": "unknown",
    "read": "in",
    "written": "out",
    "escapes": "unknown",
}


class TensorUse(msgspec.Struct, frozen=True):
    """One use of an orchestration's own tensor: by the task of ``submit``, or by the orchestration itself where that is None.

    ``sure`` says that it happens on every path before it. ``told`` says that the kernels are told by scalars, in
    each turn of a loop, what to do; they may be told to write what they need not have read. ``first`` says that nothing has
    used the tensor before on any way that leads here, ``fresh`` that nothing may have written it. ``positions`` are its places
    among the tensors of the task.
    """

    order: int
    effect: Effect
    span: Span
    submit: Submit | None = None
    sure: bool = True
    told: bool = False
    first: bool = False
    fresh: bool = False
    positions: tuple[int, ...] = ()

    @property
    def kernels(self) -> tuple[KernelId, ...]:
        """The kernels of the task."""
        return self.submit.kernels if self.submit is not None else ()


def uses_of(entry: Entry) -> dict[int, list[TensorUse]]:
    """Return the uses of each of the orchestration's own tensors, in order; an unknown task may use any of them."""
    found: dict[int, list[TensorUse]] = {argument: [] for argument, _ in entry.arguments}
    for submit in entry.submits:
        lost = any(payload.unresolved for payload in submit.payloads)
        arguments = {slot.argument for payload in submit.payloads for slot in payload.tensors} - {-1}
        for argument in found if lost else arguments:
            found.setdefault(argument, []).extend(_of_submit(submit, argument))
    for use in entry.uses:
        sure, effect = not use.conditional, _KINDS[use.how]
        one = TensorUse(use.order, effect, use.span, sure=sure, first=use.first, fresh=use.fresh)
        found.setdefault(use.argument, []).append(one)
    return {argument: sorted(uses, key=lambda use: use.order) for argument, uses in found.items()}


def _of_submit(submit: Submit, argument: int) -> Iterator[TensorUse]:
    """Yield the uses of a tensor by a task. If its payloads differ, each is a use of its own, and none is certain."""
    if any(payload.unresolved for payload in submit.payloads):
        yield TensorUse(submit.order, "unknown", submit.span, submit)
        return
    effects = [_effect(payload, argument) for payload in submit.payloads]
    sure = not submit.conditional and len(set(effects)) == 1
    told = submit.looped and any(slot.kind == "scalar" for payload in submit.payloads for slot in payload.slots)
    first, fresh = argument in submit.first, argument in submit.fresh
    for effect in dict.fromkeys(effects):
        if effect is not None:
            payloads = [payload for payload, found in zip(submit.payloads, effects, strict=True) if found == effect]
            placed = [
                (at, slot)
                for payload in payloads
                for at, slot in enumerate(payload.tensors)
                if slot.argument == argument
            ]
            slots = [slot for _, slot in placed]
            positions = tuple(sorted({at for at, _ in placed}))
            reading = [slot for slot in slots if slot.kind in ("in", "inout")]
            span = (reading if effect != "out" and reading else slots)[0].span
            yield TensorUse(submit.order, effect, span, submit, sure, told, first, fresh, positions)


def _effect(payload: Payload, argument: int) -> Effect | None:
    """Return the effect of a task on a tensor that may be in several slots; None if it is in none."""
    effects = {_KINDS[slot.kind] for slot in payload.tensors if slot.argument == argument}
    if not effects:
        return None
    if "unknown" in effects:
        return "unknown"
    return next(iter(effects)) if len(effects) == 1 else "inout"
