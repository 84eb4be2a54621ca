"""The direction that an entry's parameter must declare by its specs, and the change of its annotation."""

from __future__ import annotations

from opschema_cli.source.text import Edit, Span
from opschema_rules.pypto.model import EntryParam, SpecEntry

WORDS = {"out": "Out", "inout": "InOut"}
"""Words of pypto's language for directions that are copied back."""


def lost(entry: SpecEntry, param: EntryParam) -> bool:
    """Whether a parameter is declared an input although it is an output; the harness reads a resident one back itself."""
    resident = (entry.host or param.hosts) and any(item.resident is not False for item in param.specs)
    return param.direction == "in" and bool(param.outputs) and not resident


def unstaged(param: EntryParam) -> bool:
    """Whether a parameter is declared an output although it has an initial value."""
    return param.direction == "out" and any(item.has_init for item in param.specs)


def wanted(entry: SpecEntry, param: EntryParam) -> str | None:
    """Return the wrapper that the parameter needs, ``Out`` or ``InOut``; None if it is right or not certain."""
    if unstaged(param):
        return WORDS["inout"]
    if not lost(entry, param):
        return None
    given = [item.has_init for item in param.outputs]
    if param.read or any(given):
        return WORDS["inout"]
    return WORDS["out"] if all(item is False for item in given) else None


def head(param: EntryParam) -> Span | None:
    """Return the name that an annotation wraps its type in (``pl.Out``); None if it wraps none."""
    annotation = param.param.annotation
    return annotation.items[0].span if annotation is not None and annotation.kind == "subscript" else None


def wrap(entry: SpecEntry, param: EntryParam, word: str) -> Edit | None:
    """Return the edit that makes an annotation use ``word``; None if the file has no name for it, or the annotation is an alias."""
    annotation, spelled = param.param.annotation, entry.spelled.get(word)
    if annotation is None or spelled is None:
        return None
    if param.direction == "in":
        return Edit(annotation.span, f"{spelled}[{entry.file.text(annotation)}]")
    span = head(param)
    return Edit(span, spelled) if span is not None else None
