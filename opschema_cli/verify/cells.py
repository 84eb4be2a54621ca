"""The cells of an op: every row and dtype in several shapes, layouts and values, in the order in which they are run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat, zip_longest
from typing import NamedTuple

import msgspec

from opschema_cli.verify.model import WRONG, Call, Cell, Input, Layout, Limits, Values
from opschema_cli.verify.refusals import WRONG_DEVICE, wrong_calls
from opschema_cli.verify.search.choices import is_index

_SMALL = 1 << 20
"""The most elements of an input with which a row is run in further values and layouts, if there is a smaller shape."""

_REPEATED = 5


class Kind(NamedTuple):
    """The properties of a cell that others of its row and dtype do not share."""

    shape: str
    values: Values = "normal"
    layout: Layout = "contiguous"
    seed: int = 0
    again: bool = False


class Case(msgspec.Struct, frozen=True, dict=True):
    """One row in one dtype: the call for the row or its substitute, and a function that derives calls in other shapes, which is
    called only if there is room for their cells. A call that was ``found`` by search may take integers as indices without
    checking them.
    """

    op: str
    row: str
    dtype: str
    shape: str
    call: Call
    derived: Callable[[], dict[str, Call]]
    found: bool = False

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
            call=self.call if shape == self.shape else (self.wrong if shape.startswith(WRONG) else self.calls)[shape],
        )

    @cached_property
    def wrong(self) -> dict[str, Call]:
        """The calls that an op should refuse."""
        return wrong_calls(self.calls[self._odd])

    def values(self) -> Iterator[Kind]:
        """The row with other layouts and values. A call without inputs looks the same whatever they are."""
        if self._has_axes:
            yield Kind(self.shape, layout="strided")
        if self._has_floats:
            yield Kind(self.shape, values="special")
        if self._has_floats or (not self.found and alike_integers(self.call.inputs)):
            yield Kind(self._small, values="wide")

    def first_kinds(self) -> Iterator[Kind]:
        """The kinds that find most: an unaligned shape, other layouts and values."""
        yield from (Kind(shape) for shape in self._derived[:1])
        yield from self.values()

    def further_kinds(self) -> Iterator[Kind]:
        """The layouts and values that are left, and all other shapes."""
        odd = self._odd
        if self._has_floats:
            yield Kind("long" if "long" in self.calls else self._small, values="large", layout="offset")
            yield Kind(odd, values="ties", layout="transposed")
            yield Kind(self._small, values="zeros")
        elif self._has_axes:
            yield Kind(odd, layout="transposed")
        yield from (Kind(shape) for shape in self._derived[1:])
        if self._has_axes:
            yield Kind("tail-1" if "tail-1" in self.calls else odd, layout="sliced")
            yield Kind(odd, layout="expanded")

    def repeats(self) -> Iterator[Kind]:
        """Shapes with elements once more, in reverse order, and the row with another seed."""
        if len(self.calls) > 1:
            filled = [shape for shape, call in self.calls.items() if all(_count(item.shape) for item in call.inputs)]
            yield from (Kind(shape, again=True) for shape in reversed(filled[:_REPEATED]))
        if self.call.inputs:
            yield Kind(self.shape, seed=1)

    @property
    def _odd(self) -> str:
        return self._derived[0] if self._derived else self.shape

    @cached_property
    def _derived(self) -> list[str]:
        return [shape for shape in self.calls if shape != self.shape]

    @property
    def _has_axes(self) -> bool:
        return any(len(item.shape) > 0 for item in self.call.inputs)

    @property
    def _has_floats(self) -> bool:
        return any("float" in item.dtype for item in self.call.inputs)

    @cached_property
    def _small(self) -> str:
        """The row, or a shape derived from it where the row is large."""
        large = any(_count(item.shape) > _SMALL for item in self.call.inputs)
        return self._odd if large else self.shape


def alike_integers(specs: Sequence[Input]) -> bool:
    """Whether all inputs are integers of one dtype and shape without bounds. Such inputs are numbers, not indices into each
    other or (judging by names such as ``topk_ids``) into the op's results.
    """
    kinds = {(spec.dtype, spec.shape) for spec in specs}
    free = all(
        spec.low is None and spec.high is None and not (spec.ascending or spec.index or is_index(spec.name))
        for spec in specs
    )
    return len(kinds) == 1 and free and specs[0].dtype.startswith(("int", "uint"))


def choose(cases: Sequence[Case], limits: Limits) -> tuple[list[Cell], int]:
    """The cells within limits, and the number of cases that were only partly covered.

    The first case of each dtype is run as the row stands, and that of the first dtype in the kinds that find most; then every other
    row. Then come those kinds of the other dtypes, all further kinds of the first dtype, its repetitions, the layouts and values of
    other rows; what room is left goes round. Repetitions are run after all, in reverse order, and last the calls that an op
    should refuse.
    """
    chosen: list[list[Kind]] = [[] for _ in cases]
    room, complete = limits.cells, 0
    for index, kind in _turns(cases):
        if kind is not None and kind.shape == WRONG_DEVICE and limits.devices == 1:
            continue
        if kind is None:
            complete += 1
        elif room == 0:
            break
        else:
            chosen[index].append(kind)
            room -= 1
    pairs = [(case, kind) for case, kinds in zip(cases, chosen, strict=True) for kind in kinds]
    wrong = [case.cell(kind) for case, kind in pairs if kind.shape.startswith(WRONG)]
    once = [case.cell(kind) for case, kind in pairs if not kind.again and not kind.shape.startswith(WRONG)]
    place = {cell.data_key: index for index, cell in enumerate(once)}
    again = [case.cell(kind) for case, kind in pairs if kind.again]
    return [*once, *sorted(again, key=lambda cell: -place[cell.data_key]), *wrong], len(cases) - complete


def _turns(cases: Sequence[Case]) -> Iterator[tuple[int, Kind | None]]:
    """Yield the next kind and its case, as long as there are any, and None after the last kind of a case."""
    first = {case.dtype: index for index, case in reversed(list(enumerate(cases)))}
    firsts = sorted(first.values())
    others = [index for index in range(len(cases)) if index not in firsts]
    yield from ((index, Kind(cases[index].shape)) for index in firsts)
    for place, index in enumerate(firsts):
        yield from ((index, kind) for kind in cases[index].first_kinds())
        if place == 0:
            yield from ((other, Kind(cases[other].shape)) for other in others)
    for index in firsts[:1]:
        refusals = (Kind(shape) for shape in cases[index].wrong)
        further = chain(cases[index].further_kinds(), refusals, cases[index].repeats(), [None])
        yield from ((index, kind) for kind in further)
    yield from _round({index: cases[index].values() for index in others})
    rest = {index: chain(cases[index].further_kinds(), cases[index].repeats(), [None]) for index in firsts[1:]}
    for index in others:
        shapes = (Kind(shape) for shape in list(cases[index].calls)[1:])
        rest[index] = chain(shapes, cases[index].repeats(), [None])
    yield from _round(rest)


def _round(left: Mapping[int, Iterator[Kind | None]]) -> Iterator[tuple[int, Kind | None]]:
    """Yield one of each in turn."""
    for kinds in zip_longest(*(zip(repeat(index), kinds) for index, kinds in left.items())):
        yield from (pair for pair in kinds if pair is not None)


def _count(shape: Sequence[int]) -> int:
    return math.prod(shape)
