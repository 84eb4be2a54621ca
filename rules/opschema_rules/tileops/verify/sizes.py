"""Sizes of a workload row that can be changed, and the values that must change with them.

Nothing is known of the op but its rules. What a row gives and the rules tell anyway (``weight_shape`` beside ``x_shape``)
is left to them. Of the rest one integer is changed at a time; where that breaks a rule, equal integers that the broken
rule reads are changed with it, as few of them as will do.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

import msgspec

from opschema_cli.schema.expression import Expression
from opschema_cli.schema.outcomes import Failed, Unresolved, Violated
from opschema_cli.source.yaml import Data
from opschema_rules.tileops.bindings import RESERVED_KEYS, BoundRow, bind_row
from opschema_rules.tileops.constraints import excluded_sizes
from opschema_rules.tileops.entry_parts import Row
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.signature import Equation, per_entry, statement
from opschema_rules.tileops.verify.calls import Passed, passed_by, shape_of

Site = tuple[str, int | None]
"""The place of an integer in a row: its key, and the place in a list."""

_PROBES = (7, 13, 3, *(7 << shift for shift in range(1, 8)), 1, 2, 4)
"""Values to try for a changeable size: including one that must be a multiple of up to 128, or divide another."""

_ROUNDS = 6
"""Maximum number of rounds in which other integers are changed to satisfy a violated rule."""


class FreeSize(msgspec.Struct, frozen=True):
    """Integers of a row that change together, their value there, another possible value, and the axes of tensors that change
    with them.
    """

    sites: tuple[Site, ...]
    value: int
    other: int
    axes: tuple[tuple[str, int], ...]


class Sizes:
    """The sizes of one row, which is ``base`` bound; ``row`` is the row without values that the rules derive anyway."""

    def __init__(self, entry: OpEntry, base: Passed, carriers: Collection[str]) -> None:
        self.entry, self.carriers = entry, carriers
        self.base = base.bound
        self.stated = statement(entry)
        self.unresolved = frozenset(_unresolved(self.base))
        self.row = self._without_told(base.bound.row)

    def _without_told(self, row: Row) -> Row:
        shapes = [f"{item.name}_shape" for item in reversed(self.entry.inputs) if not item.optional]
        for key in [*shapes, *(key for key in row.data if key in self.stated.symbols and key not in RESERVED_KEYS)]:
            if key in row.data:
                less = Row(row.index, row.node, {name: data for name, data in row.data.items() if name != key})
                bound = bind_row(self.entry, less)
                if not self._problems(bound) and bound.values == self.base.values:
                    row = less
        return row

    def accepts(self, row: Row) -> Passed | None:
        """Return a changed row, bound, if it violates no rule and leaves nothing open that the written row determines."""
        return self._judged(row)[0]

    def _judged(self, row: Row) -> tuple[Passed | None, list[Expression]]:
        """Return a changed row, bound if it is valid, and the rules that it violates."""
        bound = bind_row(self.entry, row)
        problems = self._problems(bound)
        if problems or any(excluded_sizes(self.entry, bound)):
            return None, problems
        passed = passed_by(self.entry, bound, self.carriers)
        return (passed if isinstance(passed, Passed) else None), []

    def _problems(self, bound: BoundRow) -> list[Expression]:
        """The rules that a changed row breaks or leaves open, where the row as written does not."""
        return [
            equation.expression
            for equation, outcome in bound.outcomes
            if isinstance(outcome, Violated)
            or (isinstance(outcome, Unresolved | Failed) and equation not in self.unresolved)
        ]

    @cached_property
    def free(self) -> list[FreeSize]:
        """The sizes that can be changed, those of one class once."""
        found: list[FreeSize] = []
        taken: set[Site] = set()
        for site in self._starts():
            free = self._free(site, taken) if site not in taken else None
            if free is not None:
                taken.update(free.sites)
                found.append(free)
        return found

    def _starts(self) -> Iterator[Site]:
        """The sizes of inputs, symbols, and params that are sizes of tensors; other params only follow."""
        sizes = _size_names(self.entry)
        for site in _sites(self.row):
            key, index = site
            tensor = key.removesuffix("_shape")
            of_tensor = index is not None and tensor != key and tensor in self.stated.tensors
            symbol = index is None and key in self.stated.symbols
            if of_tensor or symbol or (index is None and key in self.stated.params and key in sizes):
                yield site

    def _free(self, site: Site, taken: Collection[Site]) -> FreeSize | None:
        """The size that one integer changes, without sites in ``taken``; None if it cannot change, or is not a tensor's size."""
        value = value_at(self.row, site)
        for probe in _PROBES:
            found = self._tied(site, probe) if probe != value else None
            if found is not None and not set(found[0]) & set(taken):
                sites, passed = found
                axes = tuple(self._changed(passed.bound))
                return FreeSize(sites, value, probe, axes) if axes else None
        return None

    def _tied(self, site: Site, probe: int) -> tuple[tuple[Site, ...], Passed] | None:
        """The integers that change with one, if that can change to ``probe``."""
        sites: tuple[Site, ...] = (site,)
        equal = [other for other in _sites(self.row) if value_at(self.row, other) == value_at(self.row, site)]
        for _ in range(_ROUNDS):
            passed, broken = self._judged(changed(self.row, sites, probe))
            if passed is not None:
                return sites, passed
            read = {use.name for rule in broken for use in rule.names()}
            others = [other for other in equal if other not in sites and other[0].removesuffix("_shape") in read]
            others += [other for other in equal if other not in sites and other[0] in read and other not in others]
            beside = [other for other in others if other[1] == site[1]]
            for more in [*([other] for other in others), beside]:
                passed = self.accepts(changed(self.row, (*sites, *more), probe))
                if passed is not None:
                    return (*sites, *more), passed
            if not others:
                return None
            sites = (*sites, *others)
        return None

    def _changed(self, bound: BoundRow) -> Iterator[tuple[str, int]]:
        """The axes of tensors whose size a changed row changes."""
        for tensor in self.entry.tensors:
            before, after = shape_of(self.base, tensor.name), shape_of(bound, tensor.name)
            pairs = zip(before, after, strict=False) if before is not None and after is not None else ()
            yield from ((tensor.name, axis) for axis, (old, new) in enumerate(pairs) if old != new)


