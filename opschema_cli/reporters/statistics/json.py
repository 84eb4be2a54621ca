"""Counts of findings as one JSON object: version 1, ASCII only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

from opschema_cli.reporters.statistics import SEVERITIES, Row, Statistics, counted, total

Json: TypeAlias = "str | int | list[Json] | dict[str, Json]"


def write(statistics: Statistics) -> str:
    """``{"version": 1, "tree": {...}, "history": [{"commit", "date", "time", ...}]}``; each has the numbers by severity, rule,
    pack and file.
    """
    history: list[Json] = [
        {"commit": item.commit, "date": item.date, "time": item.time, **_counts(item.rows)}
        for item in statistics.history
    ]
    return json.dumps({"version": 1, "tree": _counts(statistics.rows), "history": history}, indent=2) + "\n"


def _counts(rows: Sequence[Row]) -> dict[str, Json]:
    return {
        **{f"{severity.value}s": total(rows, severity) for severity in SEVERITIES},
        "rules": dict(counted(rows, lambda row: row.code)),
        "packs": dict(counted(rows, lambda row: row.pack)),
        "files": dict(counted(rows, lambda row: row.path)),
    }
