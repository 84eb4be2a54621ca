"""Differences between the declarations of an op in both trees: both sides are called as the tree after says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from opschema_cli.schema.schema_changes import described, schema_changes
from opschema_cli.schema.schema_string import parse_schema
from opschema_cli.verify.model import Plan

_Key = TypeVar("_Key")


def redeclared(plan: Plan, earlier: Plan) -> Iterator[str]:
    """Yield the differences between both declarations of an op: its schema, defaults of params, dtypes, the reference."""
    yield from _schema_changes(plan.schema, earlier.schema)
    for name, now, then in _changes(_defaults(plan), _defaults(earlier)):
        yield f"the default of `{name}` is {now}, before {then}"
    for (name, dtype), now, then in _changes(_dtypes(plan), _dtypes(earlier)):
        yield f"`{name}` is {now} in rows of {dtype}, before {then}"
    if plan.cells and earlier.cells and plan.reference != earlier.reference:
        yield f"the reference is {plan.reference or 'none of torch'}, before {earlier.reference or 'none of torch'}"


def other_recipes(plan: Plan, earlier: Plan) -> bool:
    """Whether both trees have recipes, and they differ."""
    files = [Path(one.target.recipe) for one in (plan, earlier) if one.target.recipe]
    texts = [file.read_bytes() for file in files if file.is_file()]
    return len(texts) == 2 and texts[0] != texts[1]


def _schema_changes(now: str, then: str) -> Iterator[str]:
    """Yield the changes of a schema in words, if both are known."""
    new, old = (parse_schema(text).schema if text else None for text in (now, then))
    if new is not None and old is not None:
        yield from (described(change, old, new) for change in schema_changes(old, new))


def _changes(now: Mapping[_Key, str], then: Mapping[_Key, str]) -> Iterator[tuple[_Key, str, str]]:
    yield from ((key, now[key], then[key]) for key in now if key in then and now[key] != then[key])


def _defaults(plan: Plan) -> dict[str, str]:
    return {name: repr(value) for cell in plan.cells for name, value in cell.call.defaults.items()}


def _dtypes(plan: Plan) -> dict[tuple[str, str], str]:
    """The dtypes of each tensor in the rows of each dtype."""
    found: dict[tuple[str, str], set[str]] = {}
    for cell in (cell for cell in plan.cells if not cell.wrong):
        named = [(item.name, item.dtype) for item in cell.call.inputs]
        for name, dtype in (*named, *((item.name, item.dtype) for item in cell.call.outputs)):
            if dtype is not None:
                found.setdefault((name, cell.dtype), set()).add(dtype)
    return {key: " or ".join(sorted(dtypes)) for key, dtypes in found.items()}