def changed(row: Row, sites: Iterable[Site], value: int) -> Row:
    """A row with ``value`` at some places."""
    data: dict[str, Data] = dict(row.data)
    for key, index in sites:
        owner = data[key]
        if isinstance(owner, list) and index is not None:
            data[key] = [*owner[:index], value, *owner[index + 1 :]]
        else:
            data[key] = value
    return Row(row.index, row.node, data)


def _sites(row: Row) -> list[Site]:
    """Every place at which a row writes an integer."""
    found: list[Site] = []
    for key, data in row.data.items():
        if key not in RESERVED_KEYS:
            found += [(key, None)] if type(data) is int else []
            found += [
                (key, index) for index, item in enumerate(data if isinstance(data, list) else []) if type(item) is int
            ]
    return found


def value_at(row: Row, site: Site) -> int:
    """The integer at a place of a row."""
    key, index = site
    owner = row.data[key]
    found = owner[index] if isinstance(owner, list) and index is not None else owner
    return found if isinstance(found, int) else 0


def _unresolved(bound: BoundRow) -> Iterator[Equation]:
    return (equation for equation, outcome in bound.outcomes if isinstance(outcome, Unresolved | Failed))


@per_entry
def _size_names(entry: OpEntry) -> frozenset[str]:
    """The names that are by themselves sizes of a tensor: in a declared shape, or in ``x.shape == (B, S)``."""
    stated = statement(entry)
    return stated.sizes.union(*(_in_shapes(equation.expression) for equation in stated.rules))


def _in_shapes(rule: Expression) -> Iterator[str]:
    for node in rule.nodes:
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
            sides = [node.left, node.comparators[0]]
            if any(isinstance(side, ast.Attribute) and side.attr == "shape" for side in sides):
                tuples = [side for side in sides if isinstance(side, ast.Tuple)]
                yield from (item.id for side in tuples for item in side.elts if isinstance(item, ast.Name))
