"""References: torch functions and recipes, in float64 and float32."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch
from torch import Tensor

from opschema_cli.verify.inputs import make_inputs
from opschema_cli.verify.loading import RefusedError
from opschema_cli.verify.marks import SCALE
from opschema_cli.verify.model import Call, Cell, Input, Output, Ran, Target, Tolerance
from opschema_cli.verify.protocol import Load, Run
from opschema_cli.verify.recipes import Recipe
from opschema_cli.verify.reference import Reference, torch_function


def make_cell(*inputs: Input, outputs: tuple[str, ...] = ("y",), **params: object) -> Cell:
    call = Call(inputs=inputs, params=params, outputs=tuple(Output(name=name) for name in outputs))
    return Cell(op="Op", row="r", dtype="float16", call=call)


def x(name: str = "x", shape: tuple[int, ...] = (3, 4), dtype: str = "float16", *, mutated: bool = False) -> Input:
    return Input(name=name, shape=shape, dtype=dtype, mutated=mutated)


def compute(
    folder: Path, cell: Cell, function: str = "", recipe: Recipe | None = None
) -> tuple[Ran, dict[str, Tensor]]:
    target = Target(root=str(folder), module="", name="")
    load = Load(side="reference", op="Op", target=target, reference=function)
    ran = Reference(load, recipe or Recipe()).run(Run(cell=cell, device="cpu", folder=str(folder), seconds=60))
    found = torch.load(ran.file, weights_only=True)
    assert found.pop(SCALE).dim() == 0
    return ran, found


def test_both_precisions_start_from_the_quantised_inputs(tmp_path: Path) -> None:
    cell = make_cell(x(), dim=-1)
    _, found = compute(tmp_path, cell, "torch.nn.functional.softmax")
    assert {name: tensor.dtype for name, tensor in found.items()} == {
        "ref64:y": torch.float64,
        "ref32:y": torch.float32,
        "ref16:y": torch.float16,
    }
    given = make_inputs(cell)["x"]
    assert torch.equal(found["ref16:y"], torch.softmax(given, -1))
    assert torch.equal(found["ref64:y"], torch.softmax(given.double(), -1))
    assert torch.equal(found["ref32:y"], torch.softmax(given.float(), -1))


@pytest.mark.parametrize(
    ("function", "cell", "expected"),
    [
        ("torch.exp", make_cell(x()), lambda t: t["x"].exp()),
        ("torch.sum", make_cell(x(), dim=[1], keepdim=True), lambda t: t["x"].sum(1, keepdim=True)),
        ("torch.matmul", make_cell(x("a"), x("b", (4, 2))), lambda t: t["a"] @ t["b"]),
        ("torch.where", make_cell(x("mask", dtype="bool"), x("a"), x("b")), lambda t: t["a"].where(t["mask"], t["b"])),
        (
            "torch.nn.functional.rms_norm",
            make_cell(x(), x("weight", (4,)), normalized_shape=[4], eps=1e-6),
            lambda t: torch.nn.functional.rms_norm(t["x"], [4], t["weight"], 1e-6),
        ),
        ("torch.special.expit", make_cell(x("input")), lambda t: t["input"].sigmoid()),
        ("torch.argmax", make_cell(x(), dim=1), lambda t: t["x"].argmax(1)),
        ("torch.softmax", make_cell(x(), dim=1, dtype="float16"), lambda t: t["x"].softmax(1)),
    ],
)
def test_torch_functions(
    tmp_path: Path, function: str, cell: Cell, expected: Callable[[dict[str, Tensor]], Tensor]
) -> None:
    _, found = compute(tmp_path, cell, function)
    wide = {name: t.double() if t.is_floating_point() else t for name, t in make_inputs(cell).items()}
    assert torch.equal(found["ref64:y"], expected(wide))


@pytest.mark.parametrize("function", ["torch.nowhere", "torch.pi", "os.system", "torch.nn.functional"])
def test_what_is_no_function_of_torch(function: str) -> None:
    with pytest.raises(RefusedError, match=function):
        torch_function(function)


@pytest.mark.parametrize(
    ("function", "cell", "reason"),
    [
        ("torch.exp", make_cell(x(), scale=2.0), "torch.exp: the reference does not take `scale`"),
        ("torch.exp", make_cell(x(), x("weight")), "torch.exp: the reference does not take `x`, `weight`"),
        ("torch.nn.functional.softmax", make_cell(outputs=()), "the reference needs `input`"),
        ("", make_cell(x()), "there is no reference: the declaration names none"),
    ],
)
def test_what_does_not_fit(tmp_path: Path, function: str, cell: Cell, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        compute(tmp_path, cell, function)


class Center(Recipe):
    tolerance = Tolerance(ulps=2, reason="known")

    def reference(self, tensors: dict[str, Tensor], params: dict[str, object]) -> object:
        mean = tensors["x"].mean(0)
        tensors["running"] += mean
        return tensors["x"] - mean, tensors["x"].argmax(0)


def test_declared_defaults_are_given_to_a_function_that_takes_them(tmp_path: Path) -> None:
    cell = make_cell(x())
    call = msgspec.structs.replace(cell.call, defaults={"dim": -1, "block": 128})
    _, found = compute(tmp_path, msgspec.structs.replace(cell, call=call), "torch.sum")
    assert found["ref64:y"].shape == (3,)


def test_a_static_dimension_is_not_given_to_a_function_without_it(tmp_path: Path) -> None:
    cell = make_cell(x(), N=4, dim=-1)
    call = msgspec.structs.replace(cell.call, static_dims=("N",))
    _, found = compute(tmp_path, msgspec.structs.replace(cell, call=call), "torch.softmax")
    assert found["ref64:y"].shape == (3, 4)


class Ramp(Recipe):
    """Of nothing."""

    def reference(self, tensors: dict[str, Tensor], params: dict[str, object]) -> Tensor:
        return torch.arange(3, dtype=torch.get_default_dtype())


def test_what_a_reference_makes_of_nothing_has_the_precision_asked_for(tmp_path: Path) -> None:
    found = compute(tmp_path, make_cell(), recipe=Ramp())[1]
    assert {name: tensor.dtype for name, tensor in found.items()} == {
        "ref64:y": torch.float64,
        "ref32:y": torch.float32,
    }
    assert torch.get_default_dtype() is torch.float32


def test_a_recipe_gives_outputs_mutated_inputs_and_the_tolerance(tmp_path: Path) -> None:
    cell = make_cell(x(), x("running", (4,), "float32", mutated=True), outputs=("y", "index"))
    ran, found = compute(tmp_path, cell, "torch.exp", Center())
    assert ran.tolerance == Center.tolerance
    names = {"y", "index", "input:running"}
    assert found.keys() == {*(f"{kind}:{name}" for kind in ("ref64", "ref32") for name in names), "ref16:y"}
    assert found["ref64:input:running"].dtype == torch.float64
    assert found["ref64:index"].dtype == torch.int64


def test_what_has_no_16_bits_has_no_reference_in_them(tmp_path: Path) -> None:
    found = compute(tmp_path, make_cell(x(dtype="float32")), "torch.exp")[1]
    assert found.keys() == {"ref64:y", "ref32:y"}


class OnlyDouble(Recipe):
    def reference(self, tensors: dict[str, Tensor], params: dict[str, object]) -> object:
        if tensors["x"].dtype != torch.float64:
            raise NotImplementedError("float64 only")
        return tensors["x"] * 2

    def skip(self, cell: Cell) -> str:
        return "no such hardware" if cell.row != "r" else ""


def test_float32_and_float16_may_be_missing(tmp_path: Path) -> None:
    assert compute(tmp_path, make_cell(x()), recipe=OnlyDouble())[1].keys() == {"ref64:y"}


def test_a_skipped_cell(tmp_path: Path) -> None:
    cell = Cell(op="Op", row="other", dtype="float16", call=Call(inputs=(x(),)))
    with pytest.raises(RefusedError, match="no such hardware"):
        compute(tmp_path, cell, recipe=OnlyDouble())


def test_inputs_that_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="float17"):
        compute(tmp_path, make_cell(x(dtype="float17")), "torch.exp")
