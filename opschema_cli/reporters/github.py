"""GitHub workflow commands: one annotation a diagnostic, with its other side in the message."""

from __future__ import annotations

from opschema_cli.lint.diagnostic import Diagnostic, NotChecked, Severity
from opschema_cli.phrases import some
from opschema_cli.reporters import Report
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.phrases import notice, unchecked
from opschema_cli.reporters.places import locate, paths_in_checkout

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_OPS_SHOWN = 10
_IN_MESSAGE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def write(report: Report) -> str:
    """Write one ``::error``, ``::warning`` or ``::notice`` line per diagnostic, per unchecked item and for files that were not
    linted.
    """
    shown = paths_in_checkout(report, "GITHUB_WORKSPACE")
    lines = [_annotation(report, diagnostic, shown(diagnostic.place.path)) for diagnostic in report.diagnostics]
    lines += [_unchecked(item) for item in report.not_checked]
    text = notice(report)
    if text:
        command = "warning" if report.summary.nothing else "notice"
        lines.append(f"::{command} title=opschema::{text.translate(_IN_MESSAGE)}")
    return "".join(f"{line}\n" for line in lines)


def _unchecked(item: NotChecked) -> str:
    """An annotation of the run: it names no file."""
    command = _COMMANDS[item.severity]
    return f"::{command} title={item.code} {item.name}::{unchecked(item).translate(_IN_MESSAGE)}"


def _annotation(report: Report, diagnostic: Diagnostic, path: str) -> str:
    place = locate(report, diagnostic.place)
    # The runner drops columns, with a complaint, where an annotation spans lines.
    one_line = place.line == place.end_line
    properties = {
        "file": path,
        "line": str(place.line),
        **({"col": str(place.column)} if one_line else {}),
        "endLine": str(place.end_line),
        **({"endColumn": str(place.end_column)} if one_line else {}),
        "title": f"{diagnostic.code} {diagnostic.name}",
    }
    if not diagnostic.place.path:
        properties = {"title": properties["title"]}
    fields = ",".join(f"{key}={visible(text).translate(_IN_PROPERTY)}" for key, text in properties.items())
    message = "\n".join(visible(line) for line in _message(report, diagnostic))
    return f"::{_COMMANDS[diagnostic.severity]} {fields}::{message.translate(_IN_MESSAGE)}"


def _message(report: Report, diagnostic: Diagnostic) -> list[str]:
    lines = [diagnostic.message]
    for related in diagnostic.related:
        place = locate(report, related.place)
        lines.append(f"{related.place.path}:{place.line}:{place.column}: {related.message}")
    if diagnostic.ops:
        lines.append(f"ops: {some(diagnostic.ops, _OPS_SHOWN)}")
    if diagnostic.fix:
        lines.append(f"help: {diagnostic.fix.title}")
    return lines
