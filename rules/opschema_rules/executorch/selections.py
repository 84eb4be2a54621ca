"""Operators that builds select by name: ``ROOT_OPS`` of CMake, ``ops`` of Buck's ``et_operator_library``, files with the
operators of a model, and the option ``EXECUTORCH_SELECT_OPS_LIST`` in scripts, presets and CMake files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.source.text import Span
from opschema_rules.executorch.model import Tree

_NAME = r"[A-Za-z_]\w*::[A-Za-z_]\w*(?:\.\w+)?"
_CMAKE = re.compile(r"\bROOT_OPS\b((?:\s+(?:\"[^\"\n]*\"|\$\{\w+\}|[A-Za-z_]\w*::[\w.]+))+)")
_SET = re.compile(r"\bset\s*\(\s*(\w+)\s+([^()]*)\)")
_IN_CMAKE = re.compile(rf"(?<![\w:.-])({_NAME})(?![\w:(-])")
_BUCK = re.compile(r"\bet_operator_library\s*\(")
_OPS = re.compile(r"\bops(?:_dict)?\s*=\s*([\[{])")
_COMMENT = re.compile(r"(?<![^\s(\"\[,])#[^\n]*")
_SELECTED = re.compile(rf"(?m)^[ \t]+[\"']?({_NAME})[\"']?[ \t]*:")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_OPTION = re.compile(
    r"(?:\bset\s*\(\s*EXECUTORCH_SELECT_OPS_LIST\s+|(?:(?:\b|-D)EXECUTORCH_SELECT_OPS_LIST\"?|--root_ops)\s*[:=]\s*)"
    r"(?:\"([^\"$]*)\"|([\w:.;\\][\w:.,;\\]*)(?=[\s\"')\]}&|>]|\Z))"
)
"""A list of names, divided by commas; one with variables in it is not read."""

_ITEM = re.compile(r"[^,;\s\\]+")
_OPTION_FILES = (".sh", ".bash", ".cmake", ".yml", ".yaml", "CMakeLists.txt", "CMakePresets.json")
_BUCK_FILES = ("BUCK", "TARGETS")

MAX_CALL = 50_000
"""Maximum number of characters of a Buck call."""


class Selected(msgspec.Struct, frozen=True, eq=False):
    """An operator that a build selects."""

    tree: Tree
    name: str
    place: Place
    __repr__ = object.__repr__


def read_selections(tree: Tree) -> list[Selected]:
    """The operators that the build files of the tree select."""
    return [
        Selected(tree, name, Place(path, span))
        for path in tree.project.workspace.files
        for name, span in _selected(tree, path)
    ]


def _selected(tree: Tree, path: str) -> Iterator[tuple[str, Span]]:
    name = path.rpartition("/")[2]
    data = tree.project.workspace.peek
    if name.endswith(_OPTION_FILES) and any(
        word in data(path) for word in (b"EXECUTORCH_SELECT_OPS_LIST", b"--root_ops")
    ):
        yield from _of_option(_text(tree, path))
    if name == "CMakeLists.txt" or name.endswith(".cmake"):
        if b"ROOT_OPS" in data(path):
            yield from _of_cmake(_text(tree, path))
    elif name.endswith(".bzl") or name in _BUCK_FILES:
        if b"et_operator_library" in data(path):
            yield from _of_buck(_text(tree, path))
    elif name == "selected_operators.yaml":
        yield from _names(_text(tree, path), _SELECTED)


def _text(tree: Tree, path: str) -> str:
    """A file without comments; places are the same."""
    source = tree.project.source(path)
    return _COMMENT.sub(lambda match: " " * len(match[0]), source.text) if source is not None else ""


def _of_cmake(text: str) -> Iterator[tuple[str, Span]]:
    calls = list(_CMAKE.finditer(text))
    variables = {name for call in calls for name in _VARIABLE.findall(call[1])}
    stretches = [call.span(1) for call in calls]
    stretches += [item.span(2) for item in _SET.finditer(text) if item[1] in variables]
    for start, end in stretches:
        yield from _names(text, _IN_CMAKE, start, end)


def _of_option(text: str) -> Iterator[tuple[str, Span]]:
    for found in _OPTION.finditer(text):
        start, end = found.span(1) if found[1] is not None else found.span(2)
        items = list(_ITEM.finditer(text, start, end))
        if any("::" in item[0] for item in items):
            yield from ((item[0], Span(*item.span())) for item in items)


def _of_buck(text: str) -> Iterator[tuple[str, Span]]:
    for call in _BUCK.finditer(text):
        end = _closing(text, call.end(), "(", ")")
        for ops in _OPS.finditer(text, call.end(), end):
            closing = "]" if ops[1] == "[" else "}"
            quoted = re.compile(rf"\"({_NAME})\"")
            yield from _names(text, quoted, ops.end(), _closing(text, ops.end(), ops[1], closing))


def _closing(text: str, at: int, opening: str, closing: str) -> int:
    depth = 1
    for found in re.compile(rf"[{re.escape(opening + closing)}]").finditer(text, at, at + MAX_CALL):
        depth += 1 if found[0] == opening else -1
        if depth == 0:
            return found.start()
    return min(len(text), at + MAX_CALL)


def _names(text: str, pattern: re.Pattern[str], start: int = 0, end: int | None = None) -> Iterator[tuple[str, Span]]:
    for found in pattern.finditer(text, start, len(text) if end is None else end):
        yield found[1], Span(*found.span(1))
