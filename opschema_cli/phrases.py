"""Words for things that are counted or listed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 error``, ``2 errors``."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or f'{noun}s'}"


def duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3 h 20 min``."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def some(names: Sequence[str], limit: int) -> str:
    """Return at most ``limit`` of the names: ``A, B, C and 27 more``."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def quoted(names: Iterable[str]) -> str:
    """```a`, `b`, `c```."""
    return ", ".join(f"`{name}`" for name in names)


def listed(names: Iterable[str], word: str = "and") -> str:
    """```a`, `b` and `c```."""
    return joined([f"`{name}`" for name in names], word)


def joined(parts: Sequence[str], word: str = "and") -> str:
    """``a, b and c``."""
    return f" {word} ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def clipped(text: str, limit: int) -> str:
    """Shorten a text to at most ``limit`` characters by replacing its middle with an ellipsis."""
    if len(text) <= limit:
        return text
    tail = limit // 4
    return f"{text[: limit - tail - 1]}…{text[len(text) - tail :]}"


def unbroken(text: str) -> str:
    """Source text on one line: without line breaks, and without the indentation that follows them."""
    if "\n" not in text and "\r" not in text:
        return text
    first, *others = re.split(r"[\r\n]+", text)
    pieces = [first.rstrip()]
    for line in filter(None, map(str.strip, others)):
        joins = not pieces[-1] or pieces[-1][-1] in "([{" or line[0] in ")]}"
        pieces += [line] if joins else [" ", line]
    return "".join(pieces)


def excerpt(text: str, limit: int) -> str:
    """Return a piece of source for a message, on one line of at most ``limit`` characters; an ellipsis replaces the rest."""
    line = " ".join(text[: 8 * limit].split())
    return line if len(line) <= limit and len(text) <= 8 * limit else line[: limit - 1] + "…"
