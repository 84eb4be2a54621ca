"""Places of settings in configuration files, for messages: TOML is parsed without them, so the text is searched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opschema_cli.errors import OpschemaError
from opschema_cli.regular_files import read_regular

_HEADER = re.compile(r"[ \t]*\[+([^\[\]\n]*)\]")
_OWN_TABLE = "tool.opschema"


class WordError(OpschemaError):
    """An error about one ``word``, a key or value of a configuration file."""

    def __init__(self, message: str, word: str) -> None:
        super().__init__(message)
        self.word = word


@contextmanager
def placed(path: str, word: str | None = None, text: str | None = None) -> Iterator[None]:
    """Begin the message of a :class:`WordError`, or of any error if there is a ``word``, with the place in the configuration file:
    with a line if the word of the error, or else this one, is written on one line alone. ``text`` is the file's if another one
    than on the disk counts.

    Raises:
        OpschemaError: the error, with its place if there is a ``path``.
    """
    try:
        yield
    except OpschemaError as error:
        written = error.word if isinstance(error, WordError) else word
        if not path or written is None:
            raise
        raise OpschemaError(f"{path}{_line(path, written, text)}: {error}") from error.__cause__


def _line(path: str, word: str, text: str | None) -> str:
    if not word:
        return ""
    if text is None:
        try:
            text = read_regular(Path(path)).decode()
        except (OSError, UnicodeDecodeError):
            return ""
    found = [number for number, line in _lines(path, text) if _holds(line, word)]
    return f":{found[0]}" if len(found) == 1 else ""


def _lines(path: str, text: str) -> Iterator[tuple[int, str]]:
    """The lines of opschema's settings, with their numbers."""
    inside = own_file = not path.endswith("pyproject.toml")
    for number, line in enumerate(text.split("\n"), 1):
        header = _HEADER.match(line)
        if header is not None and not own_file:
            inside = f"{header[1].strip()}.".startswith(f"{_OWN_TABLE}.")
        if inside and not line.lstrip().startswith("#"):
            yield number, line


def _holds(line: str, word: str) -> bool:
    """Whether a line contains a word as a key, in the name of a table, or as a string."""
    before, behind = r"(?<![\w*?/\\.-])", r"(?![\w*?/\\-])"
    return re.search(f"{before}{re.escape(word)}{behind}|[.]{re.escape(word)}[ \t]*\\]", line) is not None
