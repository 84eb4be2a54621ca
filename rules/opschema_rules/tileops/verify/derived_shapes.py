"""The shapes in which an op is run, derived from a row: unaligned, larger, long rows, a tail of one, 1 and 0 on each axis."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

import msgspec

from opschema_cli.verify.model import Limits
from opschema_rules.tileops.entry_parts import Row
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.verify.calls import Passed
from opschema_rules.tileops.verify.sizes import FreeSize, Sizes, changed, value_at

_PRIMES = (7, 11, 13, 5, 3)
_SMALL_PRIMES = (3, 5, 7)
_LAST_PRIMES = (67, 37, 101)
_EVEN = (14, 28, 12, 20)
_MORE = (41, 73, 56, 112, 224, 448)
_TAILS = (33, 65, 97, 129, 257)
_LONG = (2051, 2056, 2560, 4096, 8192)
"""Sizes beyond the tile of a row that kernels take at once."""

ALIGNMENT = 8
"""A size that is not a multiple of it is unaligned."""


class _State(msgspec.Struct, frozen=True):
    """A changed row and its bound values."""

    row: Row
    passed: Passed


class Shapes:
    """The shapes of one row: ``base`` as written, and the derived ones on demand.

    ``whole`` says whether the row as it stands is within the limit.
    """

    def __init__(self, entry: OpEntry, base: Passed, carriers: Collection[str], limits: Limits) -> None:
        self.entry, self.base, self.carriers, self.limits = entry, base, carriers, limits
        self.whole = base.elements(entry)[0] <= limits.row_elements

    @cached_property
    def derived(self) -> dict[str, Passed]:
        """Return the shapes by name, in the order in which they are run; those equal to the row are left out.

        Where the row is beyond the limit, ``scaled`` is the row with its sizes halved until it is within the limit
        of derived ones. What the rules do not allow is not derived.
        """
        deriver = _Deriver(Sizes(self.entry, self.base, self.carriers), self.limits)
        params = deriver.sizes.stated.params
        found: dict[str, Passed] = {}
        seen = {_key(self.base, params)}
        for name, passed in deriver.derived(whole=self.whole):
            key = _key(passed, params)
            if key not in seen:
                seen.add(key)
                found[name] = passed
        return found


class _Deriver:
    """Makes shapes from the free sizes of a row."""

    def __init__(self, sizes: Sizes, limits: Limits) -> None:
        self.sizes, self.limits = sizes, limits
        self.free = sizes.free

    def derived(self, *, whole: bool) -> Iterator[tuple[str, Passed]]:
        """Yield the shapes that the rules allow, by name; ``scaled`` unless the row is run as a ``whole``."""
        start = self._state(self.sizes.row)
        if start is None or not self.free:
            return
        scaled, odd = self._scaled(start), self._odd(start)
        first, last = self._ends()
        bases = [state for state in (scaled, odd) if state is not None]
        found = {
            "scaled": None if whole else scaled,
            "odd": odd,
            "larger": self._larger(odd or scaled, first),
            "one-row": first_of(self._set(state, first, (1,)) for state in bases),
            "tail-1": first_of(self._set(state, last, self._tails(last)) for state in bases),
            "zero-rows": first_of(self._set(state, first, (0,)) for state in bases),
            "long": self._longer(odd or scaled, first, last),
            "one-column": first_of(self._set(state, last, (1,)) for state in bases),
            "zero-columns": first_of(self._set(state, last, (0,)) for state in bases),
        }
        for place, size in enumerate((size for size in self.free if size not in (first, last)), 2):
            found[f"one-{place}"] = first_of(self._set(state, size, (1,)) for state in reversed(bases))
            found[f"zero-{place}"] = first_of(self._set(state, size, (0,)) for state in reversed(bases))
        yield from ((name, state.passed) for name, state in found.items() if state is not None)

    def _state(self, row: Row) -> _State | None:
        passed = self.sizes.accepts(row)
        return _State(row, passed) if passed is not None else None

    def _moved(self, state: _State, free: FreeSize, values: Iterable[int]) -> _State | None:
        """The state with one size at the first of ``values`` that the rules allow."""
        return first_of(self._state(changed(state.row, free.sites, value)) for value in values)

    def _set(self, state: _State, free: FreeSize, values: Iterable[int]) -> _State | None:
        """Return the state after a change, if no tensor gets too large."""
        moved = (self._moved(state, free, (value,)) for value in values)
        return first_of(found for found in moved if found is not None and self._is_small(found))

    def _is_small(self, state: _State) -> bool:
        return state.passed.elements(self.sizes.entry)[0] <= self.limits.derived_elements

    def _ends(self) -> tuple[FreeSize, FreeSize]:
        """The leading and the last free size of the first input that has any, or of the first output."""
        for tensor in self.sizes.entry.tensors:
            own = [
                (axis, index) for index, free in enumerate(self.free) for name, axis in free.axes if name == tensor.name
            ]
            if own:
                return self.free[min(own)[1]], self.free[max(own)[1]]
        return self.free[0], self.free[-1]

    def _scaled(self, state: _State) -> _State | None:
        """The row with its largest sizes halved until no tensor is too large."""
        value = {free: free.value for free in self.free}
        open_sizes = list(self.free)
        while not self._is_small(state) and open_sizes:
            largest = max(open_sizes, key=lambda free: value[free])
            half = value[largest] // 2
            moved = self._moved(state, largest, (half,)) if half >= ALIGNMENT else None
            if moved is None:
                open_sizes.remove(largest)
            else:
                state, value[largest] = moved, half
        return state if self._is_small(state) else None

    def _odd(self, state: _State) -> _State | None:
        """Every size small and unaligned where the rules allow it, no two the same where that is possible."""
        last = self._ends()[1]
        used: set[int] = set()
        for free in self.free:
            primes = _SMALL_PRIMES if free.value < ALIGNMENT else _LAST_PRIMES if free is last else _PRIMES
            values = sorted((prime for prime in primes if prime != free.value), key=used.__contains__)
            for value in (*values, *_EVEN, free.other):
                moved = self._moved(state, free, (value,))
                if moved is not None:
                    state = moved
                    used.add(value)
                    break
        unaligned = any(value % ALIGNMENT for value in used)
        return state if unaligned and self._is_small(state) else None

    def _larger(self, state: _State | None, first: FreeSize) -> _State | None:
        """Return a state with more rows than all before, or at least than ``state``: anything set up for fewer has to notice."""
        if state is None:
            return None
        rows = max(first.value, value_at(state.row, first.sites[0]))
        fewer = (value for value in _MORE if value_at(state.row, first.sites[0]) < value < rows)
        return self._set(state, first, (2 * rows + 3, 2 * rows + 1, 2 * rows, 3 * rows, *fewer))

    def _tails(self, last: FreeSize) -> tuple[int, ...]:
        near = last.value // 32 * 32 + 1
        return tuple(value for value in (near, *_TAILS) if value not in (1, last.value))

    def _longer(self, state: _State | None, first: FreeSize, last: FreeSize) -> _State | None:
        """Return a state with slightly more rows than a tile."""
        if state is None:
            return None
        long = tuple(value for value in _LONG if value > last.value)
        row = self._moved(state, first, (1,)) if first != last else None
        return self._set(state, last, long) or (self._set(row, last, long) if row is not None else None)


def first_of(states: Iterable[_State | None]) -> _State | None:
    """The first that is there."""
    return next((state for state in states if state is not None), None)


def _key(passed: Passed, params: Iterable[str]) -> tuple[object, ...]:
    """Return the identity of a call: the shapes, and the params in the row."""
    data = passed.bound.row.data
    return (*passed.shapes.items(), *(repr(data.get(name)) for name in params))
