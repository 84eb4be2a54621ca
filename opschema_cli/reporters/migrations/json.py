"""``opschema migrate --output-format json``: version 1, keys in a fixed order, ASCII only."""

from __future__ import annotations

import json
from collections.abc import Sequence

from opschema_cli.reporters.json import Json
from opschema_cli.reporters.migrations import (
    FileReport,
    Listed,
    MigrationReport,
    NoteReport,
    RunReport,
    SiteReport,
    by_place,
)
from opschema_cli.reporters.unified import unified_diff


def write(report: RunReport) -> str:
    """Write the run as one object; ``applied`` records whether files were written. The files of a migration are compared with
    the result of the previous migration.
    """
    statuses = ("migrated", "pending", "left", "suppressed", "skipped")
    document: Json = {
        "version": 1,
        "migrations": [_migration(item) for item in report.migrations],
        "applied": report.mode == "apply" and bool(report.files),
        "summary": {
            **{status: report.sites(status) for status in statuses},
            "notes": len(report.notes),
            "files": len(report.files),
        },
    }
    return json.dumps(document, indent=2) + "\n"


def write_list(found: Sequence[Listed], elsewhere: Sequence[str] = ()) -> str:
    """Write the migrations as one object; ``sites`` is null if options are missing, or for the given reason. ``elsewhere`` lists
    the packs without matching files, whose migrations were not searched.
    """
    rows: list[Json] = [
        {
            "name": item.name,
            "summary": item.summary,
            "sites": item.sites,
            "reason": item.reason,
            "needs": [*item.needs],
            "options": [*item.options],
        }
        for item in found
    ]
    return json.dumps({"version": 1, "migrations": rows, "packs_not_found": [*elsewhere]}, indent=2) + "\n"


def _migration(item: MigrationReport) -> Json:
    return {
        "name": item.name,
        "reason": item.reason,
        "sites": [_site(site) for site in item.sites],
        "notes": [_note(note) for note in by_place(item.notes)],
        "files": [_file(file) for file in item.files],
    }


def _site(site: SiteReport) -> Json:
    return {
        "path": site.path,
        "line": site.line,
        "column": site.column,
        "title": site.title,
        "ops": [*site.ops],
        "status": site.status,
    }


def _note(note: NoteReport) -> Json:
    return {"path": note.path, "line": note.line, "column": note.column, "message": note.message}


def _file(file: FileReport) -> Json:
    lines = unified_diff(file.path, file.before, file.after)
    return {"path": file.path, "change": file.change, "diff": "".join(f"{line}\n" for line in lines)}
