"""Writes the table of results: which functions of torch make a tensor, give a view, or write no element in place.

python -m benchmarks.torch_results           # writes opschema_cli/evaluation/tensors/results.json
"""

from __future__ import annotations

import json
import os
import random
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import torch

from benchmarks.torch_samples import Arguments, Sampler
from benchmarks.torch_signatures import SPACES, functions, methods, signature_of_schema
from opschema_cli.evaluation.execution.values import DtypeValue, TensorValue
from opschema_cli.evaluation.tensors.results import TABLE, Results
from opschema_cli.evaluation.tensors.table import parsed_signature

CALLS = 200
"""Random calls of one overload."""
LEAST = 8
"""Fewest of them that torch has to take."""
_SKIPPED = frozenset({"map_", "map2_", "apply_", "from_file", "to_sparse"})
"""Functions that random arguments would make unsafe."""
_DEVICES = frozenset({"cpu", "cuda", "to", "pin_memory"})
"""Methods whose results depend on the device."""
_FIXED: dict[str, Callable[[torch.Tensor], object]] = {
    "resize_": lambda tensor: tensor.resize_(1),
    "resize_as_": lambda tensor: tensor.resize_as_(torch.ones(1)),
    "set_": lambda tensor: tensor.set_(torch.ones(1)),
    "as_strided": lambda tensor: tensor.as_strided((2,), (1,)),
    "reshape_as": lambda tensor: tensor.t().reshape_as(torch.ones(6)),
    "share_memory_": lambda tensor: tensor.share_memory_(),
}
"""Calls that random arguments do not give, or of methods without a schema."""

FIELDS = ("methods", "fresh", "views", "unwritten", "reshaping")
"""Fields of the table that name methods."""

Schemas = dict[str, list[torch._C.FunctionSchema]]


class _Call(NamedTuple):
    function: Callable[..., object]
    arguments: Arguments
    keyword_only: frozenset[str]
    in_place: bool = False


class Seen(msgspec.Struct):
    """Outcomes of the calls of one name: whether results share the first tensor's storage, and what was done to it; ``strided`` are
    those with tensors that are not contiguous.
    """

    taken: int = 0
    shared: int = 0
    wrote: int = 0
    reshaped: int = 0
    strided: int = 0


def schemas() -> Schemas:
    """The overloads without ``out`` of each operator."""
    found: Schemas = {}
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::") and not any(item.is_out for item in schema.arguments):
            found.setdefault(schema.name.removeprefix("aten::"), []).append(schema)
    return found


def returns_one(overloads: Iterable[torch._C.FunctionSchema]) -> bool:
    """Whether each overload returns one tensor, of those that take or make tensors."""
    returns = [[str(item.type) for item in overload.returns] for overload in overloads if "Tensor" in str(overload)]
    return bool(returns) and all(item == ["Tensor"] for item in returns)


def is_fresh(overloads: Iterable[torch._C.FunctionSchema]) -> bool:
    """Whether no overload returns what it is passed, or a view of it."""
    return not any(item.alias_info is not None for overload in overloads for item in overload.returns)


def observe(function: Callable[..., object], signature: str, seen: Seen, seed: str) -> None:
    """Call an overload with random arguments."""
    params = parsed_signature(signature)
    keyword_only = frozenset(param.name for param in params if param.keyword_only)
    in_place = seed.partition(" ")[0].endswith("_")
    for kind in ("float32", "int64", "complex64"):
        sampler, chance = Sampler(params, f"{seed} {kind}"), random.Random(seed)
        kinds = [kind] * sum(param.code in "TL" for param in params)
        for _ in range(CALLS):
            _call(_Call(function, sampler.arguments(kinds), keyword_only, in_place), seen, chance)


def _call(call: _Call, seen: Seen, chance: random.Random) -> None:
    made = {name: _tensor(value, chance, turned=not call.in_place) for name, value in call.arguments.items()}
    first = next((item for item in made.values() if isinstance(item, torch.Tensor)), None)
    if first is None or not first.numel():
        return
    elements, shape = torch.empty(0, dtype=torch.uint8).set_(first.untyped_storage()), tuple(first.shape)
    before, strided = elements.clone(), not first.is_contiguous()
    words = {name: value for name, value in made.items() if name in call.keyword_only}
    try:
        found = call.function(*[value for name, value in made.items() if name not in words], **words)
    except Exception:  # torch raises many kinds
        return
    parts = [item for item in (found if isinstance(found, tuple | list) else [found]) if isinstance(item, torch.Tensor)]
    if any(item.numel() for item in parts):
        seen.taken += 1
        seen.strided += strided
        seen.shared += any(item.untyped_storage().data_ptr() == first.untyped_storage().data_ptr() for item in parts)
        seen.wrote += not torch.equal(elements, before)
        seen.reshaped += tuple(first.shape) != shape


def _tensor(value: object, chance: random.Random, *, turned: bool) -> object:
    """A value of the table's types, of tensors with random elements and strides of any kind.

    With ``turned`` some are conjugate or negative views, which functions in place write for their own ends.
    """
    if isinstance(value, list):
        return [_tensor(item, chance, turned=turned) for item in value]
    if isinstance(value, DtypeValue):
        return getattr(torch, value.name)
    if not isinstance(value, TensorValue):
        return value
    made = (
        torch.randn(*value.shape[::-1], chance.choice((1, 1, 2))).mul(9).to(getattr(torch, value.dtype or ""))[..., 0]
    )
    if made.is_floating_point():
        made[torch.rand(made.shape) < 0.1] = float("nan")
    found = made.permute(tuple(range(len(value.shape)))[::-1])
    found = found if chance.random() < 0.5 else found.contiguous()
    found = found.conj() if turned and chance.random() < 0.3 else found
    return torch._neg_view(found) if turned and chance.random() < 0.2 and made.dtype != torch.bool else found


