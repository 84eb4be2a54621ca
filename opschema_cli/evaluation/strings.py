"""Strings that are not known to be one: put together, and cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from opschema_cli.evaluation.limits import MAX_STRINGS
from opschema_cli.evaluation.values import PackValue, Plain, Text, Value
from opschema_cli.source.text import Place


def joined(parts: Sequence[Value]) -> Value:
    """Strings, and a value of a pack behind them, put together; what is not known hides all behind it."""
    text = frozenset({""})
    for index, part in enumerate(parts):
        if (
            isinstance(part, PackValue)
            and index == len(parts) - 1
            and (made := part.appended_to(Text(text))) is not None
        ):
            return made
        if isinstance(part, Plain) and isinstance(part.value, int):
            part = Text(frozenset({str(part.value)}))
        names = part.names if isinstance(part, Text) else None
        if names is None or len(text) * len(names) > MAX_STRINGS:
            start = min(text) if len(text) == 1 else ""
            return Text(None, start + (part.prefix if isinstance(part, Text) else ""))
        text = frozenset(a + b for a, b in product(text, names))
    places = {part.place for part in parts if isinstance(part, Text) and part.place is not None}
    return Text(text, place=places.pop() if len(places) == 1 else None)


def cut(text: Text, at: object, ends: list[int | None] | None) -> Text:
    """One character of a string, or with ``ends`` what lies between them."""
    if text.names is None or not isinstance(at, int):
        return Text(None)
    if ends is not None:
        return Text(frozenset(name[slice(*ends)] for name in text.names), place=text.place)
    found = [name[at] for name in text.names if -len(name) <= at < len(name)]
    return Text(frozenset(found), place=text.place) if len(found) == len(text.names) else Text(None)


def any_of(texts: Sequence[Text], place: Place | None) -> Text:
    """Several strings of which one is meant, as one."""
    place = texts[0].place or place
    known = [item.names for item in texts if item.names is not None]
    if len(known) != len(texts):
        starts = {item.start for item in texts}
        return Text(None, min(starts) if len(starts) == 1 else "", place)
    return Text(frozenset[str]().union(*known), "", place)
