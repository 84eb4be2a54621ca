"""The runtime's sources in a submodule of the tree: they are not files of the tree, but they are what its programs run on.

What is checked out lies where ``.gitmodules`` says, and git need not be asked for it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import islice

import msgspec

from opschema_cli.project import Project
from opschema_cli.workspace import join
from opschema_rules.pypto.runtime_sources import SOURCES

_NESTED, _MOST, _LONGEST = 3, 100, 1000
"""Limits for following submodules: depth, number, and length of a path."""

_SECTION = re.compile(r"(?m)^[ \t]*\[")
_SIMPLER = re.compile(r"(?:^|[/:\\])simpler(?:\.git)?/*\Z", re.IGNORECASE)
_VALUE = re.compile(r'(?m)^[ \t]*(path|url)[ \t]*=[ \t]*"?([^"\r\n]*?)"?[ \t]*\r?$')


class Submodule(msgspec.Struct, frozen=True):
    """The path of a submodule, and whether it is simpler, by the address that it is fetched from."""

    path: str
    is_simpler: bool


def submodules(project: Project) -> list[Submodule]:
    """Return the submodules of the tree, each with those of its checked-out files."""
    return list(islice(_below(project, "", _NESTED), _MOST))


def _below(project: Project, folder: str, depth: int) -> Iterator[Submodule]:
    path = posixpath.join(folder, ".gitmodules")
    for section in _SECTION.split(_text(project, path)) if depth else ():
        values = dict(_VALUE.findall(section))
        inner = join(folder or ".", values["path"]) if values.get("path") else "."
        if inner != "." and not inner.startswith(("..", "/")) and len(inner) <= _LONGEST:
            yield Submodule(inner, _SIMPLER.search(values.get("url", "")) is not None)
            yield from _below(project, inner, depth - 1)


def runtime_files(project: Project) -> list[str]:
    """Return the runtime files checked out in submodules that may show the contract."""
    found = (posixpath.join(item.path, name) for item in submodules(project) for name in SOURCES)
    return [path for path in dict.fromkeys(found) if project.workspace.is_file(path)]


def is_checked_out(project: Project, path: str) -> bool:
    """Whether a commit of a submodule is checked out; it may differ from the pinned one."""
    return any(project.workspace.is_file(f"{path}/{name}") for name in (".git", ".git/HEAD"))


def _text(project: Project, path: str) -> str:
    return project.workspace.peek(path).decode("utf-8", "replace") if project.workspace.is_file(path) else ""
