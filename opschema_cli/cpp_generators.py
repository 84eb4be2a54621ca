"""Names of C++ functions that files other than C++ may define: templates, generators, assembly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from functools import cached_property

import msgspec

from opschema_cli.file_kinds import is_cpp
from opschema_cli.project import Project

_NO_SOURCE = (
    ".md",
    ".rst",
    ".ipynb",
    ".pyi",
    ".toml",
    ".cfg",
    ".lock",
    ".csv",
    ".svg",
    ".json",
    ".html",
    ".js",
    ".css",
)
_CPP_TEXT = re.compile(rb"#\s*include\b|\b(?:at|torch)::Tensor\b")
_WORD = re.compile(rb"[A-Za-z_]\w*")
_BEFORE_HOLE = re.compile(rb"\b([A-Za-z_]\w{2,})(?=[{@$%])")
_BEHIND_HOLE = re.compile(rb"(?<=[}@])(_\w{2,})\s*\(")
_MAX_BYTES = 1_000_000  # longer files are data


class Generators(msgspec.Struct, dict=True):
    """What the files of a tree may generate, of some ``names``."""

    project: Project
    names: Set[bytes]

    def may_define(self, name: str) -> bool:
        """Whether a file mentions a name, or its beginning or end around a hole."""
        own = name.encode()
        return any(own in words or own.startswith(starts) or own.endswith(ends) for words, starts, ends in self._found)

    @cached_property
    def _found(self) -> list[tuple[Set[bytes], tuple[bytes, ...], tuple[bytes, ...]]]:
        found: list[tuple[Set[bytes], tuple[bytes, ...], tuple[bytes, ...]]] = []
        for data in self._contents():
            words, starts = set(_WORD.findall(data)) & self.names, set(_BEFORE_HOLE.findall(data))
            ends = set(_BEHIND_HOLE.findall(data))
            if words or starts or ends:
                found.append((words, tuple(starts), tuple(ends)))
        return found

    def _contents(self) -> Iterator[bytes]:
        for path in self.project.workspace.files:
            if is_cpp(path) or path.endswith(_NO_SOURCE):
                continue
            data = self.project.workspace.peek(path)
            is_code = not path.endswith(".py") or _CPP_TEXT.search(data) is not None
            if len(data) <= _MAX_BYTES and b"\0" not in data[:1024] and is_code:
                yield data
