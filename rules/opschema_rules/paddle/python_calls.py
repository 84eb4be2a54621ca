"""Calls of the generated functions in Python (``_C_ops.f(x, 1)``), which take their arguments by position."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.readings import Reading
from opschema_cli.source.text import Span
from opschema_rules.paddle.model import OpEntry, Tree

_MUTE = re.compile(
    r"#[^\n]*|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL
)
_CALL = re.compile(r"(?<![\w.])(?:paddle\s*\.\s*)?_C_ops\s*\.\s*(\w+)\s*\(")
_MARK = re.compile(r"[()\[\]{},=]|\blambda\b")
_KEYWORD = re.compile(r"\s*(?:\*|\w+\s*=(?!=))")
MAX_CALL = 10_000
"""Most characters of a call that is read."""


class Call(msgspec.Struct, frozen=True, array_like=True):
    """A call: the function, its place, and the number of arguments."""

    name: str
    span: Span
    count: int


def _calls(text: str) -> list[Call]:
    if "_C_ops" not in text:
        return []
    code = _MUTE.sub(lambda found: "'" + "_" * (len(found[0]) - 1) if found[0][0] != "#" else " " * len(found[0]), text)
    counted = ((found, _count(code, found.end())) for found in _CALL.finditer(code))
    return [Call(found[1], Span(*found.span(1)), count) for found, count in counted if count is not None]


def _count(code: str, start: int) -> int | None:
    """The number of arguments of a call whose parenthesis opens before ``start``; None if it is not known, or some have names."""
    depth, begin, count = 0, start, 0
    for mark in _MARK.finditer(code, start, start + MAX_CALL):
        if mark[0] == "lambda":
            return None
        if mark[0] in "([{":
            depth += 1
        elif depth and mark[0] in ")]}":
            depth -= 1
        elif not depth and mark[0] in ",)":
            argument = code[begin : mark.start()]
            if _KEYWORD.match(argument) is not None:
                return None
            count += bool(argument.strip())
            if mark[0] == ")":
                return count
            begin = mark.end()
    return None


_CALLS = Reading("paddle calls of Python", _calls, list[Call])


class PythonCall(msgspec.Struct, frozen=True, eq=False):
    """A call of an operator in Python, and the entries that it may mean."""

    path: str
    call: Call
    entries: list[OpEntry]

    @property
    def place(self) -> Place:
        """The name of the operator."""
        return Place(self.path, self.call.span)


def read_calls(tree: Tree) -> Iterator[PythonCall]:
    """The calls of operators whose arguments are known; an in-place one takes the same as its operator."""
    paths = [path for path in tree.project.workspace.files if path.endswith(".py")]
    peek = tree.project.workspace.peek
    for path, calls in tree.project.readings(_CALLS, [path for path in paths if b"_C_ops" in peek(path)]).items():
        for call in calls:
            name = call.name.rstrip("_")
            found = tree.by_name.get(name, ()) or tree.by_name.get(name.removeprefix("sparse_"), ())
            entries = [entry for entry in found if not entry.is_legacy]
            if entries and all(entry.is_sound for entry in entries):
                yield PythonCall(path, call, entries)
