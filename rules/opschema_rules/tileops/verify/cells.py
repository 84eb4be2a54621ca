"""The cells of an op: every row and dtype in several shapes, layouts and values, in the order in which they are run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat, zip_longest
from typing import NamedTuple

import msgspec

from opschema_cli.verify.model import Call, Cell, Layout, Values


class Kind(NamedTuple):
    """The properties of a cell that others of its row and dtype do not share."""

    shape: str
    values: Values = "normal"
    layout: Layout = "contiguous"
    seed: int = 0
    again: bool = False


class Case(msgspec.Struct, frozen=True, dict=True):
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

    def values(self) -> Iterator[Kind]:
        """The row with other layouts and values. A call without inputs looks the same whatever they are."""
        if any(len(item.shape) > 0 for item in self.call.inputs):
            yield Kind(self.shape, layout="strided")
        if any("float" in item.dtype for item in self.call.inputs):
            yield Kind(self.shape, values="special")

    def shapes(self) -> Iterator[Kind]:
        """The shapes that are derived from the row."""
        yield from (Kind(shape) for shape in list(self.calls)[1:])

    def repeats(self) -> Iterator[Kind]:
        """The row with another seed, and all shapes again."""
        if self.call.inputs:
            yield Kind(self.shape, seed=1)
        if len(self.calls) > 1:
            yield from (Kind(shape, again=True) for shape in reversed(self.calls))


def choose(cases: Sequence[Case], limit: int) -> tuple[list[Cell], int]:
    """At most ``limit`` cells, and the number of cases that were only partly covered.

    Every case is run as the row stands; then the first of each dtype in all shapes, layouts and values; then every other one in all
    layouts and values. Only then come seeds and repetitions, of the first of each dtype, and what room is left goes round.
    Repetitions are run last, in reverse order.
    """
    chosen: list[list[Kind]] = [[] for _ in cases]
    room, complete = limit, 0
    for index, kind in _turns(cases):
        if kind is None:
            complete += 1
        elif room == 0:
            break
        else:
            chosen[index].append(kind)
            room -= 1
    pairs = [(case, kind) for case, kinds in zip(cases, chosen, strict=True) for kind in kinds]
    once = [case.cell(kind) for case, kind in pairs if not kind.again]
    place = {cell.data_key: index for index, cell in enumerate(once)}
    again = [case.cell(kind) for case, kind in pairs if kind.again]
    return [*once, *sorted(again, key=lambda cell: -place[cell.data_key])], len(cases) - complete


def _turns(cases: Sequence[Case]) -> Iterator[tuple[int, Kind | None]]:
    """The next kind and its case, as long as there are any; None behind the last one of a case."""
    first = {case.dtype: index for index, case in reversed(list(enumerate(cases)))}
    firsts = sorted(first.values())
    others = [index for index in range(len(cases)) if index not in firsts]
    yield from ((index, Kind(cases[index].shape)) for index in (*firsts, *others))
    for index in firsts:
        yield from ((index, kind) for kind in chain(cases[index].shapes(), cases[index].values()))
    yield from _round({index: cases[index].values() for index in others})
    for index in firsts:
        yield from ((index, kind) for kind in chain(cases[index].repeats(), [None]))
    yield from _round({index: chain(cases[index].shapes(), cases[index].repeats(), [None]) for index in others})


def _round(left: Mapping[int, Iterator[Kind | None]]) -> Iterator[tuple[int, Kind | None]]:
    """One of each in turn."""
    for kinds in zip_longest(*(zip(repeat(index), kinds) for index, kinds in left.items())):
        yield from (pair for pair in kinds if pair is not None)
