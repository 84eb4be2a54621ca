"""Random calls of torch's functions on tensors without elements, and which shape semantics and dtype rule explain them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import torch

from benchmarks.torch_samples import WORDS, Arguments, Sampler
from benchmarks.torch_signatures import Candidate
from opschema_cli.evaluation.execution.values import DtypeValue, TensorValue
from opschema_cli.evaluation.tensors.calls import Bound, base_dtype, bind, shapes_of
from opschema_cli.evaluation.tensors.semantics import semantics
from opschema_cli.evaluation.tensors.sizes import OpenSizeError, RefusedError
from opschema_cli.evaluation.tensors.table import parsed_signature

DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16"),
    *("float32", "float64", "complex32", "complex64", "complex128", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"),
)
CALLS = 300
"""Random calls of one overload for its shapes."""
MOST_CALLS = 1500
"""As many where torch takes few of them."""
ENOUGH = 60
LEAST = 12
"""Fewest of them that torch has to take."""
MIXED = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")
"""Dtypes that are promoted with one another."""
RULES = (
    "equal",
    "first",
    "tensors",
    "all",
    "first-number",
    "others",
    "others-all",
    "last",
    "value",
    "numbers",
    "default",
)


class Fit(NamedTuple):
    """The explanation of an overload: its semantics, its dtype rule and a dtype map for each result."""

    shape: str
    dtype: str
    maps: tuple[str, ...]


class Answer(NamedTuple):
    """The result of one call: the shape and dtype of each tensor, whether it is a list, and whether the input changed shape."""

    tensors: tuple[tuple[tuple[int, ...], str], ...]
    several: bool


class ChangedShapeError(Exception):
    """A function changes the shape of a tensor that it is given."""


class Prober:
    """Probes of one overload."""

    def __init__(self, candidate: Candidate, seed: int = 0) -> None:
        self.candidate = candidate
        self.params = parsed_signature(candidate.signature)
        self.sampler = Sampler(self.params, f"{seed} {candidate.operator} {candidate.signature}")
        self.log = ""

    # Calls

    def answer(self, arguments: Arguments) -> Answer | None:
        """The answer of torch, None if it refuses: for tensors with elements, which it checks most, else from a meta function.

        Raises:
            NotImplementedError: torch does not know without elements, or the result is not made of tensors.
        """
        try:
            return self._answer(arguments, "cpu")
        except NotImplementedError:
            return self._answer(arguments, "meta")

    def _answer(self, arguments: Arguments, device: str) -> Answer | None:
        made = {name: _real(value, device) for name, value in arguments.items()}
        if any(param.name == "device" for param in self.params) and not _tensors(made):
            made["device"] = device
        placed = [made[param.name] for param in self.params if not param.keyword_only and param.name in made]
        words = {param.name: made[param.name] for param in self.params if param.keyword_only and param.name in made}
        if "device" in made and "device" not in words:
            words["device"] = made["device"]
            placed = [value for value in placed if value is not made["device"]]
        before = [tuple(tensor.shape) for tensor in _tensors(made)]
        try:
            found = self.candidate.function(*placed, **words)
        except NotImplementedError:
            raise
        except Exception as error:  # torch raises many kinds
            if "not implemented" in str(error) or "meta" in str(error):
                raise NotImplementedError from error
            return None
        if [tuple(tensor.shape) for tensor in _tensors(made)] != before:
            raise ChangedShapeError
        several = isinstance(found, list | tuple)
        parts = list(found) if several else [found]  # type: ignore[call-overload]
        if not all(isinstance(part, torch.Tensor) for part in parts):
            raise NotImplementedError
        return Answer(tuple((tuple(part.shape), str(part.dtype).removeprefix("torch.")) for part in parts), several)

    def fit(self) -> Fit | None:
        """The explanation of the overload; None if there is none."""
        try:
            return self._fit()
        except ChangedShapeError:
            self.log = "changes a shape"
            return None

    def _fit(self) -> Fit | None:
        kinds = self._kinds()
        if kinds is None:
            self.log = "never taken"
            return None
        self.sampler.words = self._words(kinds)
        observed = []
        enough = 0
        for count in range(MOST_CALLS):
            if count >= CALLS and enough >= ENOUGH:
                break
            arguments = self.sampler.arguments(kinds)
            bound = self._bound(arguments)
            with suppress(NotImplementedError):
                if bound is not None:
                    observed.append((arguments, bound, self.answer(arguments)))
                    enough += observed[-1][2] is not None
        taken = [item for item in observed if item[2] is not None]
        if len(taken) < LEAST:
            self.log = f"{len(taken)} taken"
            return None
        shape = self._semantics([(bound, answer) for _, bound, answer in observed])
        return self._dtypes(shape, kinds, [arguments for arguments, _, _ in taken]) if shape is not None else None

    def _words(self, kinds: Sequence[str]) -> Sequence[str]:
        """The strings that torch takes."""
        if not any(param.code == "s" for param in self.params):
            return WORDS
        taken = []
        for word in WORDS:
            self.sampler.words = (word,)
            tries = [item for item in (self.sampler.arguments(kinds) for _ in range(60)) if word in item.values()]
            if any(self.answer(item) is not None for item in tries[:25]):
                taken.append(word)
        return taken or WORDS

    def _bound(self, arguments: Arguments) -> Bound | None:
        placed = [param for param in self.params if not param.keyword_only and param.name in arguments]
        words = {
            param.name: arguments[param.name] for param in self.params if param.keyword_only and param.name in arguments
        }
        return bind(self.params, [arguments[param.name] for param in placed], words)

    def _kinds(self) -> list[str] | None:
        """Dtypes of the tensors that torch takes."""
        count = sum(param.code in "TL" for param in self.params)
        tries = [["float32"] * count]
        if count > 1:
            singles = [(index, other) for index in range(count) for other in ("int64", "bool")]
            tries += [["float32"] * index + [other] + ["float32"] * (count - index - 1) for index, other in singles]
        tries += [["int64"] * count, ["bool"] * count]
        best: tuple[int, list[str]] | None = None
        for kinds in tries:
            taken = strange = 0
            for _ in range(150):
                try:
                    taken += self.answer(self.sampler.arguments(kinds)) is not None
                except NotImplementedError:
                    strange += 1
                    if strange > 20 > taken:
                        break
            if taken >= 3 and (best is None or taken > 3 * best[0]):
                best = (taken, kinds)
        return best[1] if best else None

    def _semantics(self, observed: Sequence[tuple[Bound, Answer | None]]) -> str | None:
        names = frozenset(param.name for param in self.params)
        nearest, possible = (0, "none"), []
        for name, item in semantics().items():
            if item.reads(names) is not None:
                right, loose = _compare(name, observed)
                if right == len(observed) and loose == 0:
                    return name
                possible += [name] if right == len(observed) else []
                nearest = max(nearest, (right, name))
        taken = [bound for bound, answer in observed if answer is not None]
        self.log = f"{nearest[1]} explains {nearest[0]} of {len(observed)}, {len(taken)} taken"
        various = {str(bound.values) for bound in taken}
        # torch refuses more than the semantics: the simplest one explains what it takes
        return possible[0] if possible and min(len(various) * 2, len(taken)) >= 3 * LEAST else None

    # Dtypes

    def _dtypes(self, shape: str, kinds: Sequence[str], calls: Sequence[Arguments]) -> Fit | None:
        main = "float32" if "float32" in kinds else kinds[0] if kinds else ""
        listed = any(
            param.code == "L" for param in self.params
        )  # tensors in lists are joined, where scalars get dimensions
        full = [
            item
            for item in calls
            if not any(0 in tensor.shape or (listed and not tensor.shape) for tensor in self._metadata(item))
        ]
        calls = full if len(full) >= LEAST else calls  # torch checks the dtypes of empty tensors less
        observed: list[tuple[Bound, Answer]] = []
        mixed = False
        for step in range(len(DTYPES) * 4 + 120):
            arguments = self.sampler.random.choice(list(calls))
            single = DTYPES[step % len(DTYPES)] if step < len(DTYPES) * 4 else None
            changed = {name: self._retyped(value, main, single) for name, value in arguments.items()}
            changed = {
                param.name: self.sampler.number()
                if param.code == "n" and param.name in changed and single is None
                else changed[param.name]
                for param in self.params
                if param.name in changed
            }
            dtype = next((param for param in self.params if param.code == "d"), None)
            if dtype is not None and self.sampler.random.random() < 0.3:
                changed[dtype.name] = DtypeValue(self.sampler.random.choice(MIXED))
                changed = self.sampler.filled(changed)
            bound = self._bound(changed)
            found = self._dtype_answer(changed, single is not None) if bound is not None else None
            mixed |= bound is not None and len({tensor.dtype for tensor in bound.tensors}) > 1
            if bound is not None and found is not None:
                observed.append((bound, found))
        for rule in RULES if mixed else RULES[1:]:
            maps = _maps(rule, observed)
            if maps is not None:
                return Fit(shape, rule, maps)
        self.log = f"{shape} fits, no dtype rule does"
        return None

    def _metadata(self, arguments: Arguments) -> list[TensorValue]:
        bound = self._bound(arguments)
        return bound.tensors if bound is not None else []

    def _dtype_answer(self, arguments: Arguments, single: bool) -> Answer | None:
        """The answer for dtypes; a meta function checks those of several tensors less strictly, and is asked for one only."""
        for device in ("cpu", "meta") if single else ("cpu",):
            try:
                found = self._answer(arguments, device)
            except NotImplementedError:
                continue
            if found is not None:
                return found
        return None

    def _retyped(self, value: object, main: str, single: str | None) -> object:
        if isinstance(value, TensorValue) and value.dtype == main:
            return TensorValue(value.shape, single or self.sampler.random.choice(MIXED))
        if isinstance(value, list) and any(isinstance(item, TensorValue) for item in value):
            return [self._retyped(item, main, single) for item in value]
        return value


def _compare(name: str, observed: Sequence[tuple[Bound, Answer | None]]) -> tuple[int, int]:
    """How many calls a semantics explains up to the first that it does not, and how many of them torch refuses alone."""
    loose = compared = 0
    for index, (bound, answer) in enumerate(observed):
        try:
            found = shapes_of(name, bound)
        except OpenSizeError:
            continue
        except RefusedError:
            found = None
        except (TypeError, IndexError, ValueError, ZeroDivisionError, AttributeError):
            return index, loose
        if answer is None:
            loose += found is not None
        elif found is None or not _agrees(found, answer):
            return index, loose
        compared += answer is not None
    return (len(observed) if compared >= LEAST else 0), loose


def _agrees(found: object, answer: Answer) -> bool:
    shapes = [shape for shape, _ in answer.tensors]
    if isinstance(found, list):
        return answer.several and found == shapes
    return bool(shapes) and all(shape == found for shape in shapes)


def _maps(rule: str, observed: Sequence[tuple[Bound, Answer]]) -> tuple[str, ...] | None:
    """A map for each result under a rule; None if the rule does not explain the dtypes."""
    counts = {len(answer.tensors) for _, answer in observed}
    if not counts or not all(_applies(rule, bound.tensors) for bound, _ in observed):
        return None
    found: list[dict[str, str]] = [{} for _ in range(1 if len(counts) > 1 else counts.pop())]
    if not all(_add(found, rule, bound, answer) for bound, answer in observed):
        return None
    if not all(item and set(item.values()) <= set(DTYPES) for item in found):
        return None
    return tuple("".join(_letter(item.get(dtype)) for dtype in DTYPES) for item in found)


def _applies(rule: str, tensors: Sequence[TensorValue]) -> bool:
    if rule == "equal":
        return len(tensors) > 0 and len({tensor.dtype for tensor in tensors}) == 1
    return len(tensors) >= {"first": 1, "last": 1, "tensors": 1, "others": 2}.get(rule, 0)


def _add(found: Sequence[dict[str, str]], rule: str, bound: Bound, answer: Answer) -> bool:
    """Add what a call shows to the maps of its results; false if they say otherwise."""
    base = base_dtype(rule, bound.tensors, bound.numbers)
    for index, (_, dtype) in enumerate(answer.tensors):
        given = bound.dtype if index == 0 else None
        if isinstance(given, DtypeValue):
            if given.name != dtype:
                return False
        elif base is not None and found[min(index, len(found) - 1)].setdefault(base, dtype) != dtype:
            return False
    return True


def _letter(dtype: str | None) -> str:
    return "-" if dtype is None else chr(ord("A") + DTYPES.index(dtype))


def _tensors(arguments: Mapping[str, object]) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for value in arguments.values():
        found += [
            item for item in (value if isinstance(value, list | tuple) else [value]) if isinstance(item, torch.Tensor)
        ]
    return found


def _real(value: object, device: str) -> object:
    """A value of the table's types as torch has it."""
    if isinstance(value, TensorValue):
        dtype = getattr(torch, value.dtype or "")
        return (
            torch.empty(value.shape, dtype=dtype, device=device)
            if device == "meta"
            else torch.zeros(value.shape, dtype=dtype)
        )
    if isinstance(value, list):
        return [_real(item, device) for item in value]
    return getattr(torch, value.name) if isinstance(value, DtypeValue) else value
