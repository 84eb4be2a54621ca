"""What tells that a tree makes ops with ``magi_register_custom_op``, without importing the rest of the pack."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from opschema_cli.lint.pack import CATALOGUE, PackHead
from opschema_cli.project import Project

MARK = "magi_register_custom_op"
"""What every file that makes ops with the decorator itself holds."""


class MagiOptions(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``magi`` is the contract of the installed MagiCompiler: ``dataclasses`` from its commit e68e0b0 on, ``plain`` before;
    empty, it is told from the tree.
    """

    magi: Literal["", "plain", "dataclasses"] = ""


def holding(project: Project, words: Iterable[str]) -> Iterator[str]:
    """The Python files that hold one of the words."""
    parts = [word.encode() for word in words]  # found several times as fast by themselves
    mark = re.compile(rb"\b(?:" + b"|".join(map(re.escape, parts)) + rb")\b")
    for path in project.workspace.files:
        if path.endswith(".py"):
            data = project.workspace.peek(path)
            if any(part in data for part in parts) and mark.search(data):
                yield path


def detect(project: Project, options: MagiOptions) -> bool:
    """Whether a file mentions the decorator."""
    return next(holding(project, [MARK]), None) is not None


def reads(project: Project, options: MagiOptions) -> Iterator[str]:
    """The Python files that the pack reads in any case."""
    return holding(project, [MARK])


HEAD = PackHead("magi", detect, MagiOptions, "opschema_rules.magi.pack", Path(__file__).with_name(CATALOGUE), reads)
