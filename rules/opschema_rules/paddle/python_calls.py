"""Calls of the generated functions in Python (``_C_ops.f(x, 1)``), which take their arguments by position."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.readings import Reading
from opschema_cli.source.call_text import CallText, counted_calls
from opschema_rules.paddle.model import OpEntry, Tree

_CALL = re.compile(r"(?<![\w.])(?:paddle\s*\.\s*)?_C_ops\s*\.\s*(\w+)\s*\(")
_CALLS: Reading[str, list[CallText]] = Reading(
    "paddle calls of Python", lambda text: list(counted_calls(text, _CALL)), list[CallText]
)


class PythonCall(msgspec.Struct, frozen=True, eq=False):
    """A call of an operator in Python, and the entries that it may mean."""

    path: str
    call: CallText
    entries: list[OpEntry]

    @property
    def place(self) -> Place:
        """The name of the operator."""
        return Place(self.path, self.call.span)


def read_calls(tree: Tree) -> Iterator[PythonCall]:
    """The calls of operators whose arguments are known; an in-place one takes the same as its operator."""
    peek = tree.project.workspace.peek
    paths = [path for path in tree.project.workspace.files if path.endswith(".py") and b"_C_ops" in peek(path)]
    for path, calls in tree.project.readings(_CALLS, paths).items():
        for call in calls:
            name = call.name.rstrip("_")
            found = tree.by_name.get(name, ()) or tree.by_name.get(name.removeprefix("sparse_"), ())
            entries = [entry for entry in found if not entry.is_legacy]
            if entries and all(entry.is_sound for entry in entries):
                yield PythonCall(path, call, entries)
