"""Comparisons of fakes with kernels. A difference is reported with an example that has small sizes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from opschema_cli.evaluation.execution.executor import Executor
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_rules.torchlib.shape_differences import differences
from opschema_rules.torchlib.shape_inputs import SIZE, Atom, Input
from opschema_rules.torchlib.shape_runs import Comparison, Finding, Verdict
from opschema_rules.torchlib.tilelang import TileLang

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)
"""Sizes for the example of a difference: all different, so that a reader sees where each comes from."""

MOST_STARTS = 4
"""Number of primes that are tried as the smallest size."""


def compare(
    executor: Executor, schema: OperatorSchema, fake: Body, kernel: Body, tilelang: TileLang | None = None
) -> Verdict:
    """Compare a fake and a kernel; with many inputs only where the first ones show a difference."""
    first = Comparison(executor, schema, fake, kernel, tilelang).first_verdict()
    if first is not None:
        return first
    found = Comparison(executor, schema, fake, kernel, tilelang).verdict()
    if found.finding is None:
        return found
    small = _small(Comparison(executor, schema, fake, kernel, tilelang), found.finding)
    return msgspec.structs.replace(found, finding=small)


def _small(runs: Comparison, found: Finding) -> Finding:
    """A finding with small sizes that show the same differences, with as many different ones if that is possible."""
    item = runs.fitted(found.input)
    groups = _of_one_size(runs, item)
    powers = [2 << number for number in range(len(groups))]
    shown: list[Input] = []
    # The products and sums of some sizes may be equal, and one size may have to be a multiple of another.
    for sizes in (*(PRIMES[start:] for start in range(MOST_STARTS)), powers, powers[::-1]):
        small = runs.fitted(_with_sizes(item, groups, sizes))
        if _shows(runs, small, found):
            shown.append(small)
            if _different(small) >= _different(item):
                return _with_input(runs, small, found)
    if shown:
        return _with_input(runs, shown[0], found)
    for group in groups:
        smaller = (runs.fitted(item.changed(group, size)) for size in (*powers, SIZE))
        clear = (one for one in smaller if _different(one) >= _different(item))
        item = next((one for one in clear if _shows(runs, one, found)), item)
    return _with_input(runs, item, found)


def _different(item: Input) -> int:
    """The number of different sizes of an input."""
    return len(set(map(item.size, item.atoms)))


def _of_one_size(runs: Comparison, item: Input) -> list[frozenset[Atom]]:
    """The dimensions and numbers that can be chosen, those of one size together: they may have to be equal."""
    found: dict[int, set[Atom]] = {}
    for atom in item.atoms:
        if atom[0] not in runs.kernel.fitted:
            found.setdefault(item.size(atom), set()).add(atom)
    return list(map(frozenset, found.values()))


def _with_sizes(item: Input, groups: Sequence[frozenset[Atom]], sizes: Sequence[int]) -> Input:
    """Return the input with other sizes for groups of dimensions and numbers; groups without one are unchanged."""
    for group, size in zip(groups, sizes, strict=False):
        item = item.changed(group, size)
    return item


def _shows(runs: Comparison, item: Input, found: Finding) -> bool:
    """Whether an input shows all differences of a finding."""
    both = runs.run(item)
    return both is not None and {one.part for one in found.differences} <= {one.part for one in differences(*both)}


def _with_input(runs: Comparison, item: Input, found: Finding) -> Finding:
    both = runs.run(item)
    return Finding(found.differences, item, *both) if both is not None else found
