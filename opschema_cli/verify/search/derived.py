"""Shapes derived from an accepted call: equal sizes change together, to the extent that the operator accepts it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from opschema_cli.verify.model import Call, Input
from opschema_cli.verify.search.candidates import Accepts

_ODD = (7, 11, 13, 5, 3, 24, 40, 96, 384)
_LAST_ODD = (67, 37, 101, 72, 40, 96, 384)
_TAILS = (33, 65, 129, 40, 640)
_LONG = (2051, 2056, 4096)
_MORE = ((2, 3), (2, 1), (2, 0), (3, 0))


def derived_calls(call: Call, accepts: Accepts, most_elements: int) -> dict[str, Call]:
    """The calls in other shapes, by the names of these, in the order in which they are run."""
    found: dict[str, Call] = {}
    seen = [_shapes(call)]
    for name, other in _Deriver(call, accepts, most_elements).all():
        if other is not None and _shapes(other) not in seen:
            seen.append(_shapes(other))
            found[name] = other
    return found


class _Deriver:
    def __init__(self, call: Call, accepts: Accepts, most_elements: int) -> None:
        self._call, self._accepts, self._most = call, accepts, most_elements
        plain = {size for item in call.inputs if not item.ascending for size in item.shape}
        self._beyond = {size + 1 for size in plain} - plain
        sizes = [size for item in call.inputs for size in item.shape if size > 1 and not self._follows(item, size)]
        self._sizes = list(dict.fromkeys(sizes))
        self._numbers = {
            name for name, value in call.params.items() if not set(_integers(value)).isdisjoint(self._sizes)
        }

    def all(self) -> Iterator[tuple[str, Call | None]]:
        """Yield the calls by the name of their shape, with None if no change is accepted."""
        if not self._sizes:
            return
        first, last = self._ends()
        odd = self._odd(first, last)
        bases = [odd, self._call] if odd is not None else [self._call]
        sizes = {base: self._now(base) for base in range(len(bases))}
        yield "odd", odd
        rows = max(first, sizes[0].get(first, first))
        yield "larger", self._set(bases[0], sizes[0], first, (rows * factor + more for factor, more in _MORE))
        yield "one-row", self._either(bases, sizes, first, (1,))
        if last != first:
            yield "tail-1", self._either(bases, sizes, last, _TAILS)
        yield "zero-rows", self._either(bases, sizes, first, (0,))
        yield "long", self._set(bases[0], sizes[0], last, _LONG)
        if last != first:
            yield "one-column", self._either(bases, sizes, last, (1,))
            yield "zero-columns", self._either(bases, sizes, last, (0,))
        for place, size in enumerate((size for size in self._sizes if size not in (first, last)), 2):
            yield f"one-{place}", self._either(bases, sizes, size, (1,))
            yield f"zero-{place}", self._either(bases, sizes, size, (0,))

    def _ends(self) -> tuple[int, int]:
        """The leading and the last size of the input with most axes."""
        shapes = [[size for size in item.shape if size in self._sizes] for item in self._call.inputs]
        longest = max(shapes, key=len)
        return longest[0], longest[-1]

    def _odd(self, first: int, last: int) -> Call | None:
        """Every size small and unaligned, no two the same where that is possible."""
        call, now, used = self._call, {size: size for size in self._sizes}, set[int]()
        for size in self._sizes:
            values = _LAST_ODD if size == last else _ODD
            ordered = sorted((value for value in values if value != size), key=used.__contains__)
            for value in ordered:
                changed = self._set(call, now, size, (value,))
                if changed is not None:
                    call, now = changed, {**now, size: value}
                    used.add(value)
                    break
        self._odd_sizes = now
        return call if used else None

    def _now(self, base: int) -> dict[int, int]:
        """Return the sizes of a base by those of the call. The first base is the odd one, if there is one."""
        return self._odd_sizes if base == 0 else {size: size for size in self._sizes}

    def _either(
        self, bases: list[Call], sizes: Mapping[int, dict[int, int]], size: int, values: Iterable[int]
    ) -> Call | None:
        values = tuple(values)
        found = (self._set(base, sizes[index], size, values) for index, base in enumerate(bases))
        return next((call for call in found if call is not None), None)

    def _set(self, base: Call, now: Mapping[int, int], size: int, values: Iterable[int]) -> Call | None:
        """The base with one size at the first of the values that is accepted, with or without the numbers that equal it."""
        for value in values:
            for numbers in (
                (frozenset[str](), self._equal_numbers(size)) if self._equal_numbers(size) else (frozenset(),)
            ):
                changed = self._changed(base, {**now, size: value}, numbers, size)
                small = all(math.prod(item.shape) <= self._most for item in changed.inputs)
                if small and not self._accepts(changed):
                    return changed
        return None

    def _equal_numbers(self, size: int) -> frozenset[str]:
        return frozenset(name for name in self._numbers if size in _integers(self._call.params[name]))

    def _changed(self, base: Call, now: Mapping[int, int], numbers: frozenset[str], size: int) -> Call:
        inputs = tuple(
            msgspec.structs.replace(other, shape=tuple(self._size(own, size, now) for size in own.shape))
            for own, other in zip(self._call.inputs, base.inputs, strict=True)
        )
        values = {name: self._value(self._call.params[name], base.params[name], size, now[size]) for name in numbers}
        return msgspec.structs.replace(base, inputs=inputs, params={**base.params, **values})

    def _value(self, own: object, base: object, size: int, value: int) -> object:
        """Return a number of the base, or a list of them, with the new value where the call has the size."""
        if isinstance(own, list) and isinstance(base, list):
            return [value if number == size else other for number, other in zip(own, base, strict=True)]
        return value

    def _follows(self, item: Input, size: int) -> bool:
        """Whether a size is that of a number of parts and one more: offsets include the end of the last part."""
        return item.ascending and size in self._beyond

    def _size(self, item: Input, size: int, now: Mapping[int, int]) -> int:
        return now.get(size - 1, size - 1) + 1 if self._follows(item, size) else now.get(size, size)


def _integers(value: object) -> list[int]:
    """Return the integers of a value that is an integer or a list of integers."""
    return [item for item in (value if isinstance(value, list) else [value]) if type(item) is int]


def _shapes(call: Call) -> tuple[object, ...]:
    return tuple(item.shape for item in call.inputs)
