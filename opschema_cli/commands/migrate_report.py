"""Reports of ``opschema migrate``: the run as reporters read it, and its output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Literal

from opschema_cli.commands.migrate_work import MigrateOptions
from opschema_cli.commands.output import write_text
from opschema_cli.migrate.draft import Change, Draft
from opschema_cli.migrate.engine import Result
from opschema_cli.reporters.migrations import FileReport, MigrationReport, NoteReport, RunReport, SiteReport


def print_report(report: RunReport, options: MigrateOptions) -> None:
    """Print a report in the requested format."""
    from opschema_cli.reporters.migrations import json, text
    from opschema_cli.reporters.text import open_console

    if options.output_format == "json":
        write_text(json.write(report), None)
        return
    if report.mode == "diff" and not sys.stdout.isatty():
        write_text(text.patch(report), None)
    text.write(report, open_console(sys.stdout))


def report_of(
    draft: Draft, results: Iterable[Result], mode: Literal["check", "diff", "apply"], asked: Sequence[str]
) -> RunReport:
    """Return the run as reporters read it; a mere check leaves the changes out."""
    if mode == "check":
        return RunReport(
            [MigrationReport(item.migration.name, _sites(item, "pending"), [], [], item.reason) for item in results],
            [],
            mode,
            asked,
        )
    reports = [
        MigrationReport(item.migration.name, _sites(item, "migrated"), _notes(item), _files(item.changes), item.reason)
        for item in results
    ]
    return RunReport(reports, _files(draft.changes), mode, asked)


def _notes(result: Result) -> list[NoteReport]:
    return [NoteReport(left.note.place.path, *left.position, left.note.message) for left in result.notes]


def _sites(result: Result, done: Literal["migrated", "pending"]) -> list[SiteReport]:
    return [
        SiteReport(
            item.site.place.path,
            *item.position,
            item.site.title,
            item.site.ops,
            done if item.status == "migrated" else item.status,
        )
        for item in result.sites
    ]


def _files(changes: Iterable[Change]) -> list[FileReport]:
    return [FileReport(change.path, change.before, change.after) for change in changes]
