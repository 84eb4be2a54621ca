"""The operators of a workspace by place: the one under the cursor, and its other places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.lint.loaded import Entry
from opschema_cli.operators.model import Operator
from opschema_cli.source.text import Place, Source, Span

Side: TypeAlias = Literal["declaration", "implementation", "use"]

_WORD = re.compile(r"[\w.:]+")


class Spot(msgspec.Struct, frozen=True, eq=False):
    """A place where an operator, or one of its arguments, is written, and the side that writes it."""

    operator: Operator
    side: Side
    place: Place
    argument: str = ""


class Hit(msgspec.Struct, frozen=True, eq=False):
    """The operators under the cursor, or one argument of them, the span of the text, and its side if known."""

    operators: tuple[Operator, ...]
    span: Span
    argument: str = ""
    side: Side | None = None


def spots_of(operator: Operator) -> Iterator[Spot]:
    """All places of an operator."""
    for side, places in (
        ("declaration", _declared(operator)),
        ("implementation", _implemented(operator)),
        ("use", _used(operator)),
    ):
        for place, argument in places:
            if place is not None:
                yield Spot(operator, side, place, argument)  # type: ignore[arg-type]


_Places: TypeAlias = Iterator[tuple[Place | None, str]]


def _declared(operator: Operator) -> _Places:
    declaration = operator.declaration
    yield declaration.place, ""
    for argument in declaration.arguments or ():
        yield from ((leaf.place, leaf.name) for leaf in argument.leaves())
    yield from ((item.place, item.name) for item in declaration.returns or () if item.name)


def _implemented(operator: Operator) -> _Places:
    declared = operator.declaration.place
    for item in operator.implementations:
        yield from ((place, "") for place in (item.place, item.registered) if place != declared)
        for signature in item.signatures:
            yield signature.place, ""
            yield from ((item.place, item.stands_for or item.name) for item in signature.parameters or ())
    yield from ((item.place, "") for item in operator.registrations)


def _used(operator: Operator) -> _Places:
    for use in operator.uses:
        yield use.place, ""
        yield from ((item.place, item.argument) for item in use.passed)
    yield from ((row.place, "") for row in operator.rows)


class Table(msgspec.Struct, dict=True):
    """The operators of a workspace, and the stretches of files that declare them."""

    operators: list[Operator]
    entries: list[Entry]

    @cached_property
    def _by_file(self) -> dict[str, list[Spot]]:
        found: dict[str, list[Spot]] = {}
        for operator in self.operators:
            for spot in {(spot.place, spot.side, spot.argument): spot for spot in spots_of(operator)}.values():
                found.setdefault(spot.place.path, []).append(spot)
        return found

    @cached_property
    def _by_name(self) -> dict[str, list[Operator]]:
        found: dict[str, list[Operator]] = {}
        for operator in self.operators:
            for name in dict.fromkeys((operator.name, operator.name.rpartition("::")[2], *operator.aliases)):
                found.setdefault(name, []).append(operator)
        return found

    def in_file(self, path: str) -> list[Spot]:
        """The places in a file."""
        return self._by_file.get(path, [])

    def at(self, source: Source, offset: int) -> Hit | None:
        """Return the hit at an offset: the shortest place there, or the operator with this name, or an argument of the enclosing
        entry, or the entry's operator on its key.
        """
        around = [spot for spot in self.in_file(source.path) if spot.place.span.start <= offset <= spot.place.span.end]
        around = [spot for spot in around if "\n" not in source.text[slice(*spot.place.span)]]
        if around:
            first = min(around, key=lambda spot: (spot.place.span.end - spot.place.span.start, not spot.argument))
            same = [spot for spot in around if (spot.place, spot.argument) == (first.place, first.argument)]
            return Hit(
                tuple({id(spot.operator): spot.operator for spot in same}.values()),
                first.place.span,
                first.argument,
                first.side,
            )
        return self._named(source, offset)

    def _named(self, source: Source, offset: int) -> Hit | None:
        line = source.line_span(source.position(offset).line)
        words = (match for match in _WORD.finditer(source.text, line.start, line.end))
        word = next((match for match in words if match.start() <= offset <= match.end()), None)
        if word is None:
            return None
        text = word.group().strip(".:")
        span = Span(word.start(), word.start() + len(text))
        found = self._by_name.get(text, []) or self._by_name.get(text.replace(".", "::"), [])
        if found:
            return Hit(tuple(found), span)
        name = re.split(r"[.:]", source.text[word.start() : _end_of_part(source.text, offset)])[-1]
        for operator in self.declared_at(source.path, offset):
            if any(spot.argument == name for spot in spots_of(operator)):
                end = _end_of_part(source.text, offset)
                return Hit((operator,), Span(end - len(name), end), name)
        return None

    def declared_at(self, path: str, offset: int) -> list[Operator]:
        """The operators whose declaration an offset lies in."""
        names = {
            entry.name for entry in self.entries if entry.path == path and entry.span.start <= offset <= entry.span.end
        }
        names |= {
            entry.name for entry in self.entries if entry.path == path and entry.key.start <= offset <= entry.key.end
        }
        return [operator for operator in self.operators if operator.name in names]

    def places(self, hit: Hit, sides: Iterable[Side]) -> list[Place]:
        """Return the places of a hit on some sides."""
        wanted = frozenset(sides)
        found = (
            spot.place
            for operator in hit.operators
            for spot in spots_of(operator)
            if spot.side in wanted and spot.argument == hit.argument
        )
        return list(dict.fromkeys(found))


def _end_of_part(text: str, offset: int) -> int:
    """The end of the name that an offset lies in."""
    while offset < len(text) and (text[offset].isalnum() or text[offset] == "_"):
        offset += 1
    return offset
