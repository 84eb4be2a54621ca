"""Reasons why an operator that the new side seems to lack may still be there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.commands.diff_sides import TableSide
from opschema_cli.diff.compare import Doubt
from opschema_cli.diff.entries import Entry
from opschema_cli.file_kinds import is_python, is_yaml
from opschema_cli.migrate.mentions import texts_with

_CODE = (".py", ".cpp", ".cc", ".cu", ".cxx", ".h", ".hpp", ".cuh", ".mm", ".inc")


def doubt_of(side: TableSide) -> Doubt:
    """The questions, asked of the files of a side."""
    unread = {item.place.path: item.message for item in side.problems}

    def still_there(entry: Entry) -> str:
        path = entry.place.path if entry.place is not None else ""
        if path in unread:
            return f"{path} cannot be read there"
        if is_yaml(path) or "::" not in entry.name:
            return ""
        base = entry.name.rpartition("::")[2].partition(".")[0]
        pattern = re.compile(rf"[\"'](?:\w+::)?{re.escape(base)}(?:\.\w+)?\s*[\"'(]")
        return next((f"{where} has its name in a string" for where in _places(side, base, pattern)), "")

    def still_defined(entry: Entry) -> str:
        path = entry.place.path if entry.place is not None else ""
        if not is_yaml(path) or not entry.symbol.isidentifier():
            return ""
        pattern = re.compile(rf"(?m)^class\s+{entry.symbol}\b")
        found = (where for where in _places(side, entry.symbol, pattern) if is_python(where))
        return next(found, "")

    return Doubt(still_there, still_defined)


def _places(side: TableSide, name: str, pattern: re.Pattern[str]) -> Iterator[str]:
    """The files of code, but for tests, that match."""
    workspace = side.project.workspace
    paths = [path for path in workspace.files if path.endswith(_CODE) and not _is_test(path)]
    for source in texts_with(side.project, [name], paths):
        if pattern.search(source.text):
            yield source.path


def _is_test(path: str) -> bool:
    return any(part.startswith(("test", "bench")) for part in path.split("/"))
