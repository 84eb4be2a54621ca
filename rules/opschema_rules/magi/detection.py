"""Detects that a tree makes ops with ``magi_register_custom_op``, without importing the rest of the pack."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from opschema_cli.lint.pack import Speed
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_rules.shipped import shipped_pack

MARK = "magi_register_custom_op"
"""Text that every file holds that makes ops with the decorator itself."""


class MagiOptions(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``magi`` is the contract of the installed MagiCompiler: ``dataclasses`` from its commit e68e0b0 on, ``plain`` before;
    empty, it is read from the tree.
    """

    magi: Literal["", "plain", "dataclasses"] = ""


def holding(project: Project, words: Iterable[str]) -> Iterator[str]:
    """The Python files that hold one of the words."""
    holds = _holder(words)
    return (path for path in _modules(project) if holds(project.workspace.peek(path)))


def _holder(words: Iterable[str]) -> Callable[[bytes], bool]:
    parts = [word.encode() for word in words]  # found several times as fast by themselves
    mark = re.compile(rb"\b(?:" + b"|".join(map(re.escape, parts)) + rb")\b")
    return lambda data: any(part in data for part in parts) and mark.search(data) is not None


_MENTIONS = Reading("magi mentions", _holder([MARK]), bool)


def _modules(project: Project) -> Iterator[str]:
    return (path for path in project.workspace.files if path.endswith(".py"))


def detect(project: Project, options: MagiOptions) -> bool:
    """Whether a file mentions the decorator."""
    return next(reads(project, options), None) is not None


def reads(project: Project, options: MagiOptions) -> Iterator[str]:
    """The Python files that the pack reads in any case."""
    return (path for path, found in project.scan(_MENTIONS, _modules(project)) if found)


_USES = re.compile(rb"(?m)^[ \t]*(?:@|from\b|import\b)[^\n]*\b%s\b|\b%s[ \t]*\(" % (MARK.encode(), MARK.encode()))


def claims(project: Project, options: MagiOptions, path: str) -> bool:
    """Whether a Python file imports the decorator or makes an op with it."""
    return path.endswith(".py") and _USES.search(project.workspace.peek(path)) is not None


LAZY_PACK = shipped_pack(__name__, detect, MagiOptions, claims, speed=Speed(reads))
