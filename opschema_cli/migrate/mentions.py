"""Leftover mentions of removed names: in code, comments, docstrings, YAML, prose."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.project import Project
from opschema_cli.source.text import Source, Span
from opschema_cli.workspace import ReadError


class Mention(msgspec.Struct, frozen=True):
    """A name as a word of a file's text."""

    name: str
    place: Place


def mentions(project: Project, names: Collection[str], paths: Iterable[str] | None = None) -> Iterator[Mention]:
    """Yield every place where one of ``names`` is a separate word: not next to a letter, digit or underscore.

    Looks into ``paths``, or into all files of the workspace; one that cannot be read as text mentions nothing.
    """
    pattern = _pattern(names)
    for source in texts_with(project, names, paths):
        for match in pattern.finditer(source.text):
            yield Mention(match.group(), Place(source.path, Span(*match.span())))


def occurrences(text: str, name: str) -> Iterator[Span]:
    """Spans in which a text has ``name`` as a separate word."""
    for match in _pattern([name]).finditer(text):
        yield Span(*match.span())


def texts_with(project: Project, names: Collection[str], paths: Iterable[str] | None = None) -> Iterator[Source]:
    """The files that may hold one of ``names``, as a word or in one; to decode all files of a tree takes long."""
    for path in (project.workspace.files if paths is None else paths) if names else ():
        try:
            if _may_hold(project.workspace.data(path), names):
                yield project.workspace.source(path)
        except ReadError:
            continue


def _may_hold(data: bytes, names: Iterable[str]) -> bool:
    wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    return wide or not all(name.isascii() for name in names) or any(name.encode() in data for name in names)


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    # The longest first: of names that begin alike, the longest is meant.
    words = sorted(names, key=lambda name: (-len(name), name))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)")
