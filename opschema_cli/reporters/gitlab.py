"""GitLab's code quality report: a JSON array, an entry a diagnostic."""

from __future__ import annotations

import hashlib
import json
from typing import TypeAlias

from opschema_cli.lint.diagnostic import NotChecked, Severity
from opschema_cli.reporters import Report
from opschema_cli.reporters.phrases import notice, unchecked
from opschema_cli.reporters.places import fingerprints, locate, paths_in_checkout

Json: TypeAlias = "str | int | dict[str, Json]"

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def write(report: Report) -> str:
    """The array; GitLab compares branches by ``fingerprint``, so that one survives moved lines.

    Entries on the root say that nothing was linted, and what was not checked.
    """
    entries: list[Json] = [_unchecked(item) for item in report.not_checked]
    if report.summary.nothing and not report.diagnostics:
        entries.append(_of_run(notice(report), "nothing-to-lint", "info"))
    shown = paths_in_checkout(report, "CI_PROJECT_DIR")
    for diagnostic, fingerprint in zip(report.diagnostics, fingerprints(report), strict=True):
        place = locate(report, diagnostic.place)
        entries.append(
            {
                "description": f"{diagnostic.code} {diagnostic.name}: {diagnostic.message}",
                "check_name": diagnostic.code,
                "fingerprint": fingerprint,
                "severity": _SEVERITIES[diagnostic.severity],
                "location": {
                    "path": shown(diagnostic.place.path or "."),
                    "positions": {
                        "begin": {"line": place.line, "column": place.column},
                        "end": {"line": place.end_line, "column": place.end_column},
                    },
                },
            }
        )
    return json.dumps(entries, indent=2) + "\n"


def _unchecked(item: NotChecked) -> Json:
    severity = _SEVERITIES[item.severity]
    return _of_run(f"{item.code} {item.name}: {unchecked(item)}", item.code, severity, item.reason)


def _of_run(text: str, name: str, severity: str, key: str = "") -> Json:
    """An entry of the run; GitLab takes none without a place."""
    return {
        "description": text,
        "check_name": name,
        "fingerprint": hashlib.sha256(f"{name}{key}".encode("utf-8", "replace")).hexdigest()[:32],
        "severity": severity,
        "location": {"path": ".", "positions": {"begin": {"line": 1, "column": 1}, "end": {"line": 1, "column": 1}}},
    }
