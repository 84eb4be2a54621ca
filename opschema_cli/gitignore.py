"""Lists of patterns as git reads them in a ``.gitignore``: the last one that matches a path or an enclosing folder decides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.globs import Glob, MalformedPattern, read_glob

_SPECIAL = re.compile(r"[*?\[\]\\]")
"""The characters with a special meaning in a pattern."""


class _Pattern(msgspec.Struct, frozen=True):
    """``ignores`` is False of one that begins with ``!``; ``folders`` of one that ends with a slash. One without a slash in it
    is matched with the last part of a path. ``begin`` and ``end`` are the letters with which all that it matches begins and ends.
    """

    glob: Glob
    ignores: bool
    folders: bool
    anywhere: bool
    begin: str
    end: str

    def matches(self, path: str, name: str) -> bool:
        """Whether the pattern matches a path whose last part is ``name``."""
        text = name if self.anywhere else path
        return text.startswith(self.begin) and text.endswith(self.end) and self.glob.matches(text)


class IgnoreSpec:
    """The patterns of one list."""

    def __init__(self, patterns: Sequence[_Pattern]) -> None:
        self._patterns = patterns
        self._folders: dict[str, bool | None] = {"": None}
        self._by_end: dict[str, list[_Pattern]] = {}

    def verdict(self, path: str) -> bool | None:
        """Whether a path is ignored; None if no pattern matches it. A folder ends with a slash.

        What lies in an ignored folder is ignored, whatever else is said of it.
        """
        if path.endswith("/"):
            return self._folder(path[:-1])
        above = self._folder(path.rpartition("/")[0])
        own = None if above else self._last(path, is_folder=False)
        return above if own is None else own

    def ignores(self, path: str) -> bool:
        """Whether a path is ignored."""
        return bool(self.verdict(path))

    def _folder(self, path: str) -> bool | None:
        if path not in self._folders:
            above: bool | None = None
            for end in (*(match.start() for match in re.finditer("/", path)), len(path)):
                folder = path[:end]
                if folder not in self._folders:
                    own = None if above else self._last(folder, is_folder=True)
                    self._folders[folder] = above if own is None else own
                above = self._folders[folder]
        return self._folders[path]

    def _last(self, path: str, *, is_folder: bool) -> bool | None:
        name = path.rpartition("/")[2]
        for pattern in self._ending(path[-1:]):
            if (is_folder or not pattern.folders) and pattern.matches(path, name):
                return pattern.ignores
        return None

    def _ending(self, letter: str) -> list[_Pattern]:
        """The patterns that may match paths with this last letter, the last one first."""
        if letter not in self._by_end:
            self._by_end[letter] = [item for item in reversed(self._patterns) if item.end[-1:] in ("", letter)]
        return self._by_end[letter]


def glob_spec(patterns: Iterable[str], where: str = "pattern") -> IgnoreSpec:
    """Patterns as git reads them.

    Raises:
        OpschemaError: one is malformed; the message begins with ``where``.
    """
    found: list[_Pattern] = []
    for text in patterns:
        try:
            found += _read(text)
        except MalformedPattern:
            raise OpschemaError(f"{where}: `{text}` is not a pattern of a .gitignore") from None
    return IgnoreSpec(found)


def _read(line: str) -> Iterator[_Pattern]:
    text = re.sub(r"(?<!\\) +\Z", "", line)
    if not text or text.startswith("#"):
        return
    ignores = not text.startswith("!")
    text = text if ignores else text[1:]
    folders = text.endswith("/")
    body = text[:-1] if folders else text
    if not body.strip("/"):
        raise MalformedPattern
    glob = body.removeprefix("/")
    plain = _SPECIAL.split(glob)
    end = plain[-1].rpartition("/")[2] if "\\" not in glob else ""
    yield _Pattern(read_glob(glob), ignores, folders, "/" not in body, plain[0], end)
