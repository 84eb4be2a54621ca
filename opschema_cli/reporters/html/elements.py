"""Text of others as HTML: escaped, with every character visible that a browser would obey or hide."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opschema_cli.reporters.escape import glyph

_ACTIVE = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
_TABLE = str.maketrans(_ACTIVE)
_QUOTED = re.compile(r"(`[^`]+`)")


def text(value: str) -> str:
    """The text, escaped for content and for quoted attributes; tabs stay, other controls become escapes."""
    if value.isascii() and value.isprintable():
        return value.translate(_TABLE)
    return "".join([character if character == "\t" else glyph(character) for character in value]).translate(_TABLE)


def marked_text(value: str) -> str:
    r"""Escape a text for HTML content, and highlight its escapes to tell them from a literally written ``\u202e``."""
    if value.isascii() and value.isprintable():
        return value.translate(_TABLE)
    return "".join(map(_marked, value))


def _marked(character: str) -> str:
    shown = character if character == "\t" else glyph(character)
    return shown.translate(_TABLE) if shown == character else f'<span class="escape">{shown.translate(_TABLE)}</span>'


def prose(message: str) -> str:
    """A message whose backquoted parts are code."""
    parts = _QUOTED.split(message)
    return "".join(
        f"<code>{marked_text(part[1:-1])}</code>" if number % 2 else marked_text(part)
        for number, part in enumerate(parts)
    )


def link(label: str, uri: str) -> str:
    """A link to a page of the web, its label already HTML; the label alone for any other address."""
    return f'<a href="{text(uri)}">{label}</a>' if uri.startswith(("https://", "http://")) else label


def options(values: Iterable[str]) -> str:
    """The options of a choice, each once, sorted."""
    return "".join(f'<option value="{text(value)}">{text(value)}</option>' for value in sorted({*values}) if value)
