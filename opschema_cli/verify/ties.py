"""Index outputs (``argmax``, ``topk``, ``sort``) that differ only where the values they point at are equal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor


def only_ties(actual: Tensor, expected: Tensor, sources: Iterable[Tensor]) -> bool:
    """Whether two tensors of integers are indices into one of ``sources``, along one axis, that everywhere point at equal values.

    NaN equals NaN. Where there are several indices along the axis, none may occur twice unless one does in ``expected``.
    """
    if actual.shape != expected.shape or not actual.numel() or not (_integral(actual) and _integral(expected)):
        return False
    pairs = ((source, axis) for source in sources for axis in _axes(source.shape, actual.shape))
    return any(_point_alike(source, axis, actual.long(), expected.long()) for source, axis in pairs)


def _integral(tensor: Tensor) -> bool:
    return tensor.dtype is not torch.bool and not tensor.is_floating_point() and not tensor.is_complex()


def _axes(source: torch.Size, shape: torch.Size) -> Iterator[int | None]:
    """The axes of a source that indices of a shape may run along; None for the flattened source."""
    for axis in range(len(source)):
        rest = (*source[:axis], *source[axis + 1 :])
        kept = len(shape) == len(source) and (*shape[:axis], *shape[axis + 1 :]) == rest
        if kept or tuple(shape) == rest:
            yield axis
    if not shape:
        yield None


def _point_alike(source: Tensor, axis: int | None, actual: Tensor, expected: Tensor) -> bool:
    values = source.reshape(-1) if axis is None else source
    along = axis or 0
    size = values.shape[along] if values.dim() else 0
    if not all(int(index.min()) >= 0 and int(index.max()) < size for index in (actual, expected)):
        return False
    if actual.dim() < values.dim():
        actual, expected = actual.unsqueeze(along), expected.unsqueeze(along)
    if _repeated(actual, along) and not _repeated(expected, along):
        return False
    wide = values.to(torch.float64) if values.is_floating_point() else values
    one, other = wide.gather(along, actual), wide.gather(along, expected)
    return bool(((one == other) | ((one != one) & (other != other))).all())


def _repeated(index: Tensor, axis: int) -> bool:
    ordered = index.sort(axis).values
    return bool((ordered.diff(dim=axis) == 0).any())
