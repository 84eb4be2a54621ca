"""Differences between tensors: bits against bits, and results against a reference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from opschema_cli.verify.elements import chunks, unravel
from opschema_cli.verify.marks import Marks
from opschema_cli.verify.measure import Comparison, Measure, finding
from opschema_cli.verify.model import Figures, Finding, Tolerance, Values
from opschema_cli.verify.ties import only_ties

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def bits(tensor: Tensor) -> Tensor:
    """The tensor's bits as integers of its size, sharing its memory."""
    real = parts(tensor)
    return real.view(_BITS[real.element_size()])


def parts(tensor: Tensor) -> Tensor:
    """The real and imaginary parts of complex numbers along a further axis; other tensors unchanged."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def differing(one: Tensor, other: Tensor) -> tuple[int, tuple[int, ...]]:
    """The number of elements in which two tensors of one shape and dtype differ, and the place of the first.

    Two elements are the same if their bits are, or if both are NaN: a NaN's payload means nothing, and hardware chooses it.
    +0 and -0 differ.
    """
    if torch.equal(bits(one), bits(other)):
        return 0, ()
    count, first = 0, -1
    for start, (a, b) in chunks(one, other):
        differ = bits(a) != bits(b)
        if a.is_floating_point() or a.is_complex():
            differ &= ~(is_nan(parts(a)) & is_nan(parts(b)))
        if a.is_complex():
            differ = differ.any(-1)
        found = int(differ.count_nonzero())
        if found and first < 0:
            first = start + int(differ.to(torch.uint8).argmax())
        count += found
    return count, unravel(first, one.shape) if count else ()


def unlike(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors differ in shape, dtype or bits (:func:`differing`)."""
    return one.shape != other.shape or one.dtype != other.dtype or differing(one, other.to(one.device))[0] > 0


def differences(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> tuple[Finding, ...]:
    """The differences between two sides, output by output: presence, shape, dtype, bits. Empty if nothing does."""
    return tuple(
        Finding(check=check, side="after", about=name, message=message)
        for name in {**before, **after}
        for check, message in _difference(name, before.get(name), after.get(name))
    )


def _difference(name: str, before: Tensor | None, after: Tensor | None) -> Iterator[tuple[str, str]]:
    found = unlike_metadata(name, _described(before), _described(after))
    if found is not None:
        yield found
    elif before is not None and after is not None:
        count, first = differing(before, after)
        if count:
            yield (
                "bits",
                f"`{name}`: {count} of {after.numel()} elements differ from before, the first at {list(first)}",
            )


def unlike_metadata(
    name: str, before: tuple[tuple[int, ...], str] | None, after: tuple[tuple[int, ...], str] | None
) -> tuple[str, str] | None:
    """The check and message where only one side returns an output, or its shape or dtype is another."""
    if before is None or after is None:
        return "outputs", f"only {'after' if before is None else 'before'} returns `{name}`"
    for check, old, new in zip(("shape", "dtype"), before, after, strict=True):
        if old != new:
            return check, f"`{name}` is {new}, before {old}"
    return None


def _described(tensor: Tensor | None) -> tuple[tuple[int, ...], str] | None:
    return None if tensor is None else (tuple(tensor.shape), dtype_name(tensor.dtype))


def against(
    actual: Tensor,
    exact: Tensor,
    single: Tensor | None,
    tolerance: Tolerance,
    *,
    side: str,
    output: str,
    values: Values = "normal",
    short: Tensor | None = None,
    marks: Marks = Marks(),  # noqa: B008
    sources: Sequence[Tensor] = (),
) -> Comparison:
    """Compares an output with its reference: ``exact`` in float64, ``single`` the same in float32 (without it E is 0), ``short``
    in the dtype of a 16-bit output.

    Complex numbers are compared part by part, those that are not finite only by being so: which part is infinite and which NaN is
    a matter of the formula.

    Outputs that hold no floating numbers must equal the reference exactly, or be indices that point at equal values of ``sources``.
    """
    if actual.shape != exact.shape:
        message = f"`{output}` is {tuple(actual.shape)}, the reference's is {tuple(exact.shape)}"
        return Comparison(
            Figures(side=side, output=output, beyond=1.0), (finding("shape", message, side=side, output=output),)
        )
    if actual.is_complex():
        actual, exact = _finite_parts(actual), _finite_parts(exact)
        single, short = (None if y is None else _finite_parts(y) for y in (single, short))
    if not actual.is_floating_point():
        return _exact(actual, exact, sources, side=side, output=output)
    alike = [other if other is not None and other.shape == exact.shape else None for other in (single, short)]
    return Measure(actual, exact.to(torch.float64), alike[0], tolerance, values, alike[1], marks).comparison(
        side, output
    )


def _finite_parts(tensor: Tensor) -> Tensor:
    """Return the parts of possibly complex numbers, both as NaN if one of them is not finite."""
    wide = tensor if tensor.is_complex() else tensor.to(torch.complex128)
    return parts(wide.masked_fill(~wide.isfinite(), complex(math.nan, math.nan)))


def _exact(actual: Tensor, exact: Tensor, sources: Sequence[Tensor], *, side: str, output: str) -> Comparison:
    wrong, first, worst = 0, -1, 0.0
    for start, (y, r) in chunks(actual, exact):
        differ = y != r.to(torch.float64) if r.is_floating_point() else y.to(torch.int64) != r.to(torch.int64)
        found = int(differ.count_nonzero())
        if found:
            first = start + int(differ.to(torch.uint8).argmax()) if first < 0 else first
            worst = max(worst, float((y.to(torch.float64) - r.to(torch.float64)).abs().nan_to_num().max()))
        wrong += found
    if wrong and only_ties(actual, exact, sources):
        wrong, worst = 0, 0.0
    at = unravel(first, actual.shape) if wrong else ()
    count = actual.numel()
    share, beyond = math.inf if wrong else 0.0, wrong / max(count, 1)
    figures = Figures(side=side, output=output, worst=worst, share=share, beyond=beyond, at=at, elements=count)
    if not wrong:
        return Comparison(figures)
    message = f"`{output}`: {wrong} of {count} elements are not the reference's, the first at {list(at)}"
    return Comparison(figures, (finding("exact", message, side=side, output=output),))


def is_nan(tensor: Tensor) -> Tensor:
    """Mask of the NaN elements, also for eight-bit dtypes, for which torch has no ``isnan``."""
    return tensor.to(torch.float32).isnan() if tensor.element_size() == 1 else tensor.isnan()


def dtype_name(dtype: torch.dtype) -> str:
    """``float16`` and the like."""
    return str(dtype).removeprefix("torch.")
