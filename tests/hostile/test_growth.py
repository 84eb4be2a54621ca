"""The time of a run grows linearly with its input: in keys, entries, arguments, depth and length, in every pack."""

from __future__ import annotations

import os
import sys

import pytest

from tests.hostile.growth.kinds import KINDS
from tests.hostile.growth.measure import LINEAR, Cost, Growth, cost, growth, prepare

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="measured by forks of this process")

SLOW = bool(os.environ.get("OPSCHEMA_SLOW"))

QUICK = (
    "tileops: entries",
    "tileops: unknown keys of an entry",
    "tileops: params",
    "aten: functions",
    "aten: arguments of a function",
    "aten: supported twice and more",
    "aten: lists of a backend",
    "aten: a nested formula",
    "python: bases of a class",
    "python: punycode",
    "torchlib: definitions",
    "torchlib: factories in a chain",
    "magi: calls of an op",
    "flydsl: kernels",
    "flydsl: parameters of a kernel",
    "flydsl: changed variables",
    "flydsl: calls that are tried",
    "pypto: kernels",
    "pypto: kernels with arg_index",
    "pypto: descriptions of one file",
    "cpp: kernels of a backend, misspelt",
    "own: suppressions of one line",
    "own: entries of a baseline",
)
"""Kinds that took time in the square of their size, and one of each pack; ``OPSCHEMA_SLOW=1`` tries all."""

BY_THE_PARSER = frozenset({"python: an f-string"})
"""Kinds for which CPython's own parser takes time in the square of the size; the budget of a text bounds it."""

STEP = 6
"""How many times as large the second input of a quick test is."""


@pytest.fixture(scope="module", autouse=True)
def _prepared() -> None:
    prepare()


@pytest.mark.skipif(SLOW, reason="all kinds are tried")
@pytest.mark.parametrize("name", QUICK)
def test_a_larger_input_takes_proportionally_longer(name: str) -> None:
    """Six times as large an input would take 36 times as long where the time is quadratic; what does not grow weighs on neither."""
    kind = KINDS[name]
    least = cost(kind, 1).seconds
    for _ in range(3):  # another process may get in the way
        once, more = (max(cost(kind, n).seconds - least, 0.02) for n in (kind.size, STEP * kind.size))
        if more < 2.5 * STEP * once or more < 0.5:
            return
    pytest.fail(f"{kind.size:,}: {once:.2f} s, {STEP * kind.size:,}: {more:.2f} s")


@pytest.mark.skipif(not SLOW, reason="takes an hour")
@pytest.mark.parametrize("name", KINDS)
def test_twice_the_input_takes_twice_the_time(name: str) -> None:
    found = growth(KINDS[name])
    assert found.ratio < LINEAR + 0.3 or name in BY_THE_PARSER, found
    assert found.twice.mebibytes < 2.5 * found.once.mebibytes
    assert found.twice.seconds < 60


def test_a_ratio_is_taken_only_where_there_is_something_to_measure() -> None:
    def of(once: float, twice: float) -> float:
        return Growth(1, Cost(once, 1, 0, 0), Cost(twice, 1, 0, 0)).ratio

    assert of(0.5, 2.0) == 4.0
    assert of(0.01, 0.04) == 0.0


def test_every_kind_is_read_by_a_run() -> None:
    """No kind of input ends in a usage error, of which a test would learn nothing; the files of these cannot be read."""
    refused = {name for name in QUICK if cost(KINDS[name], 2).code not in (0, 1)}
    assert refused == {"python: punycode"}
