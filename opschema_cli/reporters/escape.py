"""Escaping of untrusted text: characters that a terminal would interpret or hide become visible escapes."""

from __future__ import annotations

from functools import lru_cache

# Not "printable" to Python, yet harmless and needed: the joiners inside words and emoji, the CJK space.
_HARMLESS = "\u200c\u200d\u3000"


@lru_cache(maxsize=8192)
def glyph(character: str, encoding: str = "utf-8") -> str:
    r"""Return the character or its escape, which is used for control characters, bidi marks, unusual spaces and what ``encoding``
    lacks.

    >>> glyph("\x1b")
    '\\x1b'
    """
    if character.isprintable() or character in _HARMLESS:
        try:
            character.encode(encoding)
        except UnicodeEncodeError:
            pass
        else:
            return character
    return character.encode("unicode_escape").decode("ascii")


def visible(text: str, encoding: str = "utf-8") -> str:
    """The text in one line, with every character shown by its ``glyph``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join([glyph(character, encoding) for character in text])
