"""Sizes and dimensions as torch counts them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import NoReturn, TypeAlias

Shape: TypeAlias = tuple[int, ...]


MAX_PARTS = 10_000
"""Maximum number of results of one call, for example of `split`."""


class RefusedError(Exception):
    """Torch rejects the arguments: the class of its exception, and the message."""

    def __init__(self, message: str, exception: str = "RuntimeError") -> None:
        super().__init__(message)
        self.exception = exception


class OpenSizeError(Exception):
    """The result has a size that depends on the elements, or is not computed here."""


def parts(count: int) -> int:
    """Return a number of results, if it is within the limit.

    Raises:
        OpenSizeError: they are too many.
    """
    if count > MAX_PARTS:
        raise OpenSizeError("a tensor in too many parts")
    return count


def refuse(message: str, exception: str = "RuntimeError") -> NoReturn:
    """Reject the arguments as torch does.

    Raises:
        RefusedError: always.
    """
    raise RefusedError(message, exception)


def require(holds: bool, message: str) -> None:
    """Reject the arguments unless a condition holds.

    Raises:
        RefusedError: it does not hold.
    """
    if not holds:
        refuse(message)


def axis(dim: int, rank: int) -> int:
    """A dimension counted from the front; a tensor without dimensions has 0 and -1.

    Raises:
        RefusedError: the tensor has no such dimension.
    """
    count = max(rank, 1)
    if not -count <= dim < count:
        message = f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})"
        refuse(message, "IndexError")
    return dim % count


def axes(dims: Iterable[int], rank: int) -> list[int]:
    """Distinct dimensions counted from the front.

    Raises:
        RefusedError: the tensor lacks one, or one is repeated.
    """
    found = [axis(dim, rank) for dim in dims]
    require(len(set(found)) == len(found), "a dimension appears multiple times in the list of dims")
    return found


def listed(value: int | Sequence[int]) -> tuple[int, ...]:
    """One size or several as a tuple."""
    return (value,) if isinstance(value, int) else tuple(value)


def repeated(value: int | Sequence[int], count: int) -> tuple[int, ...]:
    """Return sizes for ``count`` dimensions, from a single one for all of them or from one for each.

    Raises:
        RefusedError: there is another number of them.
    """
    found = listed(value)
    found = found * count if len(found) == 1 else found
    require(len(found) == count, f"expected {count} sizes")
    return found


def broadcast(shapes: Iterable[Shape]) -> Shape:
    """The shape that tensors of these shapes are broadcast to.

    Raises:
        RefusedError: they do not fit.
    """
    found: list[int] = []
    for shape in shapes:
        found = [1] * (len(shape) - len(found)) + found
        for place in range(-1, -len(shape) - 1, -1):
            if found[place] == 1:
                found[place] = shape[place]
            require(shape[place] in (1, found[place]), f"sizes {found[place]} and {shape[place]} do not broadcast")
    return tuple(found)


def fitted(shape: Shape, size: Sequence[int]) -> Shape:
    """A size for the elements of a shape, with its -1 filled in.

    Raises:
        RefusedError: the size has another number of elements.
    """
    count, known = prod(shape), prod(item for item in size if item != -1)
    require(all(item >= -1 for item in size), f"invalid shape dimension in {list(size)}")
    if -1 not in size:
        require(known == count, f"shape {list(size)} is invalid for input of size {count}")
        return tuple(size)
    require(size.count(-1) == 1, "only one dimension can be inferred")
    require(known > 0 and count % known == 0, f"shape {list(size)} is invalid for input of size {count}")
    return tuple(count // known if item == -1 else item for item in size)
