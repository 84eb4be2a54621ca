"""Strings with several possible values: concatenation, formatting, indexing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import product

from opschema_cli.evaluation.limits import MAX_CHARACTERS, MAX_STRINGS
from opschema_cli.evaluation.values import PackValue, Plain, Text, Unknown, Value
from opschema_cli.source.text import Place


def joined(parts: Sequence[Value]) -> Value:
    """Concatenate strings, possibly followed by a value of a pack; an unknown part hides everything after it."""
    text = frozenset({""})
    for index, part in enumerate(parts):
        if (
            isinstance(part, PackValue)
            and index == len(parts) - 1
            and (made := part.appended_to(Text(text))) is not None
        ):
            return made
        names = part.names if isinstance(part, Text) else None
        if names is None or len(text) * len(names) > MAX_STRINGS:
            start = min(text) if len(text) == 1 else ""
            return Text(None, start + (part.prefix if isinstance(part, Text) else ""))
        text = frozenset(a + b for a, b in product(text, names))
        if max(map(len, text), default=0) * len(text) > MAX_CHARACTERS:
            return Text(None)
    places = {part.place for part in parts if isinstance(part, Text) and part.place is not None}
    return Text(text, place=places.pop() if len(places) == 1 else None)


def repeated(text: Text, times: int) -> Text:
    """Return a string repeated several times."""
    longest = max(map(len, text.names or ()), default=0)
    return mapped(text, lambda name: name * times) if longest * times <= MAX_CHARACTERS else Text(None)


def mapped(text: Text, function: Callable[[str], str]) -> Text:
    """Return the result of a function for a string."""
    if text.names is None:
        return Text(None)
    return Text(frozenset(map(function, text.names)), place=text.place)


_PLAIN_FORMAT = re.compile(r"[<>^]?0?\d{0,2}[,_]?(\.\d)?[sdxXbofeg]?")


def formatted(value: Value, conversion: str = "", spec: str = "") -> Value:
    """Return a value as a field of a format string shows it; unknown for a value with its own format."""
    known = isinstance(value, Text) or (isinstance(value, Plain) and isinstance(value.value, int | float | None))
    if not known:
        return value if isinstance(value, PackValue) and not conversion and not spec else Unknown()
    if conversion == "a" or not _PLAIN_FORMAT.fullmatch(spec):
        return Text(None)
    show = repr if conversion == "r" else str
    if isinstance(value, Text):
        return value if not spec and conversion != "r" else mapped(value, lambda name: _format(show(name), spec))
    constant = value.value if isinstance(value, Plain) else None
    shown = _format(show(constant) if conversion or constant is None else constant, spec)
    return Text(frozenset({shown})) if shown else Text(None)


def _format(value: object, spec: str) -> str:
    try:
        return format(value, spec)
    except (ValueError, TypeError):
        return ""


def cut(text: Text, at: object) -> Text:
    """Return one character of a string."""
    if text.names is None or not isinstance(at, int):
        return Text(None)
    found = [name[at] for name in text.names if -len(name) <= at < len(name)]
    return Text(frozenset(found), place=text.place) if len(found) == len(text.names) else Text(None)


def any_of(texts: Sequence[Text], place: Place | None) -> Text:
    """Return alternative strings as one value."""
    place = texts[0].place or place
    known = [item.names for item in texts if item.names is not None]
    if len(known) != len(texts):
        starts = {item.start for item in texts}
        return Text(None, min(starts) if len(starts) == 1 else "", place)
    return Text(frozenset[str]().union(*known), "", place)
