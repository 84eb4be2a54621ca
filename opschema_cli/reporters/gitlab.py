"""GitLab's code quality report: a JSON array, an entry a diagnostic."""

from __future__ import annotations

import hashlib
import json
from typing import TypeAlias

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.reporters import Report
from opschema_cli.reporters.phrases import notice
from opschema_cli.reporters.places import fingerprints, locate

Json: TypeAlias = "str | int | dict[str, Json]"

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def write(report: Report) -> str:
    """The array; GitLab compares branches by ``fingerprint``, so that one survives moved lines.

    An entry on the root says that nothing was linted.
    """
    entries = [_nothing(report)] if report.summary.nothing and not report.diagnostics else []
    for diagnostic, fingerprint in zip(report.diagnostics, fingerprints(report), strict=True):
        place = locate(report, diagnostic.place)
        entries.append(
            {
                "description": f"{diagnostic.code} {diagnostic.name}: {diagnostic.message}",
                "check_name": diagnostic.code,
                "fingerprint": fingerprint,
                "severity": _SEVERITIES[diagnostic.severity],
                "location": {
                    "path": diagnostic.place.path,
                    "positions": {
                        "begin": {"line": place.line, "column": place.column},
                        "end": {"line": place.end_line, "column": place.end_column},
                    },
                },
            }
        )
    return json.dumps(entries, indent=2) + "\n"


def _nothing(report: Report) -> Json:
    return {
        "description": notice(report),
        "check_name": "nothing-to-lint",
        "fingerprint": hashlib.sha256(b"nothing-to-lint").hexdigest()[:32],
        "severity": "info",
        "location": {"path": ".", "positions": {"begin": {"line": 1, "column": 1}, "end": {"line": 1, "column": 1}}},
    }
