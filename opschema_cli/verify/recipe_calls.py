"""The calls that a recipe lists, as the harness has them, and calls as the text of a recipe."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.verify.model import Call, Input
from opschema_cli.verify.recipes import Recipe

_PLAIN = (bool, int, float, str)


def recipe_calls(recipe: Recipe, op: str) -> dict[str, Call]:
    """The calls of a recipe, by their labels.

    Raises:
        OpschemaError: an argument is neither a tensor nor plain data.
    """
    return {label: _call(arguments, f"the recipe of {op}, call `{label}`") for label, arguments in recipe.calls.items()}


def _call(arguments: Mapping[str, object], where: str) -> Call:
    inputs: list[Input] = []
    lists: dict[str, tuple[str, ...]] = {}
    params: dict[str, object] = {}
    for name, value in arguments.items():
        if isinstance(value, Input):
            inputs.append(msgspec.structs.replace(value, name=name))
        elif isinstance(value, list | tuple) and value and all(isinstance(item, Input) for item in value):
            lists[name] = tuple(f"{name}.{place}" for place in range(len(value)))
            inputs += map(_named, value, lists[name])
        else:
            params[name] = _plain(value, f"{where}, `{name}`")
    return Call(inputs=tuple(inputs), params=params, lists=lists)


def _named(value: Input, name: str) -> Input:
    return msgspec.structs.replace(value, name=name)


def _plain(value: object, where: str) -> object:
    """A value that can be sent to other processes; a dtype of torch becomes its name.

    Raises:
        OpschemaError: it cannot.
    """
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, where) for item in value]
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return str(value)
    if type(value).__name__ in ("Tensor", "Parameter"):
        raise OpschemaError(
            f'{where}: write a tensor as its shape, `tensor(2, 3, dtype="float32")`; its values are drawn'
        )
    raise OpschemaError(f"{where}: {type(value).__name__} is neither a tensor nor a number, text, list or None")


def call_text(call: Call, order: Sequence[str] = ()) -> str:
    """A call as an entry of ``calls``, with the arguments in the ``order`` of the schema."""
    places = {name: place for place, name in enumerate(order)}
    found = sorted(_arguments(call), key=lambda item: places.get(item[0], len(places)))
    return "{" + ", ".join(f'"{name}": {value}' for name, value in found) + "}"


def _arguments(call: Call) -> Iterator[tuple[str, str]]:
    owners = {name: owner for owner, names in call.lists.items() for name in names}
    by_name = {item.name: _tensor(item) for item in call.inputs}
    done: set[str] = set()
    for name, text in by_name.items():
        owner = owners.get(name)
        if owner is None:
            yield name, text
        elif owner not in done:
            done.add(owner)
            yield owner, f"[{', '.join(by_name[item] for item in call.lists[owner])}]"
    yield from ((name, literal(value)) for name, value in call.params.items())


def _tensor(item: Input) -> str:
    parts = [str(size) for size in item.shape]
    parts += [f'dtype="{item.dtype}"'] if item.dtype != "float32" else []
    parts += [f"{name}={value:g}" for name, value in (("low", item.low), ("high", item.high)) if value is not None]
    parts += ["ascending=True"] if item.ascending else []
    return f"tensor({', '.join(parts)})"


def literal(value: object) -> str:
    """Plain data as Python writes it."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, value))}]"
    return repr(value) if not isinstance(value, float) or math.isfinite(value) else f'float("{value}")'
