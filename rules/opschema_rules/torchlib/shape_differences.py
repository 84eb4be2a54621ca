"""Results of a fake and a kernel, and their differences."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from opschema_cli.evaluation.execution.values import TensorValue

Kind: TypeAlias = Literal["rank", "size", "dtype"]
Results = tuple[object, ...]


class Difference(msgspec.Struct, frozen=True):
    """A result in which fake and kernel differ: its index, and the difference; ``dim`` is the dimension with another size."""

    index: int
    kind: Kind
    dim: int = -1

    @property
    def part(self) -> tuple[int, bool]:
        """The result, and whether it is the dtype that differs: ranks and sizes are one thing."""
        return self.index, self.kind == "dtype"


def results_of(value: object) -> Results | None:
    """Return the results of a call as a tuple; None if one of them is not known."""
    if value is None:
        return ()
    found = tuple(value) if isinstance(value, tuple | list) else (value,)
    return found if all(item is None or isinstance(item, TensorValue | int | float | bool) for item in found) else None


def differences(fake: Results, kernel: Results) -> list[Difference]:
    """The differences of the tensors among the results."""
    found = []
    for index, (left, right) in enumerate(zip(fake, kernel, strict=True)):
        if not isinstance(left, TensorValue) or not isinstance(right, TensorValue):
            continue
        if len(left.shape) != len(right.shape):
            found.append(Difference(index, "rank"))
        else:
            sizes = enumerate(zip(left.shape, right.shape, strict=True))
            found += [
                Difference(index, "size", dim)
                for dim, (one, other) in sizes
                if isinstance(one, int) and isinstance(other, int) and one != other
            ]
        empty = 0 in left.shape and 0 in right.shape  # it stands for a result that is not there
        if None not in (left.dtype, right.dtype) and left.dtype != right.dtype and not empty:
            found.append(Difference(index, "dtype"))
    return found


def size_at(results: Results, difference: Difference) -> object:
    """Return the size in which results differ; None if there is no such dimension."""
    tensor = results[difference.index]
    if not isinstance(tensor, TensorValue) or difference.dim >= len(tensor.shape):
        return None
    return tensor.shape[difference.dim]


def dtype_at(results: Results, difference: Difference) -> str | None:
    """The dtype of the result that differs."""
    tensor = results[difference.index]
    return tensor.dtype if isinstance(tensor, TensorValue) else None
