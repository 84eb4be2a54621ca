"""Gradients of ops that are functions of torch or have a backward of their own: after's against before's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from opschema_cli.verify.model import Call, Output
from opschema_cli.verify.own_gradients import Recorded, gradient_differences, recorded

Op = Callable[[Tensor, Tensor], object]

CALL = Call(inputs=(), outputs=(Output(name="y"),))


def record(op: Op, dtype: torch.dtype = torch.float32, root: str = __file__) -> Recorded:
    """What an op records, with a row for ``x`` and a column for ``w``."""
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
