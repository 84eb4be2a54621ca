"""Zeros and overflows that have rules of their own."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from opschema_cli.verify.compare import against  # noqa: E402
from opschema_cli.verify.inputs import make_inputs  # noqa: E402
from opschema_cli.verify.judge import Compared, judge  # noqa: E402
from opschema_cli.verify.marks import marked, marks_of  # noqa: E402
from opschema_cli.verify.model import Call, Cell, Finding, Input, Ran, Tolerance, Values  # noqa: E402

OK = Ran(cell="c", status="ok")


def checks(form: object, right: object, values: Values, dtype: str = "float32") -> list[str]:
    """The findings on one form of a function, whose right one is the reference."""
    cell = Cell(
        op="Op", row="r", dtype=dtype, values=values, call=Call(inputs=(Input(name="x", shape=(16, 33), dtype=dtype),))
    )
    drawn = make_inputs(cell)

    def compute(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"y": right(inputs["x"].double())}

    exact = compute(drawn)
    masks = marked(cell, drawn, exact, compute)
    y, single = form(drawn["x"].float()).to(drawn["x"].dtype), right(drawn["x"].float())
    found = against(
        y, exact["y"], single, Tolerance(), side="after", output="y", values=values, marks=marks_of(masks, "y")
    )
    return [finding.check for finding in found.findings]


def silu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


@pytest.mark.parametrize("values", ["special", "ties"])
def test_a_zero_keeps_its_sign(values: Values) -> None:
    assert checks(silu, silu, values) == []
    assert checks(lambda x: silu(x) + 0.0, silu, values) == ["zero-sign"]
    assert checks(lambda x: 0.0 - x, lambda x: -x, values) == ["zero-sign"]


@pytest.mark.parametrize("values", ["special", "ties"])
def test_the_sign_of_a_zero_that_nothing_tells_from_the_other_is_free(values: Values) -> None:
    assert checks(lambda x: torch.where(x <= 0, 0.0, x), torch.relu, values) == []

    def right(x: Tensor) -> Tensor:
        return x * (x + 3).clamp(0, 6) / 6

    def other(x: Tensor) -> Tensor:
        return torch.where(x <= -3, torch.where(x.isinf(), right(x), 0.0), right(x))

    assert checks(other, right, values) == []


def square_ratio(x: Tensor) -> Tensor:
    return x * (x / (1 + x.abs()))


def overflowing(x: Tensor) -> Tensor:
    return x * x / (1 + x.abs())


def test_an_overflow_of_one_right_form_on_extreme_inputs_is_noted() -> None:
    assert checks(square_ratio, square_ratio, "special", "bfloat16") == []
    assert checks(overflowing, square_ratio, "special", "bfloat16") == ["overflow"]


def test_an_overflow_on_ordinary_inputs_is_a_fault() -> None:
    def naive(x: Tensor) -> Tensor:
        return torch.log(1 + torch.exp(x))

    assert "inf-mask" in checks(naive, torch.nn.functional.softplus, "large")


def test_an_overflow_that_is_noted_does_not_fail() -> None:
    note = Finding(check="overflow", side="after", about="y", message="`y`: 1 elements overflow")
    bits = Finding(check="bits", side="after", about="y", message="1 of 2 elements differ")
    sides = {"before": Compared(), "after": Compared((note,))}
    assert judge(OK, OK, OK, differences=[bits], compared=sides) == (
        "within-tolerance",
        "bits differ, both are right; but overflow: `y`: 1 elements overflow",
        (note, bits),
    )
