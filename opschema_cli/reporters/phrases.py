"""Sentences shared by formats: the findings, and the rest of the summary."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.lint.diagnostic import Diagnostic, NotChecked, NotUnderstood, Unread
from opschema_cli.phrases import count, joined, some
from opschema_cli.reporters import Report
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.places import locate

NOTHING = "Nothing to lint"

_UNCHECKED = "No findings, but not all was checked"
_RULES_SHOWN = 8
_NO_OPERATOR = "opschema reads no operator"
_NOT_READ = "seen and not read:"


def headline(report: Report) -> str:
    """Summary of the findings: ``Found 3 errors and 1 warning in 2 files``, ``All clean``, or why nothing could be found."""
    summary = report.summary
    counts = ((summary.errors, "error"), (summary.warnings, "warning"), (summary.infos, "info"))
    found = [count(number, noun) for number, noun in counts if number]
    if not found:
        return NOTHING if summary.nothing else _UNCHECKED if report.not_checked else "All clean"
    files = len({diagnostic.place.path for diagnostic in report.diagnostics if diagnostic.place.path})
    return f"Found {joined(found)} in {count(files, 'file')}" if files else f"Found {joined(found)}"


def details(report: Report) -> str:
    """Return the rest of the summary: the checked files, available fixes and hidden findings."""
    summary = report.summary
    ops, files, seconds = count(summary.ops, "op"), count(summary.files, "file"), f"{summary.seconds:.2f} s"
    found = summary.errors or summary.warnings or summary.infos
    checked = f" ({ops}, {files} read in {seconds})" if found else f": {ops} in {files}, {seconds}"
    if summary.nothing and not found:
        checked = f": {_NO_OPERATOR} here, {seconds}"
    not_read = len({path for item in report.not_checked for path in item.files})
    hidden = ((summary.suppressed, "suppressed"), (summary.baselined, "baselined"))
    parts = [
        f"{summary.fixed} fixed" if summary.fixed else "",
        fixable(report.diagnostics),
        ", ".join(f"{number} {word}" for number, word in hidden if number),
        f"{summary.not_shown} not shown" if summary.not_shown else "",
        f"{count(not_read, 'file')} not read" if not_read else "",
        _unresolved(report),
        f"{_NOT_READ} {unread(report)}" if report.unread else "",
    ]
    return "; ".join([checked, *filter(None, parts)]) + "."


def _unresolved(report: Report) -> str:
    """Summarize unresolved code, and name the option that lists it unless the user has given it."""
    summary, number = report.summary, report.summary.unresolved
    reason = summary.mostly if number == 1 else f"most often: {summary.mostly}"
    where = "" if len(report.unresolved) == number else f" ({reason}; --show-unresolved)"
    partly = f"{count(summary.partly, 'op')} not fully known" if summary.partly else ""
    places = f"{count(number, 'place')} not understood{where}" if number else ""
    return ": ".join(filter(None, (partly, places)))


def not_understood(report: Report) -> list[str]:
    """The places that were not understood, a line each: ``path:line:column: unresolved: reason``."""
    return [visible(_at(report, item)) for item in report.unresolved]


def _at(report: Report, item: NotUnderstood) -> str:
    place = locate(report, item.place)
    return f"{item.place.path}:{place.line}:{place.column}: unresolved: {item.reason}"


def unchecked(item: NotChecked) -> str:
    """Describe on one line what could not be checked, and how to change that."""
    return visible(f"{missed(item)} ({item.hint})")


def missed(item: NotChecked) -> str:
    """Describe what could not be checked: the missing dependency, the number of unread files, and the affected rules."""
    number = len(item.files)
    files = f"{count(number, 'file')} {'was' if number == 1 else 'were'} not read" if number else ""
    rules = f"these rules did not run or saw less: {some(item.rules, _RULES_SHOWN)}" if item.rules else ""
    return ": ".join(filter(None, (item.reason, ", and ".join(filter(None, (files, rules))))))


def notice(report: Report) -> str:
    """Return a sentence for formats that only list findings: that nothing was linted, and which files no pack reads. Return an
    empty text if neither applies.
    """
    first = f"{NOTHING}: {_NO_OPERATOR} here" if report.summary.nothing else ""
    seen = f"{_NOT_READ} {unread(report)}" if report.unread else ""
    text = "; ".join(filter(None, (first, seen)))
    return f"{text[0].upper()}{text[1:]}." if text else ""


def unread(report: Report) -> str:
    """Describe the files that no pack reads: ``16 YAML files of ExecuTorch (functions.yaml and 15 more files)``."""
    return ", ".join(map(_counted, report.unread))


def _counted(item: Unread) -> str:
    where = f"{item.example} and {count(item.files - 1, 'more file')}" if item.files > 1 else item.example
    return visible(f"{item.count} {item.noun} ({where})")


def fixable(diagnostics: Sequence[Diagnostic]) -> str:
    """Describe how many findings have a fix: ``2 fixable with --fix, 1 more with --unsafe-fixes``; empty where none has."""
    safety = [diagnostic.fix.safety for diagnostic in diagnostics if diagnostic.fix]
    safe, unsafe = safety.count("safe"), safety.count("unsafe")
    if safe and unsafe:
        return f"{safe} fixable with --fix, {unsafe} more with --unsafe-fixes"
    if safe:
        return f"{safe} fixable with --fix"
    return f"{unsafe} fixable with --unsafe-fixes" if unsafe else ""
