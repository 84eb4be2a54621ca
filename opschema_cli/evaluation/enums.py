"""Enumerations of the workspace, and their members."""

from __future__ import annotations

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import BoundArgument, EnumMember
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
        for name, value in ref.assigned.items()
        if not name.startswith("_") and "." not in name
    )
