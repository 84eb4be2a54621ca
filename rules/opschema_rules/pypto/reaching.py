"""Which of the writes to a name a use of it may see, going by the order of statements and the branches that they stand in."""

from __future__ import annotations

import msgspec

from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Span


class Write(msgspec.Struct, frozen=True):
    """A write to a name: what is assigned, None where it is not known, and of several targets which one the name is.

    ``at`` is the statement that may not run which the write stands in and the use does not; None where it surely comes first.
    """

    start: int
    value: Expr | None
    at: Span | None
    index: int | None = None


def reaching(bodies: Bodies, body: Body, name: str, use: int) -> tuple[Body, list[Write]]:
    """The body that a name belongs to, and the writes that a use of it there may see; none where one is not known.

    A use in another body than the name's own sees it only if there is one write. What a loop carries round is left out.
    """
    binder = body.binder(name) or bodies.module(body.file)
    if any(item.name == name for item in binder.params) or name in binder.scope.deleted:
        return binder, []
    writes = _writes(binder, name)
    if binder is not body:
        known = [Write(item.start, item.value, None, item.index) for item in writes if item.value is not None]
        return binder, known if len(known) == len(writes) == 1 else []
    before = [item for item in writes if item.start < use]
    sure = [index for index, item in enumerate(before) if item.at is None or item.at.start <= use < item.at.end]
    kept = before[sure[-1] :] if sure else before
    if any(item.value is None for item in kept):
        return binder, []
    return binder, [
        Write(item.start, item.value, item.at if item not in kept[:1] or not sure else None, item.index)
        for item in kept
    ]


def _writes(body: Body, name: str) -> list[Write]:
    unpacks = [item for item in body.scope.unpacks if name in item.targets]
    found = [
        Write(item.start, None if item.starred else item.value, _guard(body, item.start), item.targets.index(name))
        for item in unpacks
    ]
    for assign in body.scope.assigns:
        bare = assign.value is None and assign.annotation is not None
        inside = any(item.start <= assign.start < item.end for item in unpacks)
        if assign.target == name and not bare and not inside:
            found.append(Write(assign.start, assign.value, _guard(body, assign.start)))
    return sorted(found, key=lambda item: item.start)


def _guard(body: Body, at: int) -> Span | None:
    """The innermost statement around a place that may not run, loops included."""
    loops = [item.body for item in body.scope.loops]
    around = [item for item in (*body.scope.guarded, *loops) if item.start <= at < item.end]
    return max(around, key=lambda item: item.start, default=None)
