"""The parts of an operator, each with a label, a place and a short description; ``opschema show`` prints them above the
arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from opschema_cli.operators.model import Implementation, Operator, Registration, Use
from opschema_cli.phrases import count, some
from opschema_cli.source.text import Place, Source

Sources: TypeAlias = Callable[[str], Source | None]

MOST_USES = 8
"""Maximum number of calls, launches or tasks shown for one operator."""


class Part(msgspec.Struct, frozen=True):
    """One line."""

    label: str
    place: Place | None
    text: str


def where(place: Place, sources: Sources) -> str:
    """A place as ``path:line``; of a file outside of the workspace by its name alone."""
    path = place.path.rpartition("/")[2] if place.is_foreign else place.path
    source = sources(place.path)
    return path if source is None else f"{path}:{source.position(place.span.start).line}"


def parts_of(operator: Operator, sources: Sources) -> Iterator[Part]:
    """All parts, the declaration first."""
    definitions = [item for item in operator.registrations if item.role == "definition"]
    declared = operator.declaration
    others = [item.place for item in operator.registrations]
    yield from map(_registration, definitions)
    if declared.unresolved or not (definitions or declared.place in others):
        yield Part(declared.form, declared.place, _unresolved(declared.unresolved))
    yield from (Part(item.relation, item.place, item.name) for item in operator.related)
    registered = {item.registered for item in operator.implementations}
    for item in operator.implementations:
        own = item.place is not None and item.place == declared.place and not (definitions or item.keys)
        if not own:  # else the declaration is the code
            yield from _implementation(item, sources)
    yield from _details(operator)
    for other in operator.registrations:
        if other.role != "definition" and other.place not in registered:
            yield _registration(other)
    yield from _workloads(operator)
    yield from _uses(operator.uses)
    yield from (Part("unresolved", gap.place, gap.reason) for gap in operator.unresolved)


def _registration(item: Registration) -> Part:
    label = item.form if item.role == "definition" else item.role
    form = "" if item.role == "definition" else item.form
    words = [f"{', '.join(item.keys or ())}: {form}" if item.keys and form else form or ", ".join(item.keys or ())]
    words += [f"through `{item.helper}`"] if item.helper else []
    words += _doubts(item)
    return Part(label, item.place, ", ".join(filter(None, words)))


def _implementation(item: Implementation, sources: Sources) -> Iterator[Part]:
    symbol = item.symbol or item.text or ("generated" if item.generated else "")
    words = [f"{', '.join(item.keys)}: {symbol}" if item.keys and symbol else ", ".join(item.keys or ()) or symbol]
    if item.registered is not None and item.place is not None and item.place != item.registered:
        near = item.place.path == item.registered.path
        path, _, line = where(item.place, sources).rpartition(":")
        words[0] = f"{words[0]} (line {line})" if near else f"{words[0]} {path}:{line}".lstrip()
    if item.keys is None:
        words.append("for keys that are not known")
    if len(item.signatures) == 1:
        words.append(_unresolved(item.signatures[0].unresolved))
    yield Part(item.role, item.registered or item.place, ", ".join(filter(None, [*words, *_doubts(item)])))
    if len(item.signatures) > 1:
        for signature in item.signatures:
            yield Part(signature.name, signature.place, _unresolved(signature.unresolved))


def _doubts(item: Implementation | Registration) -> list[str]:
    return [*(["perhaps"] if item.conditional else []), *([_unresolved(item.unresolved)] if item.unresolved else [])]


def _details(operator: Operator) -> Iterator[Part]:
    yield from (Part(item.name, item.place, item.value) for item in operator.details)
    for tag in operator.declaration.tags:
        yield Part("tag", tag.place, f"{tag.name}: {tag.text}" if tag.text else tag.name)


def _workloads(operator: Operator) -> Iterator[Part]:
    if operator.rows:
        dtypes = list(dict.fromkeys(dtype for row in operator.rows for dtype in row.dtypes))
        told = (
            f"{count(len(operator.rows), 'row')} in {some(dtypes, 6)}" if dtypes else count(len(operator.rows), "row")
        )
        yield Part("workloads", operator.rows[0].place, told)


def _uses(uses: Iterable[Use]) -> Iterator[Part]:
    # Alternatives of one call are uses of one place.
    shown = list(dict.fromkeys(Part(item.form, item.place, _use(item)) for item in uses if item.form))
    yield from shown[:MOST_USES]
    if len(shown) > MOST_USES:
        yield Part(shown[-1].label, None, f"{len(shown) - MOST_USES} times more")


def _use(item: Use) -> str:
    return ", ".join(filter(None, (item.text, _unresolved(item.unresolved))))


def _unresolved(reason: str) -> str:
    return f"unresolved: {reason}" if reason else ""
