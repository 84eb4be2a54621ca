"""Random arguments for overloads of torch's functions: shapes that may fit together, and values that their parameters may take."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from math import prod

from opschema_cli.evaluation.execution.values import DtypeValue, TensorValue
from opschema_cli.evaluation.tensors.table import REQUIRED, Param

WORDS = ("none", "sum", "mean", "tanh", "floor", "trunc", "constant", "linear", "fro", "same", "valid")
_AXES = frozenset({"dim", "axis", "dim0", "dim1", "axis0", "axis1", "start_dim", "end_dim", "dim2", "dimension"})
_AXIS_LISTS = frozenset({"dim", "dims", "axis", "source", "destination"})

Arguments = dict[str, object]


class Sampler:
    """Random arguments for parameters; ``words`` are the strings that are passed."""

    def __init__(self, params: Sequence[Param], seed: str) -> None:
        self.params = params
        self.random = random.Random(seed)
        self.words: Sequence[str] = WORDS
        self._sizes = [1, 1, 1, 1]
        self._mode = ""

    def arguments(self, kinds: Sequence[str]) -> Arguments:
        """Random arguments; ``kinds`` are the dtypes of the tensors by the order of the parameters."""
        modes: tuple[str, ...] = ("same", "broadcast", "chain", "free", "prefix")
        names = {param.name for param in self.params}
        if "weight" in names:
            modes = (*modes, *["filter"] * 5)
        if names & {"mat", "mat1", "batch1"}:
            modes = (*modes, "product", "product")
        mode = self._mode = self.random.choice(modes)
        self._sizes = [self.random.choice((1, 2, 3, 4)) for _ in range(4)]
        shapes: list[tuple[int, ...]] = []
        found: Arguments = {}
        dtypes = iter(kinds)
        for param in self.params:
            if param.code in "TL":
                dtype = next(dtypes)
            if param.default is not REQUIRED and (param.code in "od" or self.random.random() < 0.4):
                continue
            if param.code == "T":
                if not (param.optional and self.random.random() < 0.3):
                    shapes.append(self._shape(mode, shapes))
                    found[param.name] = TensorValue(shapes[-1], dtype)
            elif param.code == "L":
                count = self.random.randint(1, 3)
                several = []
                for _ in range(count):
                    shapes.append(self._shape(mode, shapes))
                    several.append(TensorValue(shapes[-1], dtype))
                found[param.name] = several
            else:
                found[param.name] = self._value(param, shapes)
        return found if not _gap(self.params, found) else self.filled(found)

    def filled(self, found: Arguments) -> Arguments:
        """Arguments with the defaults of those that are left out before others."""
        return {
            param.name: found.get(param.name, param.default)
            for param in self.params
            if param.name in found or (param.default is not REQUIRED and not param.keyword_only)
        }

    def _shape(self, mode: str, before: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        pick = self.random
        if mode == "filter":
            return self._filter(before)
        if mode == "product":
            return self._product(before)
        if not before or mode == "free":
            small = pick.random() < 0.2
            return tuple(
                pick.choice((0, 1, 2) if small else (1, 2, 3, 4, 6))
                for _ in range(pick.choice((0, 1, 1, 2, 2, 3, 3, 4)))
            )
        last = before[0] if mode in ("same", "prefix") else before[-1]
        if mode == "same":
            changed = list(last)
            if changed and pick.random() < 0.3:
                changed[pick.randrange(len(changed))] = pick.choice((1, 2, 3))
            return tuple(changed)
        if mode == "prefix":
            return last[pick.randint(0, len(last)) :]
        if mode == "broadcast":
            found = tuple(1 if pick.random() < 0.4 else size for size in last)
            return found[pick.randint(0, len(found)) :] if pick.random() < 0.5 else found
        size = last[-1] if last else 2
        if len(last) == 3 and pick.random() < 0.7:
            return (last[0], size, pick.choice((1, 2, 5)))
        return pick.choice(((size,), (size, pick.choice((0, 1, 3, 5))), (pick.choice((2, 3)), size), (3, size, 2)))

    def _product(self, before: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """A tensor to which a product is added, and its factors."""
        names = {param.name for param in self.params}
        batch, rows, inner, columns = self._sizes
        front = (batch,) if "batch1" in names else ()
        if not before:
            result = (*front, rows, columns) if "mat" not in names else (rows,)
            return result[self.random.randint(0, 1) :] if self.random.random() < 0.4 else result
        if len(before) == 1:
            return (*front, rows, inner)
        return (*front, inner, columns) if "mat" not in names else (inner,)

    def _filter(self, before: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """An image, the weight of a convolution of it, and a bias."""
        pick = self.random
        if not before:
            return (2, 4, *(pick.choice((5, 6, 7)) for _ in range(pick.choice((1, 1, 2, 2, 3)))))[pick.random() < 0.2 :]
        if len(before) == 1 and len(before[0]) > 1:
            rest = tuple(pick.choice((1, 2, 3)) for _ in before[0][2:])
            return (pick.choice((2, 4)), before[0][1] // pick.choice((1, 1, 2)), *rest)
        return before[-1][:1]

    def _value(self, param: Param, shapes: Sequence[tuple[int, ...]]) -> object:
        pick = self.random
        shape = shapes[0] if shapes else ()
        if param.optional and pick.random() < 0.2:
            return None
        if param.code == "i":
            if param.name in _AXES:
                return pick.randint(-len(shape) - 1, len(shape))
            return 1 if self._mode == "filter" and pick.random() < 0.6 else pick.choice((0, 1, 1, 2, 2, 3, 4, -1, -2))
        if param.code in ("I", "I1"):
            return self._list(param, shape)
        match param.code:
            case "b":
                return pick.random() < 0.5
            case "n":
                return pick.choice((0, 1, 2, 3, 4, -1))
            case "f":
                return pick.choice((0.0, 0.5, 1.0, 0.1))
            case "s":
                return pick.choice(self.words)
            case "d":
                return DtypeValue("float32")
        return None

    def _list(self, param: Param, shape: tuple[int, ...]) -> object:
        pick = self.random
        if param.name in _AXIS_LISTS:
            places = [place - len(shape) * (pick.random() < 0.3) for place in range(len(shape))]
            pick.shuffle(places)
            found = places if pick.random() < 0.5 else places[: pick.randint(0, len(places))]
            found = [*found, pick.randint(-4, 4)] if pick.random() < 0.15 else found
            return found[0] if param.code == "I1" and found and pick.random() < 0.2 else found
        if param.name in ("size", "shape", "sizes", "normalized_shape"):
            return self._size(param, shape)
        if param.name in ("split_sizes", "split_size", "indices") and shape:
            size = pick.choice(shape)
            first = pick.randint(0, size)
            return [first, size - first]
        if param.name in ("repeats", "dims"):
            return [pick.choice((0, 1, 2, 3)) for _ in range(pick.randint(max(len(shape) - 1, 0), len(shape) + 1))]
        if self._mode == "filter" and pick.random() < 0.9:
            least = 0 if "padding" in param.name else 1
            return [pick.choice((least, least + 1)) for _ in shape[2:]]
        count = pick.choice((1, 2, 3, 4))
        found = [pick.choice((0, 1, 1, 2, 3)) for _ in range(count)]
        return found[0] if param.code == "I1" and pick.random() < 0.3 else found

    def _size(self, param: Param, shape: tuple[int, ...]) -> list[int]:
        pick = self.random
        if param.name == "normalized_shape":
            return list(shape[pick.randint(0, len(shape)) :]) if pick.random() < 0.8 else [2, 3]
        kind = pick.random()
        if param.name == "sizes" and shape:
            shape = (pick.choice(shape),)
        if kind < 0.5 and _has_tensor(self.params):
            rest, found = prod(shape), []
            while rest > 1 and len(found) < 3:
                factor = pick.choice([size for size in range(1, rest + 1) if rest % size == 0])
                found.append(factor)
                rest //= factor
            found.append(rest)
            if pick.random() < 0.5:
                found[pick.randrange(len(found))] = -1
            return found
        if kind < 0.8 and _has_tensor(self.params):
            grown = [pick.choice((2, 3)) if size == 1 else pick.choice((size, -1)) for size in shape]
            return [pick.choice((1, 2)) for _ in range(pick.choice((0, 0, 1)))] + grown
        return [pick.choice((0, 1, 2, 3, 5, -1 if pick.random() < 0.2 else 4)) for _ in range(pick.randint(0, 4))]

    def number(self) -> object:
        return self.random.choice((True, 2, 2, 3, 1.5, 0.5))


def _gap(params: Sequence[Param], found: Mapping[str, object]) -> bool:
    placed = [param.name in found for param in params if not param.keyword_only]
    return sorted(placed, reverse=True) != placed


def _has_tensor(params: Sequence[Param]) -> bool:
    return any(param.code in "TL" for param in params)
