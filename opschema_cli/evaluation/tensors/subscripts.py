"""Shapes of subscripts of tensors: ints, slices, ``None``, ``...`` and tensors of indices."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

from opschema_cli.evaluation.execution.values import TensorValue
from opschema_cli.evaluation.tensors.sizes import OpenSizeError, RefusedError, Shape, broadcast, refuse


def subscripted(shape: Shape, index: object) -> Shape:
    """The shape of ``tensor[index]``.

    Raises:
        RefusedError: torch refuses the index.
        OpenSizeError: the shape is not known.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    if isinstance(index, list):
        items = [_vector(index)]
    items = [_vector(item) if isinstance(item, list) else item for item in items]
    taken = sum(item is not None and item is not ... and not isinstance(item, bool) for item in items)
    if any(isinstance(item, bool) for item in items):
        raise OpenSizeError("an index that is not known")
    if taken > len(shape):
        refuse("too many indices for tensor", "IndexError")
    items = _without_ellipsis(items, len(shape) - taken)
    return _result(shape, items)


def _vector(values: Sequence[object]) -> TensorValue:
    if not all(type(item) is int for item in values):
        raise OpenSizeError("an index that is not known")
    return TensorValue((len(values),), "int64")


def _without_ellipsis(items: Sequence[object], missing: int) -> list[object]:
    places = [place for place, item in enumerate(items) if isinstance(item, EllipsisType)]
    place = places[0] if places else len(items)
    rest = [item for item in items[place + 1 :] if item is not ...]
    return [*items[:place], *[slice(None)] * missing, *rest]


def _result(shape: Shape, items: Sequence[object]) -> Shape:
    found: list[int | None] = []
    indices: list[Shape] = []
    places: list[int] = []
    dim = 0
    for place, item in enumerate(items):
        if item is None:
            found.append(1)
            continue
        size = shape[dim]
        dim += 1
        if isinstance(item, slice):
            found.append(_sliced(size, item))
        elif isinstance(item, int):
            if not -size <= item < size:
                refuse(f"index {item} is out of bounds for dimension {dim - 1} with size {size}", "IndexError")
            places += [place] if indices else []
            indices += [()] if indices else []
        elif isinstance(item, TensorValue) and item.dtype in ("int64", "int32", "uint8", "int16", "int8"):
            if item.dtype == "uint8" or not all(isinstance(part, int) for part in item.shape):
                raise OpenSizeError("an index that is a mask")
            indices.append(item.shape)  # type: ignore[arg-type]
            places.append(place)
            found.append(None)
        else:
            raise OpenSizeError("an index that is not known")
    return _advanced(found, indices, places, items)


def _advanced(
    found: Sequence[int | None], indices: Sequence[Shape], places: Sequence[int], items: Sequence[object]
) -> Shape:
    if not indices:
        return tuple(size for size in found if size is not None)
    if any(isinstance(item, int) for item in items):
        raise OpenSizeError("an index of ints and tensors")
    picked = broadcast(indices)
    adjacent = list(places) == list(range(places[0], places[-1] + 1))
    first = found.index(None) if adjacent else 0
    before = [size for size in found[:first] if size is not None]
    after = [size for size in found[first:] if size is not None]
    return (*before, *picked, *after)


def _sliced(size: int, item: slice) -> int:
    bounds = (item.start, item.stop, item.step)
    if not all(bound is None or isinstance(bound, int) for bound in bounds):
        raise OpenSizeError("a slice whose bounds are not known")
    if item.step is not None and item.step <= 0:
        raise RefusedError("slice step must be positive", "ValueError")
    return len(range(*item.indices(size)))
