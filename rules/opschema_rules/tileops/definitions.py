"""Definitions of names, found in the text of modules alone: parsing them all would cost more than the rest of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from opschema_cli.project import Project
from opschema_cli.readings import Reading

_TOP_LEVEL = re.compile(
    r"^(?:class|def|async[ \t]+def)[ \t]+(\w+)"
    r"|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)"
    r"|^(?:from[ \t]+\S+[ \t]+)?import[ \t]+(\([^)]*\)|(?:[^\n\\]|\\\n)+)",
    re.MULTILINE,
)
_CLASS = re.compile(r"^class[ \t]+(\w+)", re.MULTILINE)
_COMMENT = re.compile(r"#[^\n]*")


def top_level_names(text: str) -> set[str]:
    """Names that the module of this text binds by an unconditional statement of its own; there may be more."""
    found: set[str] = set()
    for definition, target, imported in _TOP_LEVEL.findall(text):
        found.update(filter(None, (definition, target)))
        found.update(_imported_names(imported))
    return found


_NAMES = Reading("tileops top-level names", top_level_names, set[str])


def _imported_names(listed: str) -> Iterable[str]:
    for item in _COMMENT.sub("", listed).strip("() \t\r\n").split(","):
        words = item.replace("\\\n", " ").split()
        if words:
            yield words[-1].partition(".")[0]


class Definitions:
    """The files of a workspace and their definitions, found on demand."""

    def __init__(self, project: Project, below: str) -> None:
        self.project = project
        self.files = project.workspace.under(below)

    @cached_property
    def _classes(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self.files:
            source = self.project.source(path) if path.endswith(".py") else None
            for name in _CLASS.findall(source.text) if source is not None else ():
                found.setdefault(name, []).append(path)
        return found

    @cached_property
    def _basenames(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self.files:
            found.setdefault(path.rpartition("/")[2], []).append(path)
        return found

    def all_of_class(self, name: str) -> list[str]:
        """The files that define a class at their top level."""
        return self._classes.get(name, [])

    def of_class(self, name: str) -> str | None:
        """The only file that defines a class at its top level; None when none or several do."""
        found = self.all_of_class(name)
        return found[0] if len(found) == 1 else None

    def all_of_basename(self, path: str) -> list[str]:
        """The files of the same name."""
        return self._basenames.get(path.rpartition("/")[2], [])

    def of_basename(self, path: str) -> str | None:
        """Return the only file of the same name; None if there is none, or several."""
        found = self.all_of_basename(path)
        return found[0] if len(found) == 1 else None

    def mentions(self, name: str) -> bool:
        """Whether any Python file of the workspace has a name in its text, for whatever it is."""
        word = re.compile(rf"\b{re.escape(name)}\b")
        sources = (self.project.source(path) for path in self.files if path.endswith(".py"))
        return any(source is not None and word.search(source.text) for source in sources)

    def binds(self, path: str, name: str) -> bool:
        """Whether a module is known to bind a name; False is inconclusive."""
        return name in self.project.readings(_NAMES, [path]).get(path, set())
