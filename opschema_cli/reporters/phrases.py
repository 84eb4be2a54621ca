"""The sentences that formats share: what was found, and the rest of the summary."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.phrases import count
from opschema_cli.reporters import Report


def headline(report: Report) -> str:
    """What was found: ``Found 3 errors and 1 warning in 2 files``, or ``All clean``."""
    summary = report.summary
    counts = ((summary.errors, "error"), (summary.warnings, "warning"), (summary.infos, "info"))
    found = [count(number, noun) for number, noun in counts if number]
    if not found:
        return "All clean"
    files = len({diagnostic.place.path for diagnostic in report.diagnostics})
    return f"Found {_listed(found)} in {count(files, 'file')}"


def details(report: Report) -> str:
    """The rest of the summary: what was checked, what can be fixed, what is not shown."""
    summary = report.summary
    ops, files, seconds = count(summary.ops, "op"), count(summary.files, "file"), f"{summary.seconds:.2f} s"
    found = summary.errors or summary.warnings or summary.infos
    checked = f" ({ops}, {files} checked in {seconds})" if found else f": {ops} in {files}, {seconds}"
    hidden = ((summary.suppressed, "suppressed"), (summary.baselined, "baselined"))
    parts = [
        f"{summary.fixed} fixed" if summary.fixed else "",
        _fixable(report),
        ", ".join(f"{number} {word}" for number, word in hidden if number),
    ]
    return "; ".join([checked, *filter(None, parts)]) + "."


def _fixable(report: Report) -> str:
    safety = [diagnostic.fix.safety for diagnostic in report.diagnostics if diagnostic.fix]
    safe, unsafe = safety.count("safe"), safety.count("unsafe")
    if safe and unsafe:
        return f"{safe} fixable with --fix, {unsafe} more with --unsafe-fixes"
    if safe:
        return f"{safe} fixable with --fix"
    return f"{unsafe} fixable with --unsafe-fixes" if unsafe else ""


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
