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
        *("row-s0", "odd-s0", "row-strided-s0", "row-special-s0", "row-wide-s0"),
        *("long-large-offset-s0", "odd-ties-transposed-s0", "row-zeros-s0"),
        *("larger-s0", "one-row-s0", "tail-1-s0", "zero-rows-s0", "long-s0", "one-column-s0", "zero-columns-s0"),
        *("tail-1-sliced-s0", "odd-expanded-s0", "row-s1"),
        *("tail-1-s0-again", "one-row-s0-again", "larger-s0-again", "odd-s0-again", "row-s0-again"),
        *("wrong-dtype-s0", "wrong-rank-s0"),
    ]


def test_repetitions_come_in_reverse_order_and_wrong_calls_last() -> None:
    found = names(1000)
    again = [name for name in found if name.endswith("-again")]
    assert len(found) == 66
    assert all("-wrong-" in name for name in found[-2:])
    assert found[-17:-2] == again
    first = [name for name in found if name + "-again" in again]
    assert [name + "-again" for name in reversed(first)] == again


def test_tensors_of_two_devices_are_mixed_where_there_are_two() -> None:
    found = plan(ONE, limits=Limits(cells=99, devices=2)).cells
    assert [cell.shape for cell in found if cell.wrong] == ["wrong-dtype", "wrong-rank", "wrong-device"]


def test_a_large_row_has_further_values_in_a_smaller_shape() -> None:
    found = names(99, "workloads: [{x_shape: [4096, 512], dtypes: [float16], label: r}]")
    assert "r-float16-odd-wide-s0" in found
    assert "r-float16-long-large-offset-s0" in found


def added(limits: range, entry: str = ENTRY) -> list[set[str]]:
    """The cell that each increase of the limit adds."""
    found = [set(names(limit, entry)) for limit in limits]
    return [
        here - less for less, here in pairwise([set(names(limits[0] - 1, entry)) if limits[0] > 1 else set(), *found])
    ]


def test_the_kinds_that_find_most_come_first_and_all_rows_before_repetitions() -> None:
    first = ["odd-s0", "row-strided-s0", "row-special-s0", "row-wide-s0"]
    values = ["long-large-offset-s0", "odd-ties-transposed-s0", "row-zeros-s0"]
    shapes = ["larger-s0", "one-row-s0", "tail-1-s0", "zero-rows-s0", "long-s0", "one-column-s0", "zero-columns-s0"]
    layouts = ["tail-1-sliced-s0", "odd-expanded-s0"]
    expected = [
        *("small-float16-row-s0", "small-float32-row-s0"),
        *(f"small-float16-{kind}" for kind in first),
        "large-float16-row-s0",
        *(f"small-float32-{kind}" for kind in first),
        *(f"small-float16-{kind}" for kind in (*values, *shapes, *layouts)),
        *(f"small-float16-wrong-{what}-s0" for what in ("dtype", "rank")),
        *(f"small-float16-{shape}-s0-again" for shape in ("tail-1", "one-row", "larger", "odd", "row")),
        "small-float16-row-s1",
        *(f"large-float16-{kind}" for kind in ("row-strided-s0", "row-special-s0", "row-wide-s0")),
        *("small-float32-long-large-offset-s0", "large-float16-odd-s0"),
    ]
    assert added(range(1, len(expected) + 1)) == [{name} for name in expected]


def test_every_dtype_comes_before_the_second_row_of_one() -> None:
    entry = """\
workloads:
  - {x_shape: [64, 32], dtypes: [float16], label: a}
  - {x_shape: [32, 32], dtypes: [float16], label: b}
  - {x_shape: [16, 32], dtypes: [float32], label: c}
"""
    assert added(range(1, 3), entry) == [{"a-float16-row-s0"}, {"c-float32-row-s0"}]
    short = plan(entry, limits=Limits(cells=1))
    assert short.dtypes == ("float16", "float32")


def test_cases_that_were_cut_short_are_counted() -> None:
    assert [plan(ENTRY, limits=Limits(cells=limit)).left_out for limit in (10, 30, 31, 65, 66)] == [3, 3, 2, 1, 0]


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
        *(f"r-float16-{shape}-s0" for shape in ("row", "odd", "larger", "tail-1", "long")),
        *(f"r-float16-{shape}-s0-again" for shape in ("long", "tail-1", "larger", "odd", "row")),
    ]
