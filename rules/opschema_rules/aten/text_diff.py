"""Stretches in which two texts of one schema differ: derivatives.yaml holds copies that torchgen compares as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from opschema_cli.source.text import Span

MOST = 4
"""Maximum number of differing stretches that a message shows one by one."""

_LONGEST = 4000
_SHORT = 300
_CHUNK = re.compile(r"[^,()]*[,()]|[^,()]+")
_TOKEN = re.compile(r"\w+|->|\s+|.", re.DOTALL)
_ALIAS = r"\([a-z](?:\|[a-z])*!?(?: -> [^)]*)?\)"
_ITEM = re.compile(rf"(?:[^,()]|{_ALIAS})+")


class Stretch(NamedTuple):
    """A stretch that differs: its spans in both texts, and the entire argument or return around it."""

    here: Span
    there: Span
    mine: str
    theirs: str


def stretches(text: str, other: str) -> list[Stretch]:
    """Return the differing stretches of ``text``; all of it if nearly everything differs."""
    if max(len(text), len(other)) > _LONGEST:
        return [_whole(text, other)]
    found = list(_joined(text, other))
    return found if len(found) <= MOST else [_whole(text, other)]


def _whole(text: str, other: str) -> Stretch:
    return Stretch(Span(0, len(text)), Span(0, len(other)), text, other)


def _joined(text: str, other: str) -> Iterator[Stretch]:
    """The stretches, those in one argument or return as one: the two quotes of a default are one difference."""
    last: Stretch | None = None
    for stretch in _stretches(text, other):
        if last is not None and _is_one(text, last, stretch):
            here, there = Span(last.here.start, stretch.here.end), Span(last.there.start, stretch.there.end)
            last = Stretch(here, there, stretch.mine, stretch.theirs)
            continue
        if last is not None:
            yield last
        last = stretch
    if last is not None:
        yield last


def _is_one(text: str, last: Stretch, following: Stretch) -> bool:
    same = bool(last.mine and last.theirs) and (last.mine, last.theirs) == (following.mine, following.theirs)
    return same and not re.search(r"[,()]", text[last.here.end : following.here.start])


def _stretches(text: str, other: str) -> Iterator[Stretch]:
    for here, there in _spans(text, other):
        raw = text[slice(*here)], other[slice(*there)]
        if not any(map(str.strip, raw)):
            yield Stretch(here, there, "", "")
        elif not all(raw) and any(side.strip()[:1] == "," or side.strip()[-1:] == "," for side in raw):
            yield Stretch(here, there, *(side.strip(" ,") for side in raw))
        else:
            yield Stretch(here, there, _part(text, here), _part(other, there))


def _spans(text: str, other: str) -> Iterator[tuple[Span, Span]]:
    """Spans that differ: argument by argument first, as comparing all words of long texts takes seconds."""
    for here, there in _unequal(_CHUNK, text, other):
        mine, theirs = text[slice(*here)], other[slice(*there)]
        if max(len(mine), len(theirs)) <= _SHORT:
            yield from _within(text, here, other, there)
            continue
        pairs = list(_chunks(mine, here.start)), list(_chunks(theirs, there.start))
        if len(pairs[0]) != len(pairs[1]):
            yield here, there
            continue
        for one, two in zip(*pairs, strict=True):
            yield from _within(text, one, other, two)


def _chunks(text: str, start: int) -> Iterator[Span]:
    for match in _CHUNK.finditer(text):
        yield Span(start + match.start(), start + match.end())


def _within(text: str, here: Span, other: str, there: Span) -> Iterator[tuple[Span, Span]]:
    """Differences of two stretches, word by word."""
    for inner, across in _unequal(_TOKEN, text[slice(*here)], other[slice(*there)]):
        yield _shift(inner, here.start), _shift(across, there.start)


def _unequal(part: re.Pattern[str], text: str, other: str) -> Iterator[tuple[Span, Span]]:
    mine, theirs = part.findall(text), part.findall(other)
    at, then = _starts(mine), _starts(theirs)
    for kind, a, b, c, d in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if kind != "equal":
            yield Span(at[a], at[b]), Span(then[c], then[d])


def _shift(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by)


def _starts(tokens: list[str]) -> list[int]:
    found = [0]
    for token in tokens:
        found.append(found[-1] + len(token))
    return found


def _part(text: str, span: Span) -> str:
    """The arguments, returns and names that a stretch lies in, or touches if it is empty."""
    end = max(span.end, span.start + 1)
    items = [item for item in _ITEM.finditer(text) if item.start() < end and item.end() >= max(span.start, 1)]
    inside = [item for item in items if item.end() > span.start] or items[-1:]
    return text[inside[0].start() : inside[-1].end()].strip() if inside else text[slice(*span)]
