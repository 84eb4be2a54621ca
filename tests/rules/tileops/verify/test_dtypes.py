"""The dtypes of a call's tensors, from the one that a row lists."""

from __future__ import annotations

import pytest

from opschema_cli.verify.model import Call
from tests.rules.tileops.verify.planned import cells, plan


def _dtypes(call: Call) -> dict[str, str | None]:
    inputs: dict[str, str | None] = {item.name: item.dtype for item in call.inputs}
    return {**inputs, **{item.name: item.dtype for item in call.outputs}}


ROW = "{x_shape: [4, 8], w_shape: [8], dtypes: [%s], label: r}"


def dtypes(inputs: str, outputs: str, dtype: str, more: str = "", row: str = ROW) -> dict[str, dict[str, str | None]]:
    """The dtypes of all tensors by the name of the row that a plan gives them; the reason where there is none."""
    found = plan(f"""\
signature:
  inputs: {{{inputs}}}
  outputs: {{{outputs}}}
  params: {{}}
  shape_rules: ["y.shape == x.shape"]
  {more}
workloads: [{row % dtype}]
""")
    rows = {cell.row: cell.call for cell in found.cells if not cell.wrong}
    return {
        **{name: _dtypes(call) for name, call in rows.items()},
        **{reason: {} for reason in found.unplanned.values()},
    }


@pytest.mark.parametrize(
    ("inputs", "output", "dtype", "found"),
    [
        ('x: {dtype: "float16 | float32"}', "same_as(x)", "float16", {"x": "float16", "y": "float16"}),
        ('x: {dtype: "float16 | float32"}', "same_as(x)", "half", {"x": "float16", "y": "float16"}),
        ('x: {dtype: "int8 | float16"}', "promote_int_to_float(x)", "int8", {"x": "int8", "y": "float32"}),
        ('x: {dtype: "float16"}', "bool", "float16", {"x": "float16", "y": "bool"}),
        ('x: {dtype: "float16"}', "float16 | float32", "float16", {"x": "float16", "y": None}),
        ('x: {dtype: "uint8"}', "float16 | float32", "float32", {"x": "uint8", "y": "float32"}),
        (
            'x: {dtype: "float16 | float32"}, w: {dtype: "float16 | float32"}',
            "same_as(w)",
            "float16",
            {"x": "float16", "w": "float16", "y": "float16"},
        ),
        (
            'x: {dtype: "bool"}, w: {dtype: "float16 | float32"}',
            "same_as(w)",
            "float32",
            {"x": "bool", "w": "float32", "y": "float32"},
        ),
    ],
)
def test_what_follows_from_the_dtype_of_a_row(
    inputs: str, output: str, dtype: str, found: dict[str, str | None]
) -> None:
    assert dtypes(inputs, f'y: {{dtype: "{output}"}}', dtype) == {"r": found}


def test_what_the_dtype_of_a_row_leaves_open_is_planned_in_all_ways() -> None:
    found = dtypes(
        'x: {dtype: "float16 | float32"}, w: {dtype: "int32 | int64"}', 'y: {dtype: "same_as(x)"}', "float16"
    )
    assert {name: tensors["w"] for name, tensors in found.items()} == {"r+w:int32": "int32", "r+w:int64": "int64"}


def test_what_is_left_too_open_is_not_planned() -> None:
    many = ", ".join(f'{name}: {{dtype: "int8 | int16 | int32"}}' for name in "abc")
    row = "{x_shape: [4], a_shape: [4], b_shape: [4], c_shape: [4], dtypes: [%s], label: r}"
    found = dtypes(f'x: {{dtype: "float16 | float32"}}, {many}', 'y: {dtype: "same_as(x)"}', "float16", row=row)
    assert found == {"`float16` leaves too many dtypes open for `a`, `b`, `c`": {}}


COMBOS = """dtype_combos:
    - {x: float16, w: float16}
    - {x: float16, w: float32}
    - {x: float32, w: float32}"""


@pytest.mark.parametrize(
    ("dtype", "found"),
    [
        ("float16", {"r": ("float16", "float16"), "r+w:float32": ("float16", "float32")}),
        ("float32", {"r": ("float32", "float32")}),
        ("bfloat16", {"`dtype_combos` has no combination with `bfloat16`": None}),
    ],
)
def test_declared_combinations(dtype: str, found: dict[str, tuple[str, str] | None]) -> None:
    inputs = 'x: {dtype: "float16 | bfloat16 | float32"}, w: {dtype: "float16 | float32"}'
    combined = dtypes(inputs, 'y: {dtype: "same_as(x)"}', dtype, COMBOS)
    assert {name: (own["x"], own["w"]) if own else None for name, own in combined.items()} == found


def test_combinations_that_differ_in_the_output_alone_leave_it_open() -> None:
    combos = "dtype_combos: [{x: int8, y: float16}, {x: int8, y: float32}, {x: uint8, y: float32}]"
    inputs, outputs = 'x: {dtype: "int8 | uint8"}', 'y: {dtype: "float16 | float32"}'
    assert dtypes(inputs, outputs, "int8", combos) == {"r": {"x": "int8", "y": None}}
    assert dtypes(inputs, outputs, "uint8", combos) == {"r": {"x": "uint8", "y": "float32"}}


@pytest.mark.parametrize(
    ("dtype", "reason"),
    [("fp16", "`fp16` is not a dtype"), ("int8", "no tensor of the declaration may be `int8`")],
)
def test_a_dtype_that_no_tensor_may_have(dtype: str, reason: str) -> None:
    assert dtypes('x: {dtype: "float16 | float32"}', 'y: {dtype: "same_as(x)"}', dtype) == {reason: {}}


def test_an_input_whose_dtype_cannot_be_read() -> None:
    found = dtypes('x: {dtype: "float16"}, w: {dtype: "same_as(nothing)"}', 'y: {dtype: "same_as(x)"}', "float16")
    assert found == {"the dtype of `w` is not known": {}}


GENERATIVE = """\
signature:
  inputs: {}
  outputs: {y: {dtype: "float16 | float32", shape: "[M, N]"}}
  params: {M: {type: int}, N: {type: int}, dtype: {type: torch.dtype, default: float16}}
  shape_rules: []
workloads:
  - {M: 4, N: 8, dtypes: [float16, float32], label: open}
  - {M: 4, N: 16, dtype: torch.float32, dtypes: [float32], label: given}
"""


@pytest.mark.parametrize(("row", "dtype"), [("open", "float16"), ("open", "float32"), ("given", "float32")])
def test_a_dtype_that_no_input_carries_goes_to_the_param_for_it(row: str, dtype: str) -> None:
    call = cells(plan(GENERATIVE), row, dtype)["row"].call
    assert (call.inputs, call.params["dtype"], call.outputs[0].dtype) == ((), f"torch.{dtype}", dtype)


def test_a_dtype_param_with_a_default_is_left_to_the_code_where_an_input_carries_the_dtype() -> None:
    found = plan("""\
signature:
  inputs: {x: {dtype: "float16 | float32"}}
  outputs: {y: {dtype: "float16 | float32"}}
  params: {dtype: {type: torch.dtype, default: float16}}
""")
    assert "dtype" not in cells(found, "small")["row"].call.params
