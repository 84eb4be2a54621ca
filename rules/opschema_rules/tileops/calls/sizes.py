"""Rows with other sizes, derived from a bound row: odd and distinct ones, a first size of one, and no elements.

What the rules derive anyway is left to them; of the rest each size is changed where the rules allow it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opschema_cli.schema.evaluate import Tensor as Bound
from opschema_cli.schema.outcomes import Failed, Unresolved, Violated
from opschema_cli.source.yaml import Data
from opschema_rules.tileops.bindings import RESERVED_KEYS, BoundRow, bind_row
from opschema_rules.tileops.constraints import excluded_sizes
from opschema_rules.tileops.entry_parts import Row
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.signature import Equation, statement

_PRIMES = (7, 11, 13, 5, 17, 19, 23, 29, 31, 37, 41, 43)
_FACTORS = (1, 16, 128)
"""Factors of the sizes, for those that must be multiples."""

_Site = tuple[str, "int | None"]


def derived_rows(entry: OpEntry, base: BoundRow, *, edges: bool) -> Iterator[BoundRow]:
    """The rows derived from ``base`` that the rules allow; with ``edges`` those whose first size is 1 and 0 too."""
    changer = _Changer(entry, base)
    odd = changer.odd()
    if odd is not base:
        yield odd
    for size in (1, 0) if edges else ():
        found = changer.first_at(odd, size)
        if found is not None:
            yield found


class _Changer:
    """Changes sizes of one row; ``row`` is the row without values that the rules derive anyway."""

    def __init__(self, entry: OpEntry, base: BoundRow) -> None:
        self.entry, self.base = entry, base
        self.stated = statement(entry)
        self.open = {equation for equation, outcome in base.outcomes if isinstance(outcome, Unresolved | Failed)}
        self.row = self._by_symbols() or self._underived(base.row)
        self.sites = list(self._sites()) or list(self._params())

    def odd(self) -> BoundRow:
        """Return the row with odd and distinct sizes, equal ones changed together, as far as the rules allow it."""
        values = {site: self._value(site) for site in self.sites}
        alike = dict(zip(dict.fromkeys(values.values()), _PRIMES, strict=False))
        equal = {site: alike[value] for site, value in values.items() if value in alike}
        distinct = dict(zip(self.sites, _PRIMES, strict=False))
        for sizes in dict.fromkeys((tuple(distinct.items()), tuple(equal.items()))):
            for factor in _FACTORS[:2]:
                at_once = self._accepted(self._changed(self.row, {site: factor * size for site, size in sizes}))
                if at_once is not None:
                    return at_once
        return self._one_by_one(distinct)

    def _one_by_one(self, sizes: Mapping[_Site, int]) -> BoundRow:
        bound = self.base
        for site, size in sizes.items():
            bound = self._changed_at(bound, site, size) or bound
        return bound

    def _changed_at(self, bound: BoundRow, site: _Site, size: int) -> BoundRow | None:
        """The row with one size changed, to a multiple if it must be one."""
        for factor in _FACTORS:
            found = self._accepted(self._changed(self._row_of(bound), {site: factor * size}))
            if found is not None:
                return found
        return None

    def _value(self, site: _Site) -> Data:
        owner = self.row.data[site[0]]
        return owner[site[1]] if isinstance(owner, list) and site[1] is not None else owner

    def first_at(self, bound: BoundRow, size: int) -> BoundRow | None:
        """The row with its first size at ``size``."""
        return self._accepted(self._changed(self._row_of(bound), {self.sites[0]: size})) if self.sites else None

    def _row_of(self, bound: BoundRow) -> Row:
        return bound.row if bound is not self.base else self.row

    def _accepted(self, row: Row) -> BoundRow | None:
        """A changed row, bound, if it breaks no rule and leaves nothing open that the row as it was decides."""
        bound = bind_row(self.entry, row)
        for equation, outcome in bound.outcomes:
            if isinstance(outcome, Violated) or self._is_lost(equation, outcome):
                return None
        return bound if not any(excluded_sizes(self.entry, bound)) else None

    def _is_lost(self, equation: Equation, outcome: object) -> bool:
        return isinstance(outcome, Unresolved | Failed) and equation not in self.open

    def _by_symbols(self) -> Row | None:
        """Return the row with the sizes of its dimensions in place of shapes; None if they do not determine all shapes."""
        keys = {f"{item.name}_shape" for item in self.entry.inputs if self.base.values.get(item.name) is not None}
        names = [name for name in self.stated.symbols - RESERVED_KEYS if type(self.base.values.get(name)) is int]
        read = {use.name for name in self._shaped() for use in self.stated.shapes[name].expression.names()}
        sizes: dict[str, Data] = {name: self.base.values[name] for name in sorted(names) if name in read}  # type: ignore[misc]
        if not keys or not sizes:
            return None
        row = Row(self.base.row.index, self.base.row.node, {**self._without(keys), **sizes})
        return row if self._same(bind_row(self.entry, row)) else None

    def _shaped(self) -> list[str]:
        """The inputs with a declared shape that is an equation."""
        return [item.name for item in self.entry.inputs if item.name in self.stated.shapes]

    def _without(self, keys: set[str]) -> dict[str, Data]:
        return {name: data for name, data in self.base.row.data.items() if name not in keys}

    def _underived(self, row: Row) -> Row:
        for item in reversed(self.entry.inputs):
            key = f"{item.name}_shape"
            if key in row.data and not item.optional and len(self.entry.inputs) > 1:
                less = Row(row.index, row.node, {name: data for name, data in row.data.items() if name != key})
                if self._same(bind_row(self.entry, less)):
                    row = less
        return row

    def _same(self, bound: BoundRow) -> bool:
        names = [item.name for item in self.entry.inputs]
        return all(_shape(bound, name) == _shape(self.base, name) for name in names) and not bound.broken

    def _sites(self) -> Iterator[_Site]:
        """Yield the sizes of inputs, and of dimensions that the row gives by name."""
        for key, data in self.row.data.items():
            tensor = key.removesuffix("_shape")
            if tensor != key and tensor in self.stated.tensors and isinstance(data, list):
                yield from ((key, index) for index in range(len(data)))
            elif key in self.stated.symbols and key not in RESERVED_KEYS and type(data) is int:
                yield key, None

    def _params(self) -> Iterator[_Site]:
        """The params that are sizes of an output."""
        read = {use.name for item in self.stated.shapes.values() for use in item.expression.names()}
        for key, data in self.row.data.items():
            if key in self.stated.params and key in read and type(data) is int:
                yield key, None

    def _changed(self, row: Row, sizes: Mapping[_Site, int]) -> Row:
        data: dict[str, Data] = dict(row.data)
        for (key, index), size in sizes.items():
            owner = data[key]
            if isinstance(owner, list) and index is not None:
                data[key] = [*owner[:index], size, *owner[index + 1 :]]
            else:
                data[key] = size
        return Row(row.index, row.node, data)


def _shape(bound: BoundRow, name: str) -> tuple[int, ...] | None:
    value = bound.values.get(name)
    return value.shape if isinstance(value, Bound) else None
