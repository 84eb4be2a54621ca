"""Autograd formulas of torch.library operators, against differences of the operator itself in float64.

Along random directions v, and for a random cotangent u, the formula's ``u·J·v`` must be what ``u·(f(x + h·v) - f(x - h·v)) / 2h``
is. Where small steps h disagree, as they do if the operator computes in float32, large ones are tried. Nothing is reported
where that is not certain: the operator raises in float64 or computes in 16 bits, the steps disagree, as they do near a kink, or it
does not change with an input that has a gradient (rounding, with a straight-through estimator).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from opschema_cli.verify.devices import out_of_memory
from opschema_cli.verify.kernels import has_gradient

_DIRECTIONS = 3
_MOST_ELEMENTS = 1 << 16
NO_FORMULA = "no autograd formula was registered"

Function = Callable[[Sequence[Tensor]], list[Tensor]]


class _Steps(NamedTuple):
    """Steps, the largest first; how far their differences may disagree and the formula may be off, as parts of the gradient."""

    sizes: tuple[float, ...]
    stable: float
    wrong: float


_SMALL = _Steps((1e-6, 2.5e-7, 1e-8), 1e-4, 1e-2)
"""Steps for operators that compute in float64. In float32 the smallest step rounds to 0 or to a very different value."""

_LARGE = _Steps((1e-2, 5e-3, 2.5e-3), 2e-3, 2e-2)
"""For those that compute in float32. The error of a central difference falls to a quarter with half of the step."""

_KINK = 0.75
"""The part of the curvature term that may remain at half the step: half remains if the function is smooth, all at a kink."""


class _Pair(NamedTuple):
    """A derivative along a direction: by the formula and by differences, and how far the formula may be off."""

    formula: float
    differences: float
    wrong: float


class _NotCheckedError(Exception):
    """The formula cannot be checked on this call. The message gives the reason, or is empty if there is no formula."""


def gradient_faults(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Faults of the formula that a call shows: ``gradient``, or ``gradient-skipped`` with the reason."""
    name = str(operator._schema.name)
    if operator._schema.is_mutable or not has_gradient(operator):
        return
    try:
        wrong = _wrong_input(operator, args, kwargs)
    except _NotCheckedError as error:
        if str(error):
            yield "gradient-skipped", f"the autograd formula of `{name}` was not checked: {error}"
        return
    if wrong:
        yield "gradient", f"the autograd formula of `{name}` is wrong for {wrong}"


