"""Checks of operators in a worker: autograd formulas against differences, compiled calls against eager ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor

from opschema_cli.verify.compilation import compilation_faults
from opschema_cli.verify.gradients import gradient_faults
from opschema_cli.verify.operators import recorded

Formula = Callable[[Tensor, Tensor, Tensor], tuple[Tensor | None, Tensor | None]]
"""Gradients of ``x`` and ``y``, from that of the output, ``x`` and ``y``."""


def in_float32(x: Tensor) -> Tensor:
    """A kernel for one dtype."""
    if x.dtype is not torch.float32:
        raise TypeError("float32 is needed")
    return x.clone()


KINK = torch.linspace(-2, 3, 64)[20].item()
"""An element of ``y``."""

FORMULAS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Formula, str]] = {
    "right": (lambda x, y: x * y**2, lambda g, x, y: (g * y**2, 2 * g * x * y), ""),
    "factor lost": (lambda x, y: x * y**2, lambda g, x, y: (g * y**2, g * x * y), "gradient: `y`"),
    "sign": (lambda x, y: (x - y).sin(), lambda g, x, y: (g * (x - y).cos(), g * (x - y).cos()), "gradient: `y`"),
    "in another form": (
        lambda x, y: torch.sigmoid(x) + 0 * y,
        lambda g, x, y: (g * x.neg().exp() / (1 + x.neg().exp()) ** 2, None),
        "",
    ),
    "kinks": (lambda x, y: x.relu() * y, lambda g, x, y: (g * (x > 0) * y, g * x.relu()), ""),
    "one entry": (
        lambda x, y: x * y,
        lambda g, x, y: (g * y, torch.where(torch.arange(16) < 15, g * x, 0)),
        "gradient: `y`",
    ),
    "straight through": (lambda x, y: x.round() * y, lambda g, x, y: (g * y, g * x.round()), "skipped: it does not"),
    "float32 inside, wrong": (
        lambda x, y: (x.float() * y.float()).double(),
        lambda g, x, y: (g * y * 1.1, g * x),
        "gradient: `x`",
    ),
    "float32 inside": (
        lambda x, y: (x.float() * y.float().sin()).double(),
        lambda g, x, y: (g * y.sin(), g * x * y.cos()),
        "",
    ),
    "float32 and a kink": (
        lambda x, y: (x.float() + (y - KINK).float().relu()).double(),
        lambda g, x, y: (g, g * (y > KINK)),
        "skipped: its finite differences",
    ),
    "bfloat16 inside": (
        lambda x, y: (x.bfloat16() * y.bfloat16()).double(),
        lambda g, x, y: (g * y * 3, g * x),
        "skipped: its finite differences",
    ),
    "float32 only": (
        lambda x, y: in_float32(x) * y,
        lambda g, x, y: (g, g),
        "skipped: it raises in float64: TypeError",
    ),
}


@pytest.fixture
def library() -> Iterator[object]:
    with torch.library._scoped_library("opschema_checks", "FRAGMENT") as found:
        yield found


def test_autograd_formulas(library: object) -> None:
    def inputs(*_: object) -> tuple[Tensor, Tensor]:
        return torch.randn(4, 16, generator=torch.Generator().manual_seed(1)), torch.linspace(-2, 3, 64).reshape(4, 16)

    found = {}
    for number, (name, (kernel, formula, _)) in enumerate(FORMULAS.items()):
        operator = f"opschema_checks::formula{number}"
        torch.library.define(operator, "(Tensor x, Tensor y) -> Tensor", lib=library)
        torch.library.impl(operator, "CompositeExplicitAutograd", kernel, lib=library)
        torch.library.register_autograd(
            operator,
            lambda context, g, formula=formula: formula(g, *context.saved_tensors),
            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
            lib=library,
        )
        faults = gradient_faults(getattr(torch.ops.opschema_checks, f"formula{number}").default, inputs(), {})
        found[name] = [f"{check}: {message}" for check, message in faults]
    for name, (_, _, wanted) in FORMULAS.items():
        kind, _, words = wanted.partition(": ")
        assert len(found[name]) == bool(wanted), (name, found[name])
        assert all(text.startswith(f"gradient{'-skipped' * (kind == 'skipped')}: ") for text in found[name]), name
        assert all(words in text for text in found[name]), (name, found[name])


def test_compiled_calls(library: object) -> None:
    def with_branch(x: Tensor) -> Tensor:
        return x + 2 if torch.compiler.is_compiling() else x + 1

    drawn = iter(range(100))
    kernels = {
        "sound": ("CompositeImplicitAutograd", lambda x: torch.relu(x) + x.mean()),
        "branch": ("CompositeImplicitAutograd", with_branch),
        "random": ("CompositeExplicitAutograd", lambda x: x + next(drawn)),
    }
    found = {}
    for name, (key, kernel) in kernels.items():
        torch.library.define(f"opschema_checks::{name}", "(Tensor x) -> Tensor", lib=library)
        torch.library.impl(f"opschema_checks::{name}", key, kernel, lib=library)
        overload = getattr(torch.ops.opschema_checks, name).default
        found[name] = [f"{check}: {words}" for check, words in compilation_faults(overload, (torch.randn(3),), {}, "/")]
    assert found["sound"] == []
    assert found["random"] == [
        "compile-skipped: `opschema_checks::random` was not compiled: it differs from call to call"
    ]
    (difference,) = found["branch"]
    assert difference.startswith(
        "compile: `opschema_checks::branch` tensor 0 under torch.compile is not that of eager mode: "
    )


def test_calls_are_recorded_through_higher_order_operators(library: object) -> None:
    torch.library.define("opschema_checks::product", "(Tensor x) -> Tensor", lib=library)

    def product(x: Tensor) -> Tensor:
        return torch._higher_order_ops.out_dtype(torch.ops.aten.mm.default, torch.int32, x, x).relu()

    torch.library.impl("opschema_checks::product", "CompositeImplicitAutograd", product, lib=library)
    with recorded(["aten::relu"]) as calls:
        torch.ops.opschema_checks.product(torch.ones(2, 2, dtype=torch.int8))
    assert [call.name for call in calls] == ["aten::relu"]
