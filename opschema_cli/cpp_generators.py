"""Names of C++ functions that files other than C++ may define: templates, generators, assembly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, partial

import msgspec

from opschema_cli.file_kinds import is_cpp
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.word_search import variant_of

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


class _Parts(msgspec.Struct, frozen=True, array_like=True):
    """Names in a text, and parts of names before and after placeholders."""

    words: frozenset[bytes] = frozenset()
    starts: tuple[bytes, ...] = ()
    ends: tuple[bytes, ...] = ()


def _parts(data: bytes, names: frozenset[bytes], *, python: bool) -> _Parts:
    is_code = not python or _CPP_TEXT.search(data) is not None
    if len(data) > _MAX_BYTES or b"\0" in data[:1024] or not is_code:
        return _Parts()
    words = names.intersection(_WORD.findall(data))
    return _Parts(words, tuple(set(_BEFORE_HOLE.findall(data))), tuple(set(_BEHIND_HOLE.findall(data))))


class Generators(msgspec.Struct, dict=True):
    """The ``names`` that files of a tree may generate. The results for the last names with a ``purpose`` are cached."""

    project: Project
    names: frozenset[bytes]
    purpose: str

    def may_define(self, name: str) -> bool:
        """Whether a file mentions a name, or its beginning or end around a placeholder."""
        own = name.encode()
        return any(own in one.words or own.startswith(one.starts) or own.endswith(one.ends) for one in self._found)

    @cached_property
    def _found(self) -> list[_Parts]:
        found = (parts for python in (True, False) for _, parts in self.project.scan(*self._search(python=python)))
        return [parts for parts in found if parts != _Parts()]

    def _search(self, *, python: bool) -> tuple[Reading[bytes, _Parts], Iterator[str]]:
        """The reading for Python files or for others, and the files."""
        reading: Reading[bytes, _Parts] = Reading(
            f"cpp names{self.purpose} that {'Python' if python else 'other files'} may generate",
            partial(_parts, names=self.names, python=python),
            _Parts,
            variant=variant_of(name.decode() for name in self.names),
        )
        sources = (path for path in self.project.workspace.files if not (is_cpp(path) or path.endswith(_NO_SOURCE)))
        return reading, (path for path in sources if path.endswith(".py") == python)
