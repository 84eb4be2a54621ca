"""Changes between two schema strings of one operator.

Saved graphs are judged as torch judges them (:mod:`opschema_cli.schema.schema_compatibility`): an operator has a change that hits
them exactly if torch calls the new schema incompatible. Callers are judged by whether each earlier call still means the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from msgspec.structs import replace

from opschema_cli.diff.model import Audience, Change
from opschema_cli.schema.operator_schema import Argument, OperatorSchema, Return
from opschema_cli.schema.schema_changes import SchemaChange, described, schema_changes
from opschema_cli.schema.schema_compatibility import (
    backward_incompatibility,
    forward_incompatibility,
    is_backward_compatible,
    is_forward_compatible,
    slot_of,
)
from opschema_cli.schema.schema_string import parse_schema
from opschema_cli.schema.schema_subtypes import is_subtype
from opschema_cli.source.text import Place

_KERNEL_CHANGES = ("argument-removed", "argument-added", "argument-moved", "type", "symint", "alias", "returns")
"""Kinds of changes after which a kernel has a different C++ signature."""

_WIDER = {("int", "float"), ("int", "Scalar"), ("float", "Scalar"), ("bool", "Scalar"), ("int", "SymInt")}
"""Pairs of types: Python callers may pass the first where the second is expected."""

_UNKNOWN = re.compile(r"(?<![\w\])])\?")
"""A type that is not known; an optional type has its question mark behind it."""


@lru_cache(maxsize=8192)
def parsed(text: str) -> OperatorSchema | None:
    """A schema without its name; None if a part of it is not known."""
    return None if _UNKNOWN.search(text) else parse_schema(f"op{text}", type_variables=True).schema


Places: TypeAlias = Mapping[str, Place]
"""The places of arguments by their names."""


def schema_differences(
    name: str, old: OperatorSchema, new: OperatorSchema, places: tuple[Places, Places]
) -> list[Change]:
    """The changes from one schema to another, those of arguments at the ``places`` of both sides."""
    items = list(schema_changes(old, new))
    is_relabelled = _relabelled(old, new)
    changes = [_change(name, item, old, new, places) for item in items]
    changes = [
        replace(change, hits=()) if is_relabelled(item) else change for item, change in zip(items, changes, strict=True)
    ]
    backward, forward = _is_safe_backward(old, new), _is_safe_forward(old, new)
    graphs = _marked(items, backward_incompatibility(old, new), lambda item: is_relabelled(item) or backward(item))
    later = _marked(items, forward_incompatibility(old, new), lambda item: is_relabelled(item) or forward(item))
    for index, change in enumerate(changes):
        hits: list[Audience] = [*change.hits]
        hits += ["graphs"] if index in graphs else []
        hits += ["new-graphs"] if index in later else []
        changes[index] = replace(change, hits=tuple(hits))
    return [*changes, *_others(name, old, new, bool(items))]


def _others(name: str, old: OperatorSchema, new: OperatorSchema, has_items: bool) -> Iterator[Change]:
    """Yield a difference outside of arguments and returns: the dots of a variadic schema."""
    backward, forward = backward_incompatibility(old, new), forward_incompatibility(old, new)
    if not has_items and (backward or forward):
        hits: list[Audience] = ["callers", "graphs"] if backward else []
        hits += ["new-graphs"] if forward else []
        yield Change("schema", name, backward or forward, hits=tuple(hits))


def _relabelled(old: OperatorSchema, new: OperatorSchema) -> Callable[[SchemaChange], bool]:
    """Return whether a change only relabels alias sets, as an argument added before them does if the labels are numbers: the
    labels of the new schema correspond to those of the old one.
    """
    pairs: list[tuple[Argument | Return, Argument | Return]] = [
        (item, other) for item in old.arguments if (other := new.argument(item.name)) is not None
    ]
    pairs += zip(old.returns, new.returns, strict=False)
    found = [labels for one, other in pairs if (labels := _labels(one, other)) is not None]
    links = {link for labels in found for link in labels}
    is_one_to_one = len(links) == len({one for one, _ in links}) == len({other for _, other in links})

    def is_relabelled(item: SchemaChange) -> bool:
        is_alias = item.kind in ("alias", "return-alias") and item.old is not None and item.new is not None
        return is_alias and is_one_to_one and _labels(item.old, item.new) is not None

    return is_relabelled


def _labels(one: Argument | Return | None, other: Argument | Return | None) -> list[tuple[str, str]] | None:
    """The labels of two alias annotations, in pairs; None if the annotations differ in more."""
    before, now = (item.alias if item is not None else None for item in (one, other))
    if before is None or now is None or before.write != now.write:
        return None
    if (len(before.before), len(before.after)) != (len(now.before), len(now.after)):
        return None
    return [*zip((*before.before, *before.after), (*now.before, *now.after), strict=True)]


def _marked(items: Sequence[SchemaChange], reason: str, is_safe: Callable[[SchemaChange], bool]) -> set[int]:
    """Return the changes that make an operator incompatible: those that do so alone, or all if none does; none for a compatible
    one.
    """
    if not reason:
        return set()
    return {index for index, item in enumerate(items) if not is_safe(item)} or set(range(len(items)))


def _is_safe_backward(old: OperatorSchema, new: OperatorSchema) -> Callable[[SchemaChange], bool]:
    def is_safe(item: SchemaChange) -> bool:
        before, now = item.old, item.new
        if isinstance(before, Argument) and isinstance(now, Argument):
            return item.kind == "positional" or is_backward_compatible(slot_of(now), slot_of(before))
        if isinstance(before, Return) and isinstance(now, Return):
            return is_backward_compatible(slot_of(before), slot_of(now))
        return isinstance(now, Argument) and now.default is not None and not _shifts(now, old, new)

    return is_safe


def _is_safe_forward(old: OperatorSchema, new: OperatorSchema) -> Callable[[SchemaChange], bool]:
    def is_safe(item: SchemaChange) -> bool:
        before, now = item.old, item.new
        if isinstance(before, Argument) and isinstance(now, Argument):
            return is_forward_compatible(slot_of(now), slot_of(before))
        return False

    return is_safe


def _change(
    name: str, item: SchemaChange, old: OperatorSchema, new: OperatorSchema, places: tuple[Places, Places]
) -> Change:
    text = described(item, old, new)
    if item.kind == "argument-added" and isinstance(item.new, Argument):
        text = f"{text}{_position(item.new, old, new)}"
    kind = "required" if _became_required(item) else item.kind
    before, now = (
        side.get(of.name) if isinstance(of, Argument) else None
        for side, of in zip(places, (item.old, item.new), strict=True)
    )
    return Change(kind, name, text, before, now, tuple(_hits(item, old, new)))


def _became_required(item: SchemaChange) -> bool:
    before, now = item.old, item.new
    if item.kind != "default" or not isinstance(before, Argument) or not isinstance(now, Argument):
        return False
    return before.default is not None and now.default is None


def _position(added: Argument, old: OperatorSchema, new: OperatorSchema) -> str:
    if added.default is None:
        return " without a default"
    following = _shifts(added, old, new)
    return f" before `{following}`" if following else ""


def _shifts(added: Argument, old: OperatorSchema, new: OperatorSchema) -> str:
    """Return the earlier positional argument that a new one precedes; empty if it shifts none."""
    behind = new.arguments[new.arguments.index(added) + 1 :]
    taken = {item.name for item in old.positional}
    return next((item.name for item in behind if item.name in taken), "") if not added.kwarg_only else ""


def _hits(item: SchemaChange, old: OperatorSchema, new: OperatorSchema) -> Iterator[Audience]:
    if _hits_callers(item, old, new):
        yield "callers"
    if item.kind in _KERNEL_CHANGES:
        yield "backends"
    if item.kind in ("alias", "return-alias", "returns"):
        yield "semantics"


def _hits_callers(item: SchemaChange, old: OperatorSchema, new: OperatorSchema) -> bool:
    before, now = item.old, item.new
    match item.kind:
        case "argument-removed" | "argument-renamed" | "argument-moved" | "keyword-only":
            return True
        case "argument-added":
            return isinstance(now, Argument) and (now.default is None or bool(_shifts(now, old, new)))
        case "type":
            return isinstance(before, Argument) and isinstance(now, Argument) and not takes_all(before, now)
        case "alias":
            return isinstance(before, Argument) and isinstance(now, Argument) and now.is_write != before.is_write
        case "default":
            return isinstance(before, Argument) and before.default is not None
        case "returns":
            return not _fit(old.returns, new.returns)
        case "return-alias":
            return True
        case "return-renamed":
            return isinstance(before, Return) and before.name is not None
        case _:
            return False


def takes_all(before: Argument, now: Argument) -> bool:
    """Whether an argument accepts everything that Python callers passed for the earlier one."""
    if is_subtype(before.type, now.type):
        return True
    inner = now.type.inner if now.type.inner is not None and (now.type.optional or now.type.size) else now.type
    pair = str(before.type), str(inner)
    return pair in _WIDER or pair[0] == pair[1] or pair == ("SymInt", "int")


def _fit(old: Sequence[Return], new: Sequence[Return]) -> bool:
    return len(old) == len(new) and all(is_subtype(now.type, before.type) for before, now in zip(old, new, strict=True))
