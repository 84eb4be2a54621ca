"""Shapes derived from a row: sizes move together where rules tie them, alone where they do not, not at all where they may not."""

from __future__ import annotations

import math

from opschema_cli.verify.model import Limits
from tests.rules.tileops.verify.planned import cells, derived, plan, shapes


def entry(inputs: str, rules: str, row: str, more: str = "") -> str:
    return f"""\
signature:
  inputs: {{{inputs}}}
  outputs: {{y: {{dtype: "same_as(x)"}}}}
  params: {{{more}}}
  shape_rules: [{rules}]
workloads: [{{{row}, dtypes: [float16], label: r}}]
"""


X = 'x: {dtype: "float16 | float32"}'
X_AND_W = X + ', w: {dtype: "same_as(x)"}'
LIKE_X = '"y.shape == x.shape"'


def test_the_shapes_of_a_plain_row() -> None:
    assert derived(entry(X, LIKE_X, "x_shape: [64, 256]")) == {
        "row": {"x": (64, 256)},
        "odd": {"x": (7, 67)},
        "larger": {"x": (131, 67)},
        "one-row": {"x": (1, 256)},
        "tail-1": {"x": (64, 257)},
        "zero-rows": {"x": (0, 256)},
        "long": {"x": (7, 2051)},
        "one-column": {"x": (64, 1)},
        "zero-columns": {"x": (64, 0)},
    }


def test_each_axis_has_no_and_one_element() -> None:
    found = derived(entry(X, LIKE_X, "x_shape: [8, 16, 64, 256]"))
    assert found["long"] == {"x": (1, 11, 13, 2051)}
    assert [found[f"one-{place}"]["x"] for place in (2, 3)] == [(7, 1, 13, 67), (7, 11, 1, 67)]
    assert [found[f"zero-{place}"]["x"] for place in (2, 3)] == [(7, 0, 13, 67), (7, 11, 0, 67)]


def test_outputs_follow() -> None:
    found = plan(entry(X, '"y.shape == (x.shape[1], 2 * x.shape[0])"', "x_shape: [64, 256]"))
    assert [output.shape for output in cells(found, "r")["odd"].call.outputs] == [(67, 14)]


def test_a_param_that_repeats_sizes_moves_with_them() -> None:
    norm = '"tuple(x.shape[-len(dims):]) == tuple(dims)", ' + LIKE_X
    found = plan(entry(X, norm, "x_shape: [64, 8, 256], dims: [8, 256]", 'dims: {type: "list[int]"}'))
    odd = cells(found, "r")["odd"].call
    assert (shapes(odd), odd.params) == ({"x": (7, 11, 67)}, {"dims": [11, 67]})


def test_equal_sizes_that_no_rule_ties_move_apart() -> None:
    odd = derived(entry(X_AND_W, f'"w.shape == (x.shape[1],)", {LIKE_X}', "x_shape: [128, 128], w_shape: [128]"))["odd"]
    assert odd == {"x": (7, 67), "w": (67,)}


def test_equal_sizes_that_a_rule_ties_move_together() -> None:
    odd = derived(entry(X, f'"x.shape[0] == x.shape[1]", {LIKE_X}', "x_shape: [128, 128]"))["odd"]
    assert odd == {"x": (67, 67)}


def test_sizes_that_rules_tie_over_three_tensors_move_axis_by_axis() -> None:
    inputs = X_AND_W + ', z: {dtype: "same_as(x)"}'
    rules = '"y.shape == broadcast_shapes(x.shape, w.shape, z.shape)"'
    odd = derived(entry(inputs, rules, "x_shape: [32, 32], w_shape: [32, 32], z_shape: [32, 32]"))["odd"]
    assert odd == {"x": (7, 67), "w": (7, 67), "z": (7, 67)}


def test_what_follows_by_arithmetic_is_left_to_the_rules() -> None:
    rules = f'"w.shape == (x.shape[0] * x.shape[1], x.shape[1] // 2)", "x.shape[1] % 2 == 0", {LIKE_X}'
    odd = derived(entry(X_AND_W, rules, "x_shape: [4, 64], w_shape: [256, 32]"))["odd"]
    assert odd == {"x": (3, 14), "w": (42, 7)}


