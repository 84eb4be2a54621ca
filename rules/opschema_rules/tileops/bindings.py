"""The values that a workload row gives to the names in its entry's rules, and their consequences.

A row passes ``{tensor}_shape`` for a tensor, a param by its name, and a dimension of a declared shape by its name;
aggregate keys such as ``kv_shape`` bind nothing. What a row leaves open stays open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import msgspec

from opschema_cli.schema.evaluate import Tensor, Value
from opschema_cli.schema.expression import Expression
from opschema_cli.schema.outcomes import Outcome, Solution, Violated
from opschema_cli.schema.solve import solve
from opschema_cli.source.yaml import Data, Node
from opschema_rules.tileops.entry_parts import Row
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.signature import Equation, Statement, param_values, per_entry, statement

RESERVED_KEYS = frozenset({"dtypes", "label"})
"""Row keys that are neither shapes nor params."""


class BoundRow(msgspec.Struct, frozen=True):
    """A row, the names of the values that it gives, and the consequences: the state of each equation.

    The declared shape of an input that the row leaves out is not an equation of it.
    """

    row: Row
    given: frozenset[str]
    outcomes: tuple[tuple[Equation, Outcome], ...]
    values: Mapping[str, Value]
    found_by: Mapping[str, Expression]

    @property
    def broken(self) -> bool:
        """Whether the row is a call that the signature does not allow."""
        return any(isinstance(outcome, Violated) for _, outcome in self.outcomes)

    def source(self, name: str) -> Node | None:
        """Return the row's node that gives a name its value."""
        is_tensor = isinstance(self.values.get(name), Tensor)
        return self.row.value(f"{name}_shape" if is_tensor else name) if name in self.given else None


@per_entry
def bound_rows(entry: OpEntry) -> tuple[BoundRow, ...]:
    """Every workload row that is a mapping, bound and solved."""
    return tuple(bind_row(entry, row) for row in entry.rows)


def bind_row(entry: OpEntry, row: Row) -> BoundRow:
    """A row bound and solved."""
    stated = statement(entry)
    given = dict(_given(row, stated))
    known: dict[str, Value] = {
        name: None if name in stated.omittable else Tensor(None, name) for name in stated.tensors
    }
    known.update((name, value) for name, value in stated.defaults.items() if name not in row.data)
    known.update(given)
    rules = [equation.expression for equation in stated.rules]
    if any(name in known and (known[name] is None or isinstance(known[name], Tensor)) for name in stated.sizes):
        solution = solve(rules, known, shapes=stated.declarations, unknown=stated.params)
        shapes = [(stated.shapes[name], found) for name, found in solution.shapes.items() if name in stated.shapes]
        outcomes = (*shapes, *zip(stated.rules, solution.rules, strict=True))
    else:  # the same without telling sizes from what is called like them
        equations = (*(item for name, item in stated.shapes.items() if known[name] is not None), *stated.rules)
        solution = _solved(tuple(equation.expression for equation in equations), known, tuple(stated.params))
        outcomes = tuple(zip(equations, solution.rules, strict=True))
    return BoundRow(row, frozenset(given), outcomes, solution.values, solution.found_by)


def _solved(rules: tuple[Expression, ...], known: Mapping[str, Value], params: tuple[str, ...]) -> Solution:
    """Return the solution of a row; ops of one family share rules and rows, so a quarter of them is solved already."""
    if any(type(value) is list for value in known.values()):
        return solve(rules, known, unknown=params)
    return _solved_once(rules, tuple((name, type(value), value) for name, value in known.items()), params)


@lru_cache(maxsize=1024)
def _solved_once(
    rules: tuple[Expression, ...], known: tuple[tuple[str, type, Value], ...], params: tuple[str, ...]
) -> Solution:
    return solve(rules, {name: value for name, _, value in known}, unknown=params)


def _given(row: Row, stated: Statement) -> Iterator[tuple[str, Value]]:
    """Yield the names and values that a row gives."""
    repeated = row.repeated
    for key, data in row.data.items():
        if key in repeated:
            continue
        tensor = key.removesuffix("_shape")
        if key in stated.params:
            yield from ((key, value) for value in param_values(stated.params[key], data))
        elif tensor != key and tensor in stated.tensors:
            yield tensor, Tensor(_sizes(data), tensor)
        elif key in stated.symbols and key not in RESERVED_KEYS and type(data) is int:
            yield key, data


def _sizes(data: Data) -> tuple[int, ...] | None:
    """A shape as a row writes it; None for anything else."""
    if not isinstance(data, list):
        return None
    sizes = tuple(item for item in data if type(item) is int and item >= 0)
    return sizes if len(sizes) == len(data) else None
