"""Which cells there are, in which order, and which are left out."""

from __future__ import annotations

from itertools import pairwise

from opschema_cli.verify.model import Limits
from tests.rules.tileops.verify.planned import plan

ENTRY = """\
workloads:
  - {x_shape: [64, 32], dtypes: [float16, float32], label: small}
  - {x_shape: [128, 64], dtypes: [float16], label: large}
"""

ONE = "workloads: [{x_shape: [64, 32], dtypes: [float16], label: small}]"


def names(limit: int, entry: str = ENTRY) -> list[str]:
    """The cells' ids without the op's name."""
    return [cell.id.partition("[")[2].removesuffix("]") for cell in plan(entry, limits=Limits(cells=limit)).cells]


def test_all_cells_of_one_case() -> None:
    found = names(99, ONE)
    assert [name.removeprefix("small-float16-") for name in found] == [
        *("row-s0", "odd-s0", "larger-s0", "one-row-s0", "tail-1-s0", "zero-rows-s0"),
        *("row-strided-s0", "row-special-s0", "row-s1"),
        *(
            "zero-rows-s0-again",
            "tail-1-s0-again",
            "one-row-s0-again",
            "larger-s0-again",
            "odd-s0-again",
            "row-s0-again",
        ),
    ]


def test_repetitions_come_last_in_reverse_order() -> None:
    found = names(1000)
    again = [name for name in found if name.endswith("-again")]
    assert len(found) == 45
    assert found[-18:] == again
    first = [name for name in found if name + "-again" in again]
    assert [name + "-again" for name in reversed(first)] == again


def added(limits: range, entry: str = ENTRY) -> list[set[str]]:
    """What each further cell of the limit brings."""
    found = [set(names(limit, entry)) for limit in limits]
    return [
        here - less for less, here in pairwise([set(names(limits[0] - 1, entry)) if limits[0] > 1 else set(), *found])
    ]


def test_every_row_and_dtype_is_run_plain_special_and_strided_before_anything_is_repeated() -> None:
    assert added(range(1, 4)) == [{"small-float16-row-s0"}, {"small-float32-row-s0"}, {"large-float16-row-s0"}]
    values = ["row-strided-s0", "row-special-s0"]
    shapes = ["odd-s0", "larger-s0", "one-row-s0", "tail-1-s0", "zero-rows-s0"]
    expected = [f"small-{dtype}-{kind}" for dtype in ("float16", "float32") for kind in (*shapes, *values)]
    expected += [f"large-float16-{kind}" for kind in values]
    assert added(range(4, 20)) == [{name} for name in expected]
    assert added(range(20, 22)) == [{"small-float16-row-s1"}, {"small-float16-zero-rows-s0-again"}]


def test_every_dtype_comes_before_the_second_row_of_one() -> None:
    entry = """\
workloads:
  - {x_shape: [64, 32], dtypes: [float16], label: a}
  - {x_shape: [32, 32], dtypes: [float16], label: b}
  - {x_shape: [16, 32], dtypes: [float32], label: c}
"""
    assert added(range(1, 4), entry) == [{"a-float16-row-s0"}, {"c-float32-row-s0"}, {"b-float16-row-s0"}]
    short = plan(entry, limits=Limits(cells=1))
    assert short.dtypes == ("float16", "float32")


def test_cases_that_were_cut_short_are_counted() -> None:
    assert [plan(ENTRY, limits=Limits(cells=limit)).left_out for limit in (10, 25, 26, 33, 44, 45)] == [
        3,
        3,
        2,
        1,
        1,
        0,
    ]


def test_a_plan_is_the_same_each_time() -> None:
    assert plan(ENTRY, limits=Limits(cells=33)).cells == plan(ENTRY, limits=Limits(cells=33)).cells


def test_special_values_are_for_floating_inputs() -> None:
    entry = """\
signature:
  inputs: {x: {dtype: "int32 | float16"}}
workloads: [{x_shape: [4, 8], dtypes: [int32, float16], label: r}]
"""
    assert [name for name in names(99, entry) if "special" in name] == ["r-float16-row-special-s0"]


def test_a_call_without_inputs_has_no_seeds() -> None:
    entry = """\
signature:
  inputs: {}
  outputs: {y: {dtype: "float16 | float32", shape: "[M]"}}
  params: {M: {type: int}}
  shape_rules: ["M > 1"]
workloads: [{M: 64, dtypes: [float16], label: r}]
"""
    assert names(99, entry) == [
        *("r-float16-row-s0", "r-float16-odd-s0", "r-float16-larger-s0", "r-float16-tail-1-s0"),
        *("r-float16-tail-1-s0-again", "r-float16-larger-s0-again", "r-float16-odd-s0-again", "r-float16-row-s0-again"),
    ]
