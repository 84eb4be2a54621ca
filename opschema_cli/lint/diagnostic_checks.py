"""Checks the diagnostics that a rule yields."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from opschema_cli.authoring import described, refuse
from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place, Related
from opschema_cli.lint.rule import Rule
from opschema_cli.source.text import Edit, Span


def check_diagnostic(item: object, rule: Rule) -> None:
    """Check a diagnostic that a rule yields.

    Raises:
        AuthorError: it is not a diagnostic, or one with a field of a wrong type.
    """
    problem = _problem(item)
    if not problem and isinstance(item, Diagnostic) and item.fix is not None and not rule.fixable:
        problem = "a Diagnostic with a fix, but `@rule` does not say fixable="
    if problem:
        refuse(f"the rule yields {problem}", rule.check)


def _problem(item: object) -> str:
    if not isinstance(item, Diagnostic):
        return f"{described(item)}; it yields `Diagnostic(message, place)`"
    if not isinstance(item.message, str):
        return f"a Diagnostic whose message is {described(item.message)}, not a str"
    if not _is_place(item.place):
        return f"a Diagnostic whose place is {described(item.place)}, not `Place(path, span)` with 0 <= start <= end"
    if not _is_tuple(item.ops, str):
        return "a Diagnostic whose `ops` are not a tuple of names: ops=(op.name,)"
    if not _is_tuple(item.related, Related) or not all(_is_place(other.place) for other in item.related):
        return "a Diagnostic whose `related` is not a tuple of `Related(place, message)`"
    return "" if item.fix is None else _problem_of_fix(item.fix)


def _problem_of_fix(fix: object) -> str:
    if not isinstance(fix, Fix):
        return f"a Diagnostic whose fix is {described(fix)}, not `Fix(title, edits)`"
    if not _is_tuple(fix.edits, FileEdit) or not fix.edits:
        return "a Fix whose `edits` are not a tuple of `FileEdit(path, edit)`"
    if not all(isinstance(item.path, str) and _is_edit(item.edit) for item in fix.edits):
        return "a FileEdit that is not `FileEdit(path, Edit(span, text))` with 0 <= start <= end"
    return _overlap(sorted({(item.path, item.edit) for item in fix.edits}))


def _overlap(edits: list[tuple[str, Edit]]) -> str:
    """Describe the conflict between adjacent edits of one fix, given in order; equal ones count once."""
    for (path, edit), (other, following) in pairwise(edits):
        if path == other and edit.span.end > following.span.start:
            return f"a Fix whose edits of {path} overlap: {tuple(edit.span)} and {tuple(following.span)}"
    return ""


def _is_place(value: object) -> bool:
    return isinstance(value, Place) and isinstance(value.path, str) and _is_span(value.span)


def _is_edit(value: object) -> bool:
    return isinstance(value, Edit) and _is_span(value.span) and isinstance(value.replacement, str)


def _is_span(value: object) -> bool:
    return isinstance(value, Span) and 0 <= value.start <= value.end


def _is_tuple(value: object, kind: type[Any]) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, kind) for item in value)
