"""Names that the macros of a tree may make from parts (``##``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

import msgspec

from opschema_cli.project import Project
from opschema_cli.readings import Reading

_PASTE = re.compile(rb"(\w+)(?=[ \t]*##)|(?<=##)[ \t]*(\w+)")


def _pasted(data: bytes) -> list[str]:
    if b"##" not in data:
        return []
    return sorted({part.decode() for pair in _PASTE.findall(data) for part in pair if len(part) > 1})


_PASTED = Reading("cpp pasted names", _pasted, list[str])


class Pasting(msgspec.Struct, dict=True):
    """The parts of names in the macros of some C++ files."""

    project: Project
    paths: Sequence[str]

    @cached_property
    def _parts(self) -> set[str]:
        return {part for _, parts in self.project.scan(_PASTED, self.paths) for part in parts}

    def may_make(self, symbol: str) -> bool:
        """Whether a macro may make a name from parts, one of which is passed to it somewhere."""
        rests = {symbol[len(part) :] for part in self._parts if symbol.startswith(part)}
        rests |= {symbol.removesuffix(part) for part in self._parts if symbol.endswith(part)}
        return any(self._is_passed(rest.encode()) for rest in rests if rest)

    def _is_passed(self, word: bytes) -> bool:
        argument = re.compile(rb"[(,]\s*%s\s*[,)]" % re.escape(word))
        texts = map(self.project.workspace.peek, self.paths)
        return any(word in text and argument.search(text) is not None for text in texts)