def observed(name: str, function: Callable[..., object], overloads: Iterable[torch._C.FunctionSchema]) -> Seen:
    """Calls of a function, in a process of its own: some arguments end the process."""
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        with open(reader, "rb") as file:
            text = file.read()
        os.waitpid(process, 0)
        return msgspec.json.decode(text, type=Seen) if text else Seen()
    seen = Seen()
    torch.manual_seed(0)
    try:
        for overload in overloads:
            signature = signature_of_schema(overload)
            if signature is not None:
                observe(function, signature, seen, f"{name} {signature}")
        if name in _FIXED:
            chance = random.Random(name)
            for _ in range(4 * LEAST):
                _call(_Call(_FIXED[name], {"input": TensorValue((2, 3), "float32")}, frozenset(), True), seen, chance)
        with open(writer, "wb") as file:
            file.write(msgspec.json.encode(seen))
    finally:
        os._exit(0)


def metadata() -> Iterator[str]:
    """Attributes, and methods without arguments, that a tensor without elements answers, with something else than a tensor."""
    tensors = torch.empty(2, 3, device="meta"), torch.zeros(2, 3), torch.ones(2, 3)
    for name in dir(torch.Tensor):
        if not name.startswith("_") and name not in ("grad_fn", "volatile", "names"):
            first, *others = (_plain(tensor, name) for tensor in tensors)
            if first is not None and others[0] == others[1] and not _converts(tensors[1], name):
                yield name


def _converts(tensor: torch.Tensor, name: str) -> bool:
    """Whether a method makes a tensor of another dtype, as ``type`` does."""
    try:
        return isinstance(getattr(tensor, name)(torch.float64), torch.Tensor)
    except Exception:  # torch raises many kinds
        return False


def _plain(tensor: torch.Tensor, name: str) -> object:
    """The value of an attribute, or of a call without arguments; None of tensors and errors."""
    try:
        value = getattr(tensor, name)
        value = value() if callable(value) else value
    except Exception:  # torch raises many kinds
        return None
    of_tensors = isinstance(value, tuple) and any(isinstance(item, torch.Tensor) for item in value)
    plain = isinstance(value, bool | int | str | torch.dtype | torch.device | torch.layout | tuple)
    return value if plain and not of_tensors else None


def judged(name: str, overloads: Sequence[torch._C.FunctionSchema]) -> set[str]:
    """The fields of the table that name a method with these overloads."""
    seen = observed(name, getattr(torch.Tensor, name), overloads)
    one, in_place, enough = returns_one(overloads), name.endswith("_"), seen.taken >= LEAST
    shares = _are_aliases(overloads) and seen.shared == seen.taken and seen.strided >= LEAST and name not in _DEVICES
    found = {
        "methods": one,
        "fresh": enough and not seen.shared and is_fresh(overloads),
        "views": one and not in_place and enough and shares,
        "unwritten": in_place and enough and not seen.wrote,
        "reshaping": in_place and enough and bool(seen.reshaped),
    }
    return {field for field, holds in found.items() if holds}


def results() -> Results:
    """The table."""
    known = schemas()
    spaces = {full: SPACES[full.rpartition(".")[0]] for full in functions()}
    of_methods = {name: [item for item in known.get(name, ()) if is_method(item)] for name in methods()}
    probed = {name: items for name, items in of_methods.items() if (items or name in _FIXED) and name not in _SKIPPED}
    fields = {name: judged(name, items) for name, items in probed.items()}
    made = [full for full, operator in functions().items() if _returns_one(spaces[full], full, known.get(operator, []))]
    return Results(
        torch=torch.__version__.partition("+")[0],
        functions=_words([*made, *(name for name, call in _VALUES.items() if isinstance(call(), torch.Tensor))]),
        metadata=_words(metadata()),
        **{field: _words(name for name, held in fields.items() if field in held) for field in FIELDS},
    )


_VALUES: dict[str, Callable[[], object]] = {
    "tensor": lambda: torch.tensor([1]),
    "as_tensor": lambda: torch.as_tensor([1]),
}
"""Calls of functions without a schema."""


def is_method(overload: torch._C.FunctionSchema) -> bool:
    """Whether an overload takes a tensor first."""
    return bool(overload.arguments) and str(overload.arguments[0].type) == "Tensor"


def _are_aliases(overloads: Iterable[torch._C.FunctionSchema]) -> bool:
    return all(item.alias_info is not None for overload in overloads for item in overload.returns)


def _returns_one(module: types.ModuleType, full: str, overloads: list[torch._C.FunctionSchema]) -> bool:
    function = getattr(module, full.rpartition(".")[2])
    if isinstance(function, types.FunctionType):
        return function.__annotations__.get("return") in (torch.Tensor, "Tensor")
    return returns_one(overloads)


def _words(names: Iterable[str]) -> str:
    return " ".join(sorted(set(names)))


def main() -> None:
    """Write the table."""
    torch.set_num_threads(1)
    TABLE.write_text(json.dumps(msgspec.to_builtins(results()), indent=0) + "\n")


if __name__ == "__main__":
    main()
