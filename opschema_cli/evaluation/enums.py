"""Enumerations of the workspace, and their members."""

from __future__ import annotations

from collections.abc import Iterator

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
        if name_of_member(ref, name) == name
    )


def _named(ref: ClassRef) -> Iterator[tuple[str, Expr]]:
    return ((name, value) for name, value in ref.assigned.items() if not name.startswith("_") and "." not in name)


def name_of_member(ref: ClassRef, name: str) -> str:
    """The first name of a member of an enumeration: another one with the same value is an alias."""
    value = ref.assigned.get(name)
    if value is None or value.kind not in ("const", "name"):
        return name
    same = (other for other, item in _named(ref) if _is_same(item, value) or other == value.text)
    return next(same, name)


def _is_same(one: Expr, other: Expr) -> bool:
    return one.kind == other.kind and one.value == other.value and one.text == other.text
