"""Verification as JSON."""

from __future__ import annotations

import msgspec

from opschema_cli.verify.results import VERDICTS, Results, to_json


def render(results: Results, seconds: float) -> str:
    """``{"version": 1, "device", "before", "after", "renamed", "notes", "cells": [...], "missing": [...], "lacks",
    "errors", "summary": {...}}``.

    ``before`` and ``after`` have a ``name`` and a ``commit``, or the digest of their ``content`` where they are no commit;
    without a tree before it is null. ``renamed`` has old names by new ones. ``lacks`` is what keeps merged results from being the
    whole run, ``errors`` are failures of the harness. Infinities and NaN are strings.
    """
    counts = results.counts()
    header = results.header
    numbers: dict[str, float] = {verdict: counts[verdict] for verdict in VERDICTS}
    numbers |= {"ops": len(results.by_op()), "cells": len(header.cells), "seconds": round(seconds, 3)}
    data = {
        "version": 1,
        "device": header.device,
        "before": header.before,
        "after": header.after,
        "renamed": header.renamed,
        "notes": header.notes,
        "cells": list(results.cells.values()),
        "missing": results.missing,
        "lacks": results.lacks,
        "errors": results.errors,
        "summary": numbers,
    }
    return msgspec.json.format(to_json(data), indent=2).decode() + "\n"
