"""A changelog in Markdown: the changes of a comparison, the breaking ones first, for release notes and pull requests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import Diagnostic, NotUnderstood, Severity
from opschema_cli.phrases import count
from opschema_cli.reporters import Report
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.places import locate

_SECTIONS = {
    Severity.ERROR: "Breaking changes",
    Severity.WARNING: "Changes for backends and of declared semantics",
    Severity.INFO: "Compatible changes",
}
_CODE = re.compile(r"(`[^`]*`)")
_ACTIVE = str.maketrans({"<": "&lt;", ">": "&gt;", "@": "&#64;", "[": "\\[", "*": "\\*", "_": "\\_"})


def write(report: Report, old: str) -> str:
    """Write the changes since ``old``, in sections by severity, then the files that could not be read and the parts that could
    not be compared.
    """
    return "\n".join(_lines(report, old)) + "\n"


def _lines(report: Report, old: str) -> Iterator[str]:
    yield f"# Changes of operators since {_text(old)}"
    yield ""
    summary = report.summary
    changes = [item for item in report.diagnostics if item.code in report.rules]
    errors = sum(item.severity is Severity.ERROR for item in changes)
    breaking, others = count(errors, "breaking change"), count(len(changes) - errors, "other change")
    accepted = f", {summary.suppressed} accepted" if summary.suppressed else ""
    yield f"{breaking}, {others}{accepted}; {count(summary.ops, 'operator')} compared."
    for severity, title in _SECTIONS.items():
        found = [item for item in changes if item.severity is severity]
        if found:
            yield from ("", f"## {title}", "", *(_item(report, item) for item in found))
    unread = [item for item in report.diagnostics if item.code not in report.rules]
    if unread:
        yield from ("", "## Files that could not be read", "", *(_item(report, item) for item in unread))
    if report.unresolved:
        yield from ("", "## Not compared", "", *_unresolved(report.unresolved))


def _item(report: Report, item: Diagnostic) -> str:
    place = f"{visible(item.place.path)}:{locate(report, item.place).line}".replace("`", "'")
    return f"- {_text(item.message)} (`{place}`)"


def _unresolved(items: Sequence[NotUnderstood]) -> list[str]:
    return [f"- {_text(item.reason)}" for item in items]


def _text(message: str) -> str:
    """A message in which nothing but its code spans is Markdown or HTML."""
    parts = _CODE.split(visible(message))
    return "".join(part if part.startswith("`") and part.endswith("`") else part.translate(_ACTIVE) for part in parts)
