"""Reports of ``opschema stubs``: for people the diff, or the files, and a summary; JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

import msgspec
from rich.console import Console
from rich.segment import Segment, Segments

from opschema_cli.phrases import count
from opschema_cli.reporters.json import Json
from opschema_cli.reporters.migrations import FileReport
from opschema_cli.reporters.migrations.text import diff, stat
from opschema_cli.reporters.screen import Screen, wrap
from opschema_cli.reporters.unified import unified_diff


class StubsReport(msgspec.Struct, frozen=True):
    """All files that ``generator`` produces for ``source``, and the requested mode: show, compare or write."""

    source: str
    generator: str
    files: Sequence[FileReport]
    mode: Literal["dry-run", "check", "apply"]

    @property
    def changed(self) -> list[FileReport]:
        """The files that are not on disk as they should be."""
        return [file for file in self.files if file.before != file.after]


def write_text(report: StubsReport, console: Console) -> None:
    """Print each file that differs, in a dry run on a terminal with its lines, and the summary."""
    screen = Screen(console.width, console.encoding)
    segments: list[Segment] = []
    for file in report.changed:
        if report.mode != "dry-run":
            segments += stat(file, screen)
        elif console.is_terminal:
            segments += diff(file, screen)
    for line in wrap(_summary(report), screen.width, screen.encoding):
        segments += [Segment(line), Segment.line()]
    console.print(Segments(segments), end="", soft_wrap=True)


def _summary(report: StubsReport) -> str:
    if not report.files:
        return f"{report.generator} generates nothing from {report.source}: it supports no operator."
    if not report.changed:
        return f"{count(len(report.files), 'file')} up to date with {report.source} ({report.generator})."
    files = f"{len(report.changed)} of {count(len(report.files), 'file')}"
    if report.mode == "apply":
        return f"Wrote {files} ({report.generator})."
    differ = "differs" if len(report.changed) == 1 else "differ"
    return f"{files} {differ} from what {report.generator} makes of {report.source}; --apply writes."


def write_patch(report: StubsReport) -> str:
    """The diff as ``patch`` and ``git apply`` read it."""
    return "".join(f"{line}\n" for file in report.changed for line in _lines(file))


def write_json(report: StubsReport) -> str:
    """The run as one object; each file is ``added``, ``modified`` or ``unchanged``."""
    document: Json = {
        "version": 1,
        "source": report.source,
        "generator": report.generator,
        "applied": report.mode == "apply" and bool(report.changed),
        "files": [_file(file) for file in report.files],
    }
    return json.dumps(document, indent=2) + "\n"


def _file(file: FileReport) -> Json:
    change = "unchanged" if file.before == file.after else file.change
    return {"path": file.path, "change": change, "diff": "".join(f"{line}\n" for line in _lines(file))}


def _lines(file: FileReport) -> list[str]:
    return unified_diff(file.path, file.before, file.after)
