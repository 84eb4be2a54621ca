"""The JSON object of ``--output-format json``: version 1, keys in a fixed order, ASCII only."""

from __future__ import annotations

import json
from typing import TypeAlias

from opschema_cli.lint.diagnostic import Diagnostic, Fix, NotChecked, NotUnderstood, Related, Unread
from opschema_cli.reporters import Report
from opschema_cli.reporters.places import locate

Json: TypeAlias = "str | int | list[Json] | dict[str, Json] | None"


def write(report: Report) -> str:
    """The report as one object; lines and columns from 1, ends one past the last character."""
    summary = report.summary
    document: Json = {
        "version": 1,
        "diagnostics": [_diagnostic(report, diagnostic) for diagnostic in report.diagnostics],
        "summary": {
            "errors": summary.errors,
            "warnings": summary.warnings,
            "infos": summary.infos,
            "suppressed": summary.suppressed,
            "baselined": summary.baselined,
            "ops": summary.ops,
            "files": summary.files,
            "unresolved": summary.unresolved,
            "ops_partly_known": summary.partly,
            "nothing_to_lint": summary.nothing,
            "not_shown": summary.not_shown,
        },
        "unresolved": [_unresolved(report, item) for item in report.unresolved],
        "not_checked": [_not_checked(item) for item in report.not_checked],
        "not_read": [_unread(item) for item in report.unread],
    }
    return json.dumps(document, indent=2) + "\n"


def _diagnostic(report: Report, diagnostic: Diagnostic) -> Json:
    place = locate(report, diagnostic.place)
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "path": diagnostic.place.path,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
        "ops": [*diagnostic.ops],
        "related": [_related(report, related) for related in diagnostic.related],
        "fix": _fix(diagnostic.fix),
    }


def _unresolved(report: Report, item: NotUnderstood) -> Json:
    place = locate(report, item.place)
    return {"path": item.place.path, "line": place.line, "column": place.column, "reason": item.reason}


def _not_checked(item: NotChecked) -> Json:
    return {
        "code": item.code,
        "severity": item.severity.value,
        "message": item.reason,
        "hint": item.hint,
        "rules": [*item.rules],
        "files": [*item.files],
    }


def _unread(item: Unread) -> Json:
    return {"what": item.noun, "count": item.count, "files": item.files, "example": item.example}


def _related(report: Report, related: Related) -> Json:
    place = locate(report, related.place)
    return {
        "path": related.place.path,
        "line": place.line,
        "column": place.column,
        "message": related.message,
    }


def _fix(fix: Fix | None) -> Json:
    return None if fix is None else {"safety": fix.safety, "title": fix.title}
