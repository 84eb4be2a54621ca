"""Gradients of ops that are functions of torch or have a backward of their own: after's against before's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from opschema_cli.verify.evidence import Evidence
from opschema_cli.verify.model import Call, Output, Ran, Returned, Side
from opschema_cli.verify.own_gradients import Recorded, gradient_differences, recorded
from opschema_cli.verify.results_file import save
from tests.verify.oplib import cell, plan

Op = Callable[[Tensor, Tensor], object]

CALL = Call(inputs=(), outputs=(Output(name="y"),))


def record(op: Op, dtype: torch.dtype = torch.float32, root: str = __file__) -> Recorded:
    """The recorded gradients of an op, with a row for ``x`` and a column for ``w``."""
    generator = torch.Generator().manual_seed(1)
    drawn = {name: torch.randn(8, 16, generator=generator).to(dtype) for name in ("x", "w")}
    root = root.rpartition("/")[0] if root == __file__ else root
    return recorded("cpu", lambda tensors: op(**tensors), drawn, CALL, "after", root)


def told(before: Op, after: Op, dtype: torch.dtype = torch.float32) -> list[str]:
    old, new = record(before, dtype), record(after, dtype)
    return [finding.about for finding in gradient_differences(old.gradients, new.gradients)]


def custom(backward: Callable[[Tensor], object], forward: Callable[[Tensor], Tensor] = lambda x: x * 2) -> Op:
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return forward(x)

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            return backward(gradient)

    return lambda x, w: Own.apply(x) + w


def fail(gradient: Tensor) -> Tensor:
    raise RuntimeError("not written")


def in_place(x: Tensor, w: Tensor) -> Tensor:
    e = x.exp()
    y = e * w
    e.mul_(2)
    return y


RIGHT: list[tuple[Op, Op]] = [
    (lambda x, w: x * w, lambda x, w: w * x + 0),
    (lambda x, w: torch.relu(x) + w, lambda x, w: torch.where(x > 0, x, 0.0) + w),
    (
        lambda x, w: torch.softmax(x, -1) * w,
        lambda x, w: (x - x.amax().detach()).exp() / x.sub(x.amax()).exp().sum(-1, True) * w,
    ),
    (lambda x, w: (x - w).square().mean(), lambda x, w: ((x - w) ** 2).sum() / x.numel()),
    (lambda x, w: x - x + w, lambda x, w: 0 * x + w),
    (lambda x, w: torch.log_softmax(x, -1).exp().sum() + w, lambda x, w: 1.0 + 0 * x.sum() + w),  # all cancels
    (lambda x, w: torch.log_softmax(x, -1).exp().sum() + w, lambda x, w: 1.0 + w),
    (lambda x, w: x * 2 + w, custom(lambda g: g * 2)),
    (lambda x, w: x.sort(-1).values + w, lambda x, w: x.gather(-1, x.argsort(-1)) + w),
    (lambda x, w: x.detach() * w, lambda x, w: x * w),  # more than before
    (lambda x, w: x.tolist() and x * w, in_place),  # torch says so itself, and nobody may ask
    (lambda x, w: x.abs().sqrt() + w, lambda x, w: x.abs().pow(0.5) + w),
]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("before", "after"), RIGHT)
def test_other_roads_to_the_same_gradient(before: Op, after: Op, dtype: torch.dtype) -> None:
    assert told(before, after, dtype) == []


WRONG: list[tuple[Op, Op, str]] = [
    (custom(lambda g: g * 2), custom(lambda g: g * 3), "x"),
    (custom(lambda g: g * 2), custom(lambda g: g.as_strided(g.shape, (16, 1)) * 2), "x"),
    (custom(lambda g: g * 2), custom(lambda g: None), "x"),
    (lambda x, w: x * w, lambda x, w: x * w.detach(), "w"),
    (lambda x, w: (x - w).square().mean(), lambda x, w: (x - w).square().mean().detach() + 0 * (x + w).sum(), "x w"),
    (lambda x, w: torch.relu(x).sqrt() + w, lambda x, w: torch.relu(x.relu() + 1e-30).sqrt() + w, ""),  # NaN before too
]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("before", "after", "about"), WRONG)
def test_other_gradients(before: Op, after: Op, about: str, dtype: torch.dtype) -> None:
    assert told(before, after, dtype) == about.split()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_elements_that_are_equal(dtype: torch.dtype) -> None:
    """What sorts them may put each in the place of the other."""

    def tied(op: Op) -> Recorded:
        drawn = {"x": torch.arange(512).remainder(37).view(8, 64).to(dtype), "w": torch.ones(8, 64, dtype=dtype)}
        return recorded("cpu", lambda tensors: op(**tensors), drawn, CALL, "after", "/")

    stable = tied(lambda x, w: x.sort(dim=-1, stable=True).values * w).gradients
    reverse = tied(lambda x, w: x.sort(dim=-1, stable=True, descending=True).values.flip(-1) * w).gradients
    scaled = tied(lambda x, w: (x.sort(dim=-1).values * w).detach() + 3 * (x * w - (x * w).detach())).gradients
    assert not torch.equal(stable["grad:contiguous:x"], reverse["grad:contiguous:x"])
    assert not list(gradient_differences(stable, reverse))
    assert "x" in [finding.about for finding in gradient_differences(stable, scaled)]


def test_outputs_whose_gradients_cancel() -> None:
    call = Call(inputs=(), outputs=(Output(name="a"), Output(name="b")))

    def both(op: Op) -> Recorded:
        return recorded(
            "cpu", lambda tensors: op(**tensors), {"x": torch.ones(8), "w": torch.ones(8)}, call, "after", "/"
        )

    found = gradient_differences(
        both(lambda x, w: (x + w, x - w)).gradients, both(lambda x, w: (x + w.detach(), x - w.detach())).gradients
    )
    assert [finding.about for finding in found] == ["w"]


@pytest.mark.parametrize(("also", "about"), [(True, ["x"]), (False, [])])
def test_other_outputs_that_require_a_gradient(tmp_path: Path, also: bool, about: list[str]) -> None:
    """The gradients are those of all outputs together."""
    ran: dict[Side, Ran] = {}
    sides: tuple[tuple[Side, float, bool], ...] = (("before", 1.0, also), ("after", 2.0, True))
    for side, factor, grad in sides:
        found = {f"grad:{name}:x": torch.full((8,), factor) for name in ("contiguous", "strided")}
        found |= {"grad:scale:x": torch.tensor(1.0), "grad:tied:x": torch.tensor(False)}
        (tmp_path / side).mkdir()
        outputs = tuple(
            Returned(name=name, shape=(8,), dtype="float32", grad=needed)
            for name, needed in (("y", True), ("lse", grad))
        )
        ran[side] = Ran(cell="c", status="ok", outputs=outputs, file=save(found, str(tmp_path / side), "c"))
    evidence = Evidence(plan(tmp_path), cell("r"), ran)
    assert [finding.about for finding in evidence.differences()] == about


def test_a_gradient_that_is_no_longer_finite() -> None:
    def masked(x: Tensor, w: Tensor) -> Tensor:
        return torch.where(x > 0, x.clamp(min=0).sqrt(), 0.0) + w  # 0 times infinity

    def guarded(x: Tensor, w: Tensor) -> Tensor:
        return torch.where(x > 0, x.clamp(min=1e-6).sqrt(), 0.0) + w

    broken = lambda x, w: torch.where(x > 0, torch.where(x > 0, x, x * 0).sqrt(), 0.0) + w  # noqa: E731
    assert told(guarded, broken) == ["x"]
    assert told(broken, guarded) == []
    assert told(masked, masked) == []


def test_a_backward_that_raises() -> None:
    found = record(custom(fail)).findings
    assert [finding.check for finding in found] == ["gradient-raises"]
    assert (
        "with contiguous gradients of its outputs, the op's own backward raises RuntimeError: not written"
        in found[0].message
    )
    only_dense = record(custom(lambda g: g.view(-1).view(g.shape))).findings
    assert only_dense[0].message.startswith("with strided gradients of its outputs, the op's own backward raises")
    assert record(custom(fail), root="/nowhere").findings == ()  # torch's own
    assert record(in_place).findings == ()


def test_an_operator_that_lost_its_formula() -> None:
    """Its output still requires a gradient, and only asking for one raises."""
    twice = torch.library.custom_op(
        "own_gradients::twice", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    found = record(lambda x, w: twice(x) + w)
    assert [finding.check for finding in found.findings] == ["gradient-raises"]
    assert "with contiguous gradients of its outputs, an operator raises" in found.findings[0].message


def test_an_op_without_gradients() -> None:
    nothing = record(lambda x, w: torch.add(x, w, out=torch.empty(8, 16)))
    assert nothing == Recorded()
    none = record(lambda x, w: (x + w).detach())
    assert (none.required, none.gradients) == ({"y": False}, {})
    assert told(lambda x, w: x + w, lambda x, w: (x + w).detach()) == []  # `requires-grad` says so


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_outputs_of_8_bits(dtype: torch.dtype) -> None:
    """Torch promotes neither these dtypes nor their norms to others."""
    found = record(lambda x, w: (x + w).to(dtype))
    assert (found.required, found.findings) == ({"y": True}, ())
    assert {"grad:contiguous:x", "grad:strided:w"} <= found.gradients.keys()
    assert told(lambda x, w: (x + w).to(dtype), lambda x, w: (x + 2 * w).to(dtype)) == ["w"]


def test_a_call_that_leaves_gradients_off() -> None:
    def off(x: Tensor, w: Tensor) -> Tensor:
        y = x + w
        torch.set_grad_enabled(False)
        return y

    def restored(x: Tensor, w: Tensor) -> Tensor:
        with torch.no_grad():
            return x + w

    assert [(finding.check, finding.about) for finding in record(off).findings] == [
        ("state", "whether gradients are recorded")
    ]
    assert torch.is_grad_enabled()
    assert record(restored).findings == ()
