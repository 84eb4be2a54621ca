"""Enumerations of the workspace, and their members."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import BoundArgument, EnumMember
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import ClassRef, External, Unresolved

_BASES = frozenset({f"enum.{name}" for name in ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "ReprEnum")})


def members_of(evaluator: Evaluator, ref: ClassRef) -> tuple[EnumMember, ...]:
    """The members of an enumeration; empty for any other class."""
    order = evaluator.program.mro(ref)
    if isinstance(order, Unresolved) or not any(isinstance(item, External) and item.name in _BASES for item in order):
        return ()
    body = evaluator.bodies.cls(ref)
    if body is None:
        return ()
    module = evaluator.frames.module(ref.file) if body.parent is None else evaluator.frames.assumed(body.parent)
    frame = evaluator.frames.of_class(body, module)
    return tuple(
        EnumMember(ref, name, BoundArgument(frame, value))
        for name, value in _named(ref)
        if _first_names(ref)[name] == name
    )


def member_named(evaluator: Evaluator, ref: ClassRef, name: object) -> EnumMember | None:
    """Return the member of an enumeration with a name or an alias: another name with the same value."""
    members = evaluator.members(ref) if isinstance(name, str) else ()
    first = _first_names(ref).get(name) if members and isinstance(name, str) else None
    return next((item for item in members if item.name == first), None)


def _named(ref: ClassRef) -> Iterator[tuple[str, Expr]]:
    return ((name, value) for name, value in ref.assigned.items() if not name.startswith("_") and "." not in name)


@cached_on_argument
def _first_names(ref: ClassRef) -> dict[str, str]:
    """Return the first name of the member that each name of an enumeration refers to."""
    found: dict[str, str] = {}
    by_value: dict[object, str] = {}
    for name, value in _named(ref):
        if value.kind == "name" and value.text in found:
            found[name] = found[value.text]
        elif value.kind in ("const", "name"):
            found[name] = by_value.setdefault((value.kind, value.value, value.text), name)
        else:
            found[name] = name
    return found
