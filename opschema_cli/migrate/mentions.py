"""Where names are still mentioned after what they named is gone: in code, comments, docstrings, YAML, prose."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from opschema_cli.lint.diagnostic import Place
from opschema_cli.project import Project
from opschema_cli.source.text import Span
from opschema_cli.workspace import ReadError


@dataclass(frozen=True)
class Mention:
    """A name as a word of a file's text."""

    name: str
    place: Place


def mentions(project: Project, names: Collection[str], paths: Iterable[str] | None = None) -> Iterator[Mention]:
    """Every place where one of ``names`` stands as a word of its own: no letter, digit or underscore beside it.

    Looks into ``paths``, or into all files of the workspace; one that cannot be read as text mentions nothing.
    """
    if not names:
        return
    # The longest first: of names that begin alike, the whole one is meant.
    words = sorted(names, key=lambda name: (-len(name), name))
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)")
    for path in project.workspace.files if paths is None else paths:
        for match in pattern.finditer(_text(project, path, names)):
            yield Mention(match.group(), Place(path, Span(*match.span())))


def _text(project: Project, path: str, names: Iterable[str]) -> str:
    """The text of a file that may hold one of the names, else nothing; to decode a whole tree takes long."""
    try:
        data = project.workspace.data(path)
        wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        if wide or not all(name.isascii() for name in names) or any(name.encode() in data for name in names):
            return project.workspace.source(path).text
    except ReadError:
        pass
    return ""
