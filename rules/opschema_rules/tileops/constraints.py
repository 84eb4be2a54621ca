"""Applies the ``constraints`` of a tensor to its sizes in a bound row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import msgspec

from opschema_cli.schema.evaluate import EvaluateError, Tensor, evaluate
from opschema_cli.schema.expression import Expression
from opschema_cli.source.yaml import Node
from opschema_rules.tileops.bindings import BoundRow
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.signature import parsed, statement


class Exclusion(msgspec.Struct, frozen=True):
    """A size that the constraint at ``node`` excludes."""

    tensor: str
    dimension: str
    size: int
    node: Node


def excluded_sizes(entry: OpEntry, bound: BoundRow) -> Iterator[Exclusion]:
    """Yield the sizes of a row that constraints exclude; dimensions of open size are skipped."""
    for tensor in entry.tensors:
        owner = tensor.attribute("constraints")
        for key, node in entry.file.document.follow(owner).pairs() if owner is not None else ():
            allowed = entry.data_of(node)
            size = _size(entry, bound, tensor.name, key.value) if isinstance(allowed, str | int) else None
            if size is not None and not _allows(str(allowed), size, bound):
                yield Exclusion(tensor.name, key.value, size, node)


def _size(entry: OpEntry, bound: BoundRow, tensor: str, dimension: str) -> int | None:
    """Return the size of a dimension in a row; None if it is open or the tensor is omitted."""
    declaration = statement(entry).declarations.get(tensor)
    dimensions = (declaration.dimensions if declaration is not None else None) or ()
    value = bound.values.get(tensor)
    for index, item in enumerate(dimensions):
        if item.text == dimension and isinstance(value, Tensor):
            if value.shape is None:
                return _number(item.expression, bound) if item.expression is not None else None
            return value.shape[index] if len(value.shape) == len(dimensions) else None
    return None


def _number(expression: Expression, bound: BoundRow) -> int | None:
    try:
        value = evaluate(expression, bound.values)
    except EvaluateError:
        return None
    return value if type(value) is int else None


_PREDICATES: Mapping[str, Callable[[int], bool]] = {
    "power_of_2": lambda size: size > 0 and size & (size - 1) == 0,
    "even": lambda size: size % 2 == 0,
    "positive": lambda size: size > 0,
}
_FORMULAS = {"power_of_2": "{0} > 0 and {0} & ({0} - 1) == 0", "even": "{} % 2 == 0", "positive": "{} > 0"}
_DIVISIBLE = re.compile(r"divisible_by\(\s*(\w+)\s*\)")
_SIZES = re.compile(r"\d{1,18}(\s*\|\s*\d{1,18})*", re.ASCII)


def size_rule(size: str, constraint: str) -> str:
    """Return a constraint of a size as a shape rule; itself, after the name of the size, if it is not understood."""
    text = constraint.strip()
    if text in _FORMULAS:
        return _FORMULAS[text].format(size)
    if _SIZES.fullmatch(text):
        return f"{size} in ({', '.join(part.strip() for part in text.split('|'))},)"
    divisible = _DIVISIBLE.fullmatch(text)
    return f"{size} % {divisible[1]} == 0" if divisible is not None else f"{size}: {text}"


def _allows(constraint: str, size: int, bound: BoundRow) -> bool:
    """Whether a constraint allows a size; one that is not understood or reads an open name allows all."""
    text = constraint.strip()
    if text in _PREDICATES:
        return _PREDICATES[text](size)
    if _SIZES.fullmatch(text):
        return size in map(int, text.split("|"))
    divisible = _DIVISIBLE.fullmatch(text)
    expression = parsed(divisible[1]) if divisible is not None else None
    divisor = _number(expression, bound) if expression is not None else None
    return not divisor or size % divisor == 0
