"""Limits of findings to keep and report, so that a huge file neither fills memory nor hides the rest of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from opschema_cli.lint.builtin import NOT_SHOWN, STOPPED
from opschema_cli.lint.diagnostic import Diagnostic, Fix, Place, Related, Severity
from opschema_cli.phrases import clipped, count

MAX_TEXT = 2_000
"""Maximum number of characters of a message; longer ones are truncated."""

MAX_FIX = 20_000
"""Maximum number of characters that a fix writes; a finding with a longer fix has none."""

MAX_NAME = 500
"""Maximum number of characters of an op's name in a finding."""

MAX_OF_SUBJECT = 10_000
"""Number of findings of one rule on one subject after which the rule is stopped there."""

MAX_SHOWN = 1_000
"""Maximum number of findings of one rule in one file to show in a report."""


def within_limits(item: Diagnostic) -> Diagnostic:
    """Return a finding with its texts truncated to the limits."""
    if item.fix is not None and sum(len(edit.edit.replacement) for edit in item.fix.edits) > MAX_FIX:
        item = msgspec.structs.replace(item, fix=None)
    texts = [item.message, *(other.message for other in item.related), *((item.fix.title,) if item.fix else ())]
    if max(map(len, texts)) <= MAX_TEXT and all(len(op) <= MAX_NAME for op in item.ops):
        return item
    return msgspec.structs.replace(
        item,
        message=clipped(item.message, MAX_TEXT),
        related=tuple(Related(other.place, clipped(other.message, MAX_TEXT)) for other in item.related),
        fix=_clipped_fix(item.fix) if item.fix is not None else None,
        ops=tuple(clipped(op, MAX_NAME) for op in item.ops),
    )


def _clipped_fix(fix: Fix) -> Fix:
    return msgspec.structs.replace(fix, title=clipped(fix.title, MAX_TEXT))


def stopped(code: str, name: str, last: Place) -> Diagnostic:
    """Return the finding that a rule was stopped after it had found too much in one subject."""
    message = f"{code} ({name}) has found {MAX_OF_SUBJECT:,} problems here and was stopped; fix these, and run again for the rest"
    return Diagnostic(message, last, code=STOPPED.code)


def shown_findings(found: Iterable[Diagnostic]) -> tuple[list[Diagnostic], int]:
    """Return the findings that a report shows, in order, and the number of hidden ones. If there are too many of one rule in one
    file, the worst and first ones are shown, and one finding with the number of the others.
    """
    groups: dict[tuple[str, str], list[Diagnostic]] = {}
    everything = list(found)
    for item in everything:
        groups.setdefault((item.place.path, item.code), []).append(item)
    left_out = {id(item) for group in groups.values() for item in _beyond(group)}
    notices = {id(_beyond(group)[0]): _notice(_beyond(group)) for group in groups.values() if len(group) > MAX_SHOWN}
    kept = [notices.get(id(item), item) for item in everything if id(item) not in left_out or id(item) in notices]
    return kept, len(left_out)


def _beyond(group: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
    """Return the hidden findings."""
    if len(group) <= MAX_SHOWN:
        return ()
    return sorted(group, key=lambda item: -item.severity.rank)[MAX_SHOWN:]


def _notice(hidden: Sequence[Diagnostic]) -> Diagnostic:
    first = hidden[0]
    verb = "is" if len(hidden) == 1 else "are"
    message = f"{count(len(hidden), 'more finding')} of {first.code} ({first.name}) in this file {verb} not shown"
    return Diagnostic(message, first.place, code=NOT_SHOWN.code, name=NOT_SHOWN.name, severity=Severity.INFO)
