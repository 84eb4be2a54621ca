"""One line a diagnostic: ``path:line:column: error CODE [name] message (ops: ...)``."""

from __future__ import annotations

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.phrases import some
from opschema_cli.reporters import Report
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.phrases import details, headline, not_understood, unchecked
from opschema_cli.reporters.places import where

_OPS_SHOWN = 3


def write(report: Report) -> str:
    """Write the diagnostics, one per line, then the unchecked and unresolved code, and the summary."""
    lines = [_line(report, diagnostic) for diagnostic in report.diagnostics]
    lines += [
        f"opschema: {item.severity.value} {item.code} [{item.name}] {unchecked(item)}" for item in report.not_checked
    ]
    lines += not_understood(report)
    return "".join(f"{line}\n" for line in (*lines, headline(report) + details(report)))


def _line(report: Report, diagnostic: Diagnostic) -> str:
    place = where(report, diagnostic.place)
    ops = f" (ops: {some(diagnostic.ops, _OPS_SHOWN)})" if diagnostic.ops else ""
    return visible(
        f"{place or 'opschema'}: {diagnostic.severity.value} "
        f"{diagnostic.code} [{diagnostic.name}] {diagnostic.message}{ops}"
    )