def test_a_size_that_must_be_a_multiple_stays_one() -> None:
    odd = derived(
        entry(X, f'"x.shape[1] % groups == 0", {LIKE_X}', "x_shape: [4, 64], groups: 32", "groups: {type: int}")
    )
    assert odd["odd"] == {"x": (3, 224)}
    assert "tail-1" not in odd


def test_a_param_that_is_no_size_is_left_alone() -> None:
    rules = '"-x.ndim <= dim < x.ndim", "y.shape == reduced_shape(x.shape, dim, False)"'
    found = plan(entry(X, rules, "x_shape: [1, 64], dim: 1, window: 64", "dim: {type: int}, window: {type: int}"))
    calls = [cell.call for cell in cells(found, "r").values()]
    assert {tuple(call.params.items()) for call in calls} == {(("dim", 1), ("window", 64))}
    assert len(calls) > 3


def test_sizes_given_by_name_move_too() -> None:
    text = """\
signature:
  inputs:
    x: {dtype: "float16 | float32", shape: "[M, K]"}
    w: {dtype: "same_as(x)", shape: "[K, N]"}
  outputs: {y: {dtype: "same_as(x)", shape: "[M, N]"}}
  params: {}
  shape_rules: []
workloads: [{M: 64, N: 32, K: 128, dtypes: [float16], label: r}]
"""
    found = derived(text)
    assert found["row"] == {"x": (64, 128), "w": (128, 32)}
    assert found["odd"] == {"x": (7, 67), "w": (67, 11)}
    assert found["zero-rows"] == {"x": (0, 128), "w": (128, 32)}


def test_constraints_hold() -> None:
    text = entry(
        'x: {dtype: "float16 | float32", shape: "[M, N]", constraints: {N: "64 | 128"}}', LIKE_X, "M: 8, N: 64"
    )
    assert {shape["x"][1] for shape in derived(text).values()} == {64}


def test_what_rules_refuse_is_not_derived() -> None:
    found = derived(entry(X, f'"x.shape[0] > 1", "x.shape[1] % 2 == 0", {LIKE_X}', "x_shape: [64, 256]"))
    assert list(found) == ["row", "odd", "larger", "long", "zero-columns"]


def test_a_row_of_which_nothing_can_move_stands_alone() -> None:
    assert list(derived(entry(X, f'"x.shape == (4, 8)", {LIKE_X}', "x_shape: [4, 8]"))) == ["row"]


def test_larger_has_more_rows_than_all_before() -> None:
    found = derived(entry(X, LIKE_X, "x_shape: [2, 256]"))
    assert found["larger"]["x"][0] > max(found["odd"]["x"][0], found["row"]["x"][0])


def test_a_row_that_is_too_large_is_scaled() -> None:
    text = entry(X, LIKE_X, "x_shape: [4096, 8192]")
    found = plan(text)
    own = cells(found, "r")
    assert list(own) == [
        *("scaled", "odd", "larger", "one-row", "tail-1", "zero-rows", "one-column", "zero-columns"),
    ]
    assert shapes(own["scaled"].call) == {"x": (1024, 1024)}
    assert found.unplanned == {
        "ExampleFwdOp[r-float16-row-s0]": "`x` has 33,554,432 elements; more than 16,777,216 are not run"
    }
    whole = plan(text, limits=Limits(row_elements=1 << 30))
    assert "row" in cells(whole, "r")
    assert "scaled" not in cells(whole, "r")


def test_no_derived_tensor_is_larger_than_the_limit() -> None:
    found = plan(
        entry(X, '"y.shape == (x.shape[0], x.shape[0])"', "x_shape: [4096, 8]"), limits=Limits(derived_elements=9999)
    )
    sizes = {name: cell.call.outputs[0].shape or () for name, cell in cells(found, "r").items() if name != "row"}
    assert {name for name, shape in sizes.items() if math.prod(shape) > 9999} == set()
    assert {"odd", "larger", "tail-1"} <= set(sizes)
