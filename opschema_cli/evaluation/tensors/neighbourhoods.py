"""Shapes of convolutions and padding."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.evaluation.tensors.sizes import Shape, listed, repeated, require

Sizes = int | Sequence[int]


def convolved_line(
    tensors: Sequence[Shape], *, stride: Sizes, padding: Sizes | str, dilation: Sizes, groups: int
) -> Shape:
    """``[N, C, L]`` or ``[C, L]`` with a weight ``[O, C / groups, K]``."""
    return _convolved(tensors, (stride, padding, dilation), groups, 1)


def convolved_plane(
    tensors: Sequence[Shape], *, stride: Sizes, padding: Sizes | str, dilation: Sizes, groups: int
) -> Shape:
    """The same in two dimensions."""
    return _convolved(tensors, (stride, padding, dilation), groups, 2)


def convolved_volume(
    tensors: Sequence[Shape], *, stride: Sizes, padding: Sizes | str, dilation: Sizes, groups: int
) -> Shape:
    """The same in three dimensions."""
    return _convolved(tensors, (stride, padding, dilation), groups, 3)


def _convolved(tensors: Sequence[Shape], steps: tuple[Sizes, Sizes | str, Sizes], groups: int, rank: int) -> Shape:
    shape, weight, stride, dilation = tensors[0], tensors[1], repeated(steps[0], rank), repeated(steps[2], rank)
    require(
        len(weight) == rank + 2 and len(shape) in (rank + 1, rank + 2), f"expected {rank + 1}D or {rank + 2}D input"
    )
    channels, sizes, kernel = shape[-rank - 1], shape[-rank:], weight[2:]
    require(groups > 0 and channels == weight[1] * groups and weight[0] % groups == 0, "channels do not match")
    require(len(tensors) < 3 or tensors[2] == weight[:1], "the bias does not fit the weight")
    require(min(*stride, *dilation, *weight) > 0, "invalid stride, dilation or weight")
    if steps[1] == "same":
        require(set(stride) == {1}, "padding='same' is not supported for strided convolutions")
        return (*shape[: -rank - 1], weight[0], *sizes)
    padding = repeated(0 if isinstance(steps[1], str) else steps[1], rank)
    spans = [
        size + 2 * pad - gap * (width - 1)
        for size, width, pad, gap in zip(sizes, kernel, padding, dilation, strict=True)
    ]
    require(min(padding) >= 0 and min(spans) > 0, "the kernel is larger than the padded input")
    found = ((span - 1) // step + 1 for span, step in zip(spans, stride, strict=True))
    return (*shape[: -rank - 1], weight[0], *found)


def padded(tensors: Sequence[Shape], *, pad: Sequence[int]) -> Shape:
    """The shape with elements added before and behind, from the last dimension on."""
    shape, pads = list(tensors[0]), listed(pad)
    require(len(pads) % 2 == 0 and len(pads) <= 2 * len(shape), "padding length")
    for index in range(len(pads) // 2):
        shape[-index - 1] += pads[2 * index] + pads[2 * index + 1]
        require(shape[-index - 1] >= 0, "the padding makes a size negative")
    return tuple(shape)
