"""The strings that a name may be, however it is put together: a constant, ``+``, an f-string, a class attribute."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import prod

from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import ClassRef, ValueRef
from opschema_cli.source.python import Expr

MAX_NAMES = 20_000
"""Most strings that one expression is taken to stand for."""


def strings(bodies: Bodies, body: Body, expr: Expr, hops: int) -> frozenset[str] | None:
    """The strings that an expression may be; None when they are not known."""
    if expr.kind == "const":
        return frozenset({expr.value}) if isinstance(expr.value, str) else None
    if expr.kind == "binary" and expr.text == "+":
        return _products(strings(bodies, body, item, hops) for item in expr.items)
    if expr.kind == "name":
        return _named(bodies, body, expr.text, expr.start, hops)
    if expr.kind == "fstring":
        return _products(_part(bodies, body, part, hops) for part in expr.items)
    return None


def _part(bodies: Bodies, body: Body, part: Expr, hops: int) -> frozenset[str] | None:
    """The strings that a part of an f-string may be."""
    if isinstance(part.value, str):
        return frozenset({part.value})
    plain = part.kind == "field" and not part.text and len(part.items) == 1 and part.items[0].kind == "name"
    return _named(bodies, body, part.items[0].text, part.start, hops) if plain else None


def _named(bodies: Bodies, body: Body, dotted: str, at: int, hops: int) -> frozenset[str] | None:
    first, _, rest = dotted.partition(".")
    if rest:
        return _union(_of_class(bodies, ref, rest) for ref in bodies.classes_named(body, first, at))
    binder = body.binder(first) or bodies.module(body.file)
    values = binder.values(first) if hops > 0 else None
    return _union(strings(bodies, binder, value, hops - 1) for value in values or ())


def _of_class(bodies: Bodies, ref: ClassRef, name: str) -> frozenset[str] | None:
    found = bodies.program.member(ref, name)
    value = found.assign.value if isinstance(found, ValueRef) else None
    return frozenset({value.value}) if value is not None and isinstance(value.value, str) else None


def _union(found: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    items = list(found)
    known = [item for item in items if item is not None]
    return frozenset[str]().union(*known) if items and len(known) == len(items) else None


def _products(found: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    items = list(found)
    known = [item for item in items if item is not None]
    if len(known) != len(items) or prod(map(len, known)) > MAX_NAMES:
        return None
    return frozenset(map("".join, product(*known)))
