"""The cells of an op: every row and dtype in several shapes, layouts and values, in the order in which they are run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from opschema_cli.verify.model import Call, Cell, Layout, Values


class Kind(NamedTuple):
    """What sets a cell apart from others of its row and dtype."""

    shape: str
    values: Values = "normal"
    layout: Layout = "contiguous"
    seed: int = 0
    again: bool = False


@dataclass(frozen=True)
class Case:
    """One row in one dtype: the call by the row itself, or by what stands for it, and what gives the calls in shapes
    derived from it, which is asked only where there is room for their cells.
    """

    op: str
    row: str
    dtype: str
    shape: str
    call: Call
    derived: Callable[[], dict[str, Call]]

    @cached_property
    def calls(self) -> dict[str, Call]:
        """The calls by the name of their shape, in the order in which they are run."""
        return {self.shape: self.call, **self.derived()}

    def cell(self, kind: Kind) -> Cell:
        """One of its cells."""
        shape, values, layout, seed, again = kind
        return Cell(
            op=self.op,
            row=self.row,
            dtype=self.dtype,
            shape=shape,
            values=values,
            layout=layout,
            seed=seed,
            again=again,
            call=self.call if shape == self.shape else self.calls[shape],
        )

    def kinds(self) -> Iterator[Kind]:
        """All of its cells, the row's own first, those that repeat others last.

        A call without inputs looks the same whatever its inputs' seed, values and layout are.
        """
        yield Kind(self.shape)
        yield from (Kind(shape) for shape in list(self.calls)[1:])
        if self.call.inputs:
            yield Kind(self.shape, seed=1)
        if any(len(item.shape) > 0 for item in self.call.inputs):
            yield Kind(self.shape, layout="strided")
        if any("float" in item.dtype for item in self.call.inputs):
            yield Kind(self.shape, values="special")
        if len(self.calls) > 1:
            yield from (Kind(shape, again=True) for shape in reversed(self.calls))


def choose(cases: Sequence[Case], limit: int) -> tuple[list[Cell], int]:
    """At most ``limit`` cells, and how many cases were not gone through to their end.

    The first case is whole; every other one is run as the row stands; then the first of each further dtype is whole, and
    what room is left goes round. Repetitions come last, in reverse order, after all else.
    """
    left = {index: case.kinds() for index, case in enumerate(cases)}
    chosen: list[list[Kind]] = [[] for _ in cases]
    room = limit
    for index in _turns(cases, left):
        kind = next(left[index], None)
        if kind is None:
            del left[index]
        elif room == 0:
            break
        else:
            chosen[index].append(kind)
            room -= 1
    pairs = [(case, kind) for case, kinds in zip(cases, chosen, strict=True) for kind in kinds]
    once = [case.cell(kind) for case, kind in pairs if not kind.again]
    place = {cell.data_key: index for index, cell in enumerate(once)}
    again = [case.cell(kind) for case, kind in pairs if kind.again]
    return [*once, *sorted(again, key=lambda cell: -place[cell.data_key])], len(left)


def _turns(cases: Sequence[Case], left: Mapping[int, object]) -> Iterator[int]:
    """Whose turn it is to give a cell, as long as any is left."""
    if cases:
        yield from _all_of(0, left)
    yield from range(1, len(cases))
    seen: set[str] = set()
    for index, case in enumerate(cases):
        if case.dtype not in seen:
            seen.add(case.dtype)
            yield from _all_of(index, left)
    while left:
        yield from list(left)


def _all_of(index: int, left: Mapping[int, object]) -> Iterator[int]:
    while index in left:
        yield index
