"""Reasons why an operator that the new side seems to lack may still be there."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate

from opschema_cli.commands.diff_sides import TableSide
from opschema_cli.diff.compare import Doubt
from opschema_cli.diff.entries import Entry
from opschema_cli.file_kinds import is_yaml
from opschema_cli.workspace import Workspace

_CODE = (".py", ".cpp", ".cc", ".cu", ".cxx", ".h", ".hpp", ".cuh", ".mm", ".inc")
_AROUND = 80
"""Number of characters to examine beside a name."""


def doubt_of(old: TableSide, side: TableSide) -> Doubt:
    """Return the questions about the files of the old side, and about the new ``side``."""
    unread, unread_before = ({item.place.path for item in one.problems} for one in (side, old))
    code = _Code(side.project.workspace)

    def was_there(entry: Entry) -> str:
        path = entry.place.path if entry.place is not None else ""
        return f"{path} cannot be read there" if path in unread_before else ""

    def still_there(entry: Entry) -> str:
        path = entry.place.path if entry.place is not None else ""
        if path in unread:
            return f"{path} cannot be read there"
        namespace, _, name = entry.name.rpartition("::")
        base = name.partition(".")[0]
        if is_yaml(path) or not namespace or not base:
            return ""
        pattern = re.compile(rf"[\"'](?:{re.escape(namespace)}::)?{re.escape(base)}(?:\.\w+)?\s*[\"'(]")
        return next((f"{where} has its name in a string" for where in code.places(base, pattern)), "")

    def still_defined(entry: Entry) -> str:
        path = entry.place.path if entry.place is not None else ""
        if not is_yaml(path) or not entry.symbol.isidentifier():
            return ""
        pattern = re.compile(rf"(?m)^class[ \t]+{entry.symbol}\b")
        return next(code.places(entry.symbol, pattern), "")

    return Doubt(still_there, was_there, still_defined)


class _Code:
    """The code of a tree, without tests, as one text, in which many names are searched."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @cached_property
    def _paths(self) -> list[str]:
        return [path for path in self._workspace.files if path.endswith(_CODE) and not _is_test(path)]

    @cached_property
    def _parts(self) -> list[str]:
        return ["\n" + self._workspace.peek(path).decode("utf-8", "replace") for path in self._paths]

    @cached_property
    def _text(self) -> str:
        return "".join(self._parts)

    @cached_property
    def _ends(self) -> list[int]:
        return [*accumulate(map(len, self._parts))]

    def places(self, name: str, pattern: re.Pattern[str]) -> Iterator[str]:
        """The files in which a pattern matches around a name."""
        start = self._text.find(name)
        while start >= 0:
            first, last = max(start - _AROUND, 0), start + len(name) + _AROUND
            if any(match.start() <= start < match.end() for match in pattern.finditer(self._text, first, last)):
                yield self._paths[bisect_right(self._ends, start)]
            start = self._text.find(name, start + len(name))


def _is_test(path: str) -> bool:
    return any(part.startswith(("test", "bench")) for part in path.split("/"))
