"""The runtime's sources in a submodule of the tree: they are no files of the tree, but they are what its programs run on.

Nothing asks git: what is checked out lies where ``.gitmodules`` says. A pin alone tells no contract, since which of two commits is
the older one is in the submodule's history only.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from opschema_cli.project import Project
from opschema_cli.workspace import join

_NESTED, _MOST = 3, 100
"""How deep submodules are followed, and to how many."""

_SECTION = re.compile(r"(?m)^[ \t]*\[")
_VALUE = re.compile(r'(?m)^[ \t]*(path|url)[ \t]*=[ \t]*"?([^"\r\n]*?)"?[ \t]*\r?$')

_ARCHES = ("src/a2a3", "src/a5", "src")
_FILES = (
    "src/common/task_interface/arg_direction.h",
    "src/common/platform/include/aicpu/args_dump_aicpu.h",
    "src/common/platform/include/aicpu/tensor_dump_aicpu.h",
    *(f"{arch}/platform/include/aicpu/tensor_dump_aicpu.h" for arch in _ARCHES),
    *(
        f"{arch}/runtime/{runtime}/aicpu/aicpu_executor.cpp"
        for arch in _ARCHES
        for runtime in ("host_build_graph", "tensormap_and_ringbuffer", "aicpu_build_graph", "rt2")
    ),
)
"""Where simpler has had what tells its contract."""


@dataclass(frozen=True)
class Submodule:
    """A submodule by its path, and whether it is simpler by the address that it is fetched from."""

    path: str
    is_simpler: bool


def submodules(project: Project) -> list[Submodule]:
    """The submodules of the tree, each with those of what is checked out of it."""
    return list(islice(_below(project, "", _NESTED), _MOST))


def _below(project: Project, folder: str, depth: int) -> Iterator[Submodule]:
    path = posixpath.join(folder, ".gitmodules")
    for section in _SECTION.split(_text(project, path)) if depth else ():
        values = dict(_VALUE.findall(section))
        inner = join(folder or ".", values["path"]) if values.get("path") else "."
        if inner != "." and not inner.startswith(("..", "/")):
            name = values.get("url", "").rstrip("/").removesuffix(".git").rpartition("/")[2]
            yield Submodule(inner, name == "simpler")
            yield from _below(project, inner, depth - 1)


def runtime_files(project: Project) -> list[str]:
    """The files of the runtime that are checked out in submodules, of those that tell its contract."""
    found = (posixpath.join(item.path, name) for item in submodules(project) for name in _FILES)
    return [path for path in dict.fromkeys(found) if project.workspace.is_file(path)]


def _text(project: Project, path: str) -> str:
    return project.workspace.peek(path).decode("utf-8", "replace") if project.workspace.is_file(path) else ""
