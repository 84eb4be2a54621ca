"""Derives the signature of an orchestration without one from its use of each of its own tensors."""

from __future__ import annotations

from opschema_rules.pypto.dict_edits import enum_of
from opschema_rules.pypto.model import Direction, Program
from opschema_rules.pypto.staging import uses_of
from opschema_rules.pypto.task_matching import entry_of

_CERTAIN = {"in": Direction.IN, "inout": Direction.INOUT}


def entry_signature(program: Program) -> tuple[Direction, ...] | None:
    """Return one direction for each argument that the orchestration expects; None if they are not certain.

    Certain are tensors that all tasks only read, and such as all tasks read and write. What is only written may be written in
    part, so that the rest would be lost.
    """
    entry = entry_of(program)
    if entry is None or entry.unresolved:
        return None
    uses = uses_of(entry)
    if not uses or entry.expected != len(uses) or sorted(uses) != list(range(len(uses))):
        return None
    effects = [{use.effect for use in uses[index]} for index in range(len(uses))]
    found = [_CERTAIN.get(next(iter(effect))) if len(effect) == 1 else None for effect in effects]
    known = tuple(item for item in found if item is not None)
    return known if len(known) == len(found) else None


def enum_import(program: Program) -> tuple[str, str]:
    """Return the name of the enum in a description, and the line that imports it if it is not imported yet."""
    imported = next((item.name for item in program.file.body.imports if item.attr == "ArgDirection"), "")
    name = enum_of(program) or imported
    return (name, "") if name else ("D", "from simpler.task_interface import ArgDirection as D")
