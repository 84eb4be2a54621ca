"""All changes from one schema to another, each with both sides.

:mod:`opschema_cli.schema.schema_compatibility` says whether callers survive them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.schema.operator_schema import Argument, OperatorSchema, Return, SchemaType
from opschema_cli.schema.schema_values import default_value

ChangeKind: TypeAlias = Literal[
    "argument-removed",
    "argument-added",
    "argument-renamed",
    "argument-moved",
    "keyword-only",  # it was positional
    "positional",  # it was keyword-only
    "type",
    "symint",  # a type, in nothing but `int` and `SymInt`
    "alias",
    "default",
    "returns",  # their number or types
    "return-alias",
    "return-renamed",
]


class SchemaChange(msgspec.Struct, frozen=True):
    """One change. ``old`` is None for an added argument and ``new`` for a removed one; both are None for a change of
    ``returns``.
    """

    kind: ChangeKind
    old: Argument | Return | None = None
    new: Argument | Return | None = None


Pair: TypeAlias = tuple[Argument, Argument]


def schema_changes(old: OperatorSchema, new: OperatorSchema) -> Iterator[SchemaChange]:
    """The changes of the arguments, in the old order, then those of the returns; names of operators are not compared."""
    pairs, removed, added = _paired(old, new)
    for before, now in pairs:
        yield from _argument(before, now)
    yield from (SchemaChange("argument-removed", item) for item in removed)
    yield from (SchemaChange("argument-added", None, item) for item in added)
    for before, now in pairs:
        if before.kwarg_only != now.kwarg_only:
            yield SchemaChange("keyword-only" if now.kwarg_only else "positional", before, now)
    if not removed and not added:
        yield from _moved(pairs, new)
    yield from _returns(old.returns, new.returns)


def _paired(old: OperatorSchema, new: OperatorSchema) -> tuple[list[Pair], list[Argument], list[Argument]]:
    """Arguments that correspond, by name or else by position; then those of the old schema alone, and of the new one alone."""
    after = {item.name: item for item in new.arguments}
    pairs = [(item, after[item.name]) for item in old.arguments if item.name in after]
    removed = [item for item in old.arguments if item.name not in after]
    added = [item for item in new.arguments if old.argument(item.name) is None]
    renamed = [
        (before, now)
        for before in removed
        for now in added
        if old.arguments.index(before) == new.arguments.index(now)
        and before.kwarg_only == now.kwarg_only
        and are_alike(before.type, now.type)
    ]
    named = {id(item) for pair in renamed for item in pair}
    return (
        sorted(pairs + renamed, key=lambda pair: old.arguments.index(pair[0])),
        [item for item in removed if id(item) not in named],
        [item for item in added if id(item) not in named],
    )


def _argument(old: Argument, new: Argument) -> Iterator[SchemaChange]:
    if old.name != new.name:
        yield SchemaChange("argument-renamed", old, new)
    if old.type != new.type:
        yield SchemaChange("symint" if are_alike(old.type, new.type) else "type", old, new)
    if old.alias != new.alias:
        yield SchemaChange("alias", old, new)
    if default_value(old) != default_value(new):
        yield SchemaChange("default", old, new)


def _moved(pairs: Sequence[Pair], new: OperatorSchema) -> Iterator[SchemaChange]:
    """Yield the first argument that moved."""
    for (before, now), wanted in zip(pairs, new.arguments, strict=True):
        if now is not wanted:
            yield SchemaChange("argument-moved", before, wanted)
            return


def _returns(old: Sequence[Return], new: Sequence[Return]) -> Iterator[SchemaChange]:
    if [item.type for item in old] != [item.type for item in new]:
        yield SchemaChange("returns")
        return
    for before, now in zip(old, new, strict=True):
        if before.alias != now.alias:
            yield SchemaChange("return-alias", before, now)
        if before.name != now.name:
            yield SchemaChange("return-renamed", before, now)


def are_alike(one: SchemaType, other: SchemaType) -> bool:
    """Whether two types differ in nothing but ``int`` and ``SymInt``, or ``bool`` and ``SymBool``."""
    return _plain(one) == _plain(other)


def _plain(of: SchemaType) -> str:
    return str(of).replace("SymInt", "int").replace("SymBool", "bool")


# -- in words ----------------------------------------------------------------------------------------------------------


def described(change: SchemaChange, old: OperatorSchema, new: OperatorSchema) -> str:
    """Describe a change: ``the argument `float eps=1e-05` was added``."""
    before, now = change.old, change.new
    if before is None or now is None:
        return _whole(change, old, new)
    name = f"`{before.name}`" if before.name else "the return"
    match change.kind:
        case "argument-renamed":
            return f"the argument {name} is now called `{now.name}`"
        case "argument-moved":
            return f"`{now.name}` is now in the place of {name}"
        case "keyword-only" | "positional":
            return f"{name} is now {change.kind}"
        case "default":
            return f"{name} now has {_default(now)}; it had {_default(before)}"
        case "return-renamed":
            return f"the return `{before}` is now `{now}`"
        case "alias" | "return-alias":
            return f"{name} is now `{now.type.text()}`; it was `{before.type.text()}`"
        case _:
            return f"{name} is now of type `{now.type}`; it was `{before.type}`"


def _whole(change: SchemaChange, old: OperatorSchema, new: OperatorSchema) -> str:
    if change.kind == "argument-removed":
        return f"the argument `{change.old}` was removed"
    if change.kind == "argument-added":
        return f"the argument `{change.new}` was added"
    return f"it now returns {returned(new)}; it returned {returned(old)}"


def _default(of: Argument | Return) -> str:
    default = of.default if isinstance(of, Argument) else None
    return "no default" if default is None else f"the default `{default}`"


def returned(schema: OperatorSchema) -> str:
    """The types that an operator returns, for a message."""
    types = ", ".join(str(item.type) for item in schema.returns)
    return f"`{types}`" if types else "nothing"