def _wrong_input(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return an input with a wrong gradient and the error, or an empty text if there is none.

    Raises:
        _NotCheckedError: it is not certain.
    """
    inputs, function = _as_function(operator, args, kwargs)
    names = _names(operator, args, kwargs)
    generator = torch.Generator().manual_seed(0)
    cotangents, gradients = _by_formula(function, inputs, generator)
    found = ""
    for place, (x, gradient) in enumerate(zip(inputs, gradients, strict=True)):
        if gradient is None:  # declared not to be differentiable by it
            continue
        pairs = [_pair(function, inputs, place, gradient, cotangents, generator) for _ in range(_DIRECTIONS)]
        if bool(gradient.any()) and all(pair.differences == 0 for pair in pairs) and x.numel():
            raise _NotCheckedError(
                "it does not change with an input that has a gradient (a straight-through estimator?)"
            )
        scale = max(float(gradient.norm()), *(abs(pair.differences) for pair in pairs))
        wrong = [pair for pair in pairs if abs(pair.formula - pair.differences) > pair.wrong * scale]
        if wrong and not found:
            formula, differences, _ = wrong[0]
            found = f"`{names[place]}`: along a random direction it gives {formula:.6g}, finite differences {differences:.6g}"
    return found


def _as_function(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Tensor], Function]:
    """Return the floating-point inputs in float64, and the operator as a function of them."""
    leaves = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor) and leaf.is_floating_point()]
    inputs = [leaf.detach().to(torch.float64) for leaf in leaves]
    if not inputs:
        raise _NotCheckedError
    if sum(x.numel() for x in inputs) > _MOST_ELEMENTS:
        raise _NotCheckedError(f"its inputs have more than {_MOST_ELEMENTS} elements")

    def function(values: Sequence[Tensor]) -> list[Tensor]:
        waiting = iter(values)

        def replaced(leaf: Tensor) -> Tensor:
            return next(waiting) if leaf.is_floating_point() else leaf.clone()

        own_args, own_kwargs = tree_map_only(Tensor, replaced, (args, kwargs))
        results = tree_leaves(operator(*own_args, **own_kwargs))
        return [y for y in results if isinstance(y, Tensor) and y.is_floating_point()]

    return inputs, function


def _by_formula(
    function: Function, inputs: Sequence[Tensor], generator: torch.Generator
) -> tuple[list[Tensor | None], list[Tensor | None]]:
    """Return the cotangents of the outputs (None for outputs without a gradient), and the formula's result for them."""
    with torch.enable_grad():
        values = [x.clone().requires_grad_() for x in inputs]
        try:
            outputs = function(values)
        except Exception as error:
            raise _refused(error) from error
        if any(y.dtype is not torch.float64 for y in outputs):
            raise _NotCheckedError("its results are not in float64 where its inputs are")
        cotangents = [_drawn(y, generator) if y.requires_grad else None for y in outputs]
        products = [(u * y).sum() for u, y in zip(cotangents, outputs, strict=True) if u is not None]
        if not products:
            raise _NotCheckedError
        try:
            gradients = torch.autograd.grad(sum(products[1:], products[0]), values, allow_unused=True)
        except Exception as error:
            raise _refused(error) from error
    return cotangents, list(gradients)


def _refused(error: Exception) -> Exception:
    if out_of_memory(error):
        return error
    says = str(error).partition("\n")[0]
    return _NotCheckedError("" if NO_FORMULA in str(error) else f"it raises in float64: {type(error).__name__}: {says}")


def _pair(
    function: Function,
    inputs: Sequence[Tensor],
    place: int,
    gradient: Tensor,
    cotangents: Sequence[Tensor | None],
    generator: torch.Generator,
) -> _Pair:
    """The derivative along one direction of an input: by the formula, and by differences.

    Raises:
        _NotCheckedError: the differences of several steps disagree.
    """
    direction = _drawn(inputs[place], generator)

    def value(step: float) -> float:
        moved = [x.clone() for x in inputs]
        moved[place] += step * direction
        outputs = function(moved)
        return sum(float((u * y).sum()) for u, y in zip(cotangents, outputs, strict=True) if u is not None)

    by_formula, norm = float((gradient * direction).sum()), float(gradient.norm())
    with torch.no_grad():
        for steps in (_SMALL, _LARGE):
            differences = _differences(value, steps, norm)
            if differences is not None:
                return _Pair(by_formula, differences, steps.wrong)
    raise _NotCheckedError("its finite differences in float64 are not certain")


def _differences(value: Callable[[float], float], steps: _Steps, norm: float) -> float | None:
    """The derivative of a function at 0 by central differences; None if steps disagree, or it seems to have a kink there."""
    middle = value(0.0)
    ends = [(value(step), value(-step), 2 * step) for step in steps.sizes]
    slopes = [(after - before) / width for after, before, width in ends]
    found = slopes[1]
    allowed = steps.stable * max(norm, abs(found))
    if not all(abs(slope - found) <= allowed for slope in slopes):  # NaN included
        return None
    curved = [abs(after - 2 * middle + before) / width for after, before, width in ends]
    if not all(fine <= max(_KINK * coarse, allowed) for coarse, fine in pairwise(curved)):
        return None
    return found


def _drawn(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=generator, dtype=torch.float64).to(like.device)


def _names(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """The names of the arguments that hold the floating inputs."""
    arguments = [argument.name for argument in operator._schema.arguments]
    named = [*zip(arguments, args, strict=False), *kwargs.items()]
    return [
        name
        for name, value in named
        for leaf in tree_leaves(value)
        if isinstance(leaf, Tensor) and leaf.is_floating_point()
    ]
