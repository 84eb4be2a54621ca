"""The calls that an entry's workload rows describe: each row completed, and calls of other sizes derived from some of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.lint.diagnostic import Related
from opschema_cli.schema.evaluate import Tensor as Bound
from opschema_rules.tileops.bindings import BoundRow, bound_rows
from opschema_rules.tileops.calls.rowless import call_without_row
from opschema_rules.tileops.calls.sizes import derived_rows
from opschema_rules.tileops.calls.witnesses import completed
from opschema_rules.tileops.constraints import excluded_sizes
from opschema_rules.tileops.model import OpEntry

Origin: TypeAlias = Literal["row", "completed", "derived"]
Shape: TypeAlias = tuple[int, ...]

MAX_KINDS = 4
"""Maximum number of kinds of calls to describe for one entry."""


class DescribedCall(msgspec.Struct, frozen=True, eq=False):
    """A call by a bound row. ``origin`` says how the row was obtained: as written, with values for what it leaves open, or with
    other sizes.
    """

    bound: BoundRow
    origin: Origin

    def shapes(self, entry: OpEntry) -> dict[str, Shape | None]:
        """The shapes of the inputs by name; None for an input that the call leaves out."""
        values = {item.name: self.bound.values.get(item.name) for item in entry.inputs}
        return {name: value.shape if isinstance(value, Bound) else None for name, value in values.items()}

    def related(self, entry: OpEntry) -> tuple[Related, ...]:
        """The row that describes the call, as the other side of a finding; nothing for an entry without rows."""
        return (entry.related(self.bound.row.node, "the workload row"),) if entry.rows else ()


def described_calls(entry: OpEntry, *, edges: bool = True) -> Iterator[DescribedCall]:
    """Yield the calls of an entry's rows that the signature allows and that have known input shapes, one of each kind.

    From the first, calls of other sizes are derived; with ``edges`` those of size 1 and 0 too. An entry without rows has one call,
    with values for all that its signature leaves open.
    """
    kinds = {_kind(entry, bound): bound for bound in reversed(bound_rows(entry)) if _is_allowed(entry, bound)}
    calls = [
        call for bound in list(reversed(kinds.values()))[:MAX_KINDS] if (call := _described(entry, bound)) is not None
    ]
    made = call_without_row(entry) if not entry.rows else None
    calls += [DescribedCall(made, "completed")] if made is not None else []
    yield from calls
    for call in calls[:1]:
        yield from (DescribedCall(bound, "derived") for bound in derived_rows(entry, call.bound, edges=edges))


def _is_allowed(entry: OpEntry, bound: BoundRow) -> bool:
    return not bound.broken and not bound.row.repeated and not any(excluded_sizes(entry, bound))


def _described(entry: OpEntry, bound: BoundRow) -> DescribedCall | None:
    whole = completed(entry, bound)
    return DescribedCall(whole, "row" if whole is bound else "completed") if whole is not None else None


def _kind(entry: OpEntry, bound: BoundRow) -> object:
    """The parts of a call that mostly determine its path through the code: its params, and the ranks of its inputs."""
    params = tuple(repr(bound.values.get(item.name)) for item in entry.params)
    return params, tuple(_rank(bound, item.name) for item in entry.inputs)


def _rank(bound: BoundRow, name: str) -> int | None:
    """Return the rank of an input; -1 if the row leaves it open, None if the row omits the input."""
    value = bound.values.get(name)
    return (len(value.shape) if value.shape is not None else -1) if isinstance(value, Bound) else None
