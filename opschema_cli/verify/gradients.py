"""Autograd formulas of torch.library operators, against differences of the operator itself in float64.

Along random directions v, and for a random cotangent u, the formula's ``u·J·v`` must be what ``u·(f(x + h·v) - f(x - h·v)) / 2h``
is. Nothing is reported where that is not certain: the operator raises in float64 or computes in less, two steps h disagree, as they
do near a kink, or it does not change with an input that has a gradient (rounding, with a straight-through estimator).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from opschema_cli.verify.devices import out_of_memory
from opschema_cli.verify.kernels import has_gradient

_STEPS = (1e-6, 2.5e-7)
_DIRECTIONS = 3
_STABLE, _WRONG = 1e-4, 1e-2
_MOST_ELEMENTS = 1 << 16
_NO_FORMULA = "no autograd formula was registered"

Function = Callable[[Sequence[Tensor]], list[Tensor]]


class _NotCheckedError(Exception):
    """The formula cannot be checked on this call; the message says why, and is empty if there is no formula."""


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
    """An input whose gradient is wrong, and by how much; empty if there is none.

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
        if bool(gradient.any()) and all(true == 0 for _, true in pairs) and x.numel():
            raise _NotCheckedError(
                "it does not change with an input that has a gradient (a straight-through estimator?)"
            )
        scale = max(float(gradient.norm()), *(abs(true) for _, true in pairs))
        wrong = [pair for pair in pairs if abs(pair[0] - pair[1]) > _WRONG * scale]
        if wrong and not found:
            found = f"`{names[place]}`: along a random direction it gives {wrong[0][0]:.6g}, finite differences {wrong[0][1]:.6g}"
    return found


def _as_function(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Tensor], Function]:
    """The floating inputs in float64, and the operator as a function of them."""
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
    """The cotangents of the outputs, None of one without a gradient, and what the formula makes of them."""
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
    return _NotCheckedError(
        "" if _NO_FORMULA in str(error) else f"it raises in float64: {type(error).__name__}: {says}"
    )


def _pair(
    function: Function,
    inputs: Sequence[Tensor],
    place: int,
    gradient: Tensor,
    cotangents: Sequence[Tensor | None],
    generator: torch.Generator,
) -> tuple[float, float]:
    """The derivative along one direction of an input: by the formula, and by differences.

    Raises:
        _NotCheckedError: two steps give different differences.
    """
    direction = _drawn(inputs[place], generator)

    def value(step: float) -> float:
        moved = [x.clone() for x in inputs]
        moved[place] += step * direction
        outputs = function(moved)
        return sum(float((u * y).sum()) for u, y in zip(cotangents, outputs, strict=True) if u is not None)

    with torch.no_grad():
        coarse, fine = ((value(step) - value(-step)) / (2 * step) for step in _STEPS)
    by_formula = float((gradient * direction).sum())
    scale = max(float(gradient.norm()), abs(fine))
    if not abs(coarse - fine) <= _STABLE * scale:  # NaN included
        raise _NotCheckedError("its finite differences in float64 are not certain")
    return by_formula, fine


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
