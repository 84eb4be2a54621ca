"""Containers: their elements, subscripts, slices, displays and comprehensions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import get_args

from opschema_cli.evaluation.conditions import holds
from opschema_cli.evaluation.enums import member_named
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.limits import MAX_STRINGS, MAX_TURNS
from opschema_cli.evaluation.strings import cut, mapped
from opschema_cli.evaluation.values import (
    UNKNOWN,
    BoundArgument,
    ClassValue,
    Frame,
    Items,
    ItemsKind,
    Plain,
    Table,
    Text,
    Unknown,
    Value,
    known,
)
from opschema_cli.source.python import Constant, Expr


def made(frame: Frame, values: Sequence[Value]) -> tuple[BoundArgument, ...]:
    """Return elements that are not written as expressions."""
    return tuple(BoundArgument(frame, None, (value,)) for value in values)


def elements(evaluator: Evaluator, frame: Frame, value: Value) -> tuple[BoundArgument, ...] | None:
    """Return the elements of an iterable value; None if they are not known, or the evaluator has exceeded its steps."""
    found: tuple[BoundArgument, ...] | None = None
    if isinstance(value, Items):
        found = value.elements if not value.open else None
    elif isinstance(value, Table):
        found = made(frame, [known(key) for key, _ in value.entries]) if not value.open else None
    elif isinstance(value, Text) and value.names is not None and len(value.names) == 1:
        found = made(frame, [known(char) for char in min(value.names)]) if len(min(value.names)) <= MAX_TURNS else None
    elif isinstance(value, ClassValue):
        found = made(frame, evaluator.members(value.ref)) or None
    return found if found is not None and evaluator.spend(len(found)) else None


def pairs(frame: Frame, table: Table) -> Items:
    """Return the items of a dictionary."""
    found = [made(frame, (Items((*made(frame, (known(key),)), item)),)) for key, item in table.entries]
    return Items(tuple(item for (item,) in found), "list", table.open)


# Subscripts


def subscript(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    """Yield the values of ``holder[key]`` and ``holder[lower:upper:step]``."""
    if len(expr.items) != 2:
        yield Unknown()
    elif expr.items[1].kind == "slice":
        yield from _sliced(evaluator, frame, *expr.items)
    else:
        for holder, key in product(*(evaluator.evaluate(frame, item) for item in expr.items)):
            yield from _item(evaluator, holder, key)


def _item(evaluator: Evaluator, holder: Value, key: Value) -> Iterator[Value]:
    word = constant(key)
    if isinstance(holder, Text):
        yield cut(holder, word[0] if word else None)
    elif isinstance(holder, ClassValue) and word:
        found = member_named(evaluator, holder.ref, str(word[0]))
        yield from UNKNOWN if found is None else (found,)
    else:
        yield from evaluator.values(_held(holder, word[0])) or UNKNOWN if word else UNKNOWN


def _held(holder: Value, key: Constant) -> BoundArgument | None:
    """Return the element of a container under a key."""
    if isinstance(holder, Items) and isinstance(key, int) and not holder.open:
        return holder.elements[key] if -len(holder.elements) <= key < len(holder.elements) else None
    return dict(holder.entries).get(key) if isinstance(holder, Table) else None


def constant(value: Value) -> tuple[Constant] | None:
    """Return the only possible constant of a value, in a tuple."""
    if isinstance(value, Text) and value.names is not None and len(value.names) == 1:
        return (min(value.names),)
    return (value.value,) if isinstance(value, Plain) else None


def _sliced(evaluator: Evaluator, frame: Frame, holder: Expr, bounds: Expr) -> Iterator[Value]:
    ends = [_bound(evaluator, frame, item) for item in bounds.items]
    clear = [end[0] for end in ends if end is not None]
    if len(clear) != 3 or clear[2] == 0:
        yield Unknown()
        return
    part = slice(*clear)
    for value in evaluator.evaluate(frame, holder):
        if isinstance(value, Text):
            yield mapped(value, lambda name: name[part])
        elif isinstance(value, Items) and not value.open:
            yield Items(value.elements[part], value.kind)
        else:
            yield Unknown()


def _bound(evaluator: Evaluator, frame: Frame, expr: Expr) -> tuple[int | None] | None:
    """Return a bound of a slice; None if it is not known."""
    if expr.kind == "absent":
        return (None,)
    values = evaluator.evaluate(frame, expr)
    found = values[0].value if len(values) == 1 and isinstance(values[0], Plain) else ""
    return (found,) if found is None or isinstance(found, int) else None


# Displays


def display(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    """Yield the value of ``[a, b]``, ``(a, b)`` or ``{a, b}``, with unpacked elements."""
    found: list[BoundArgument] = []
    is_open = False
    for item in expr.items:
        inner = _unpacked(evaluator, frame, item.items[0]) if item.kind == "starred" else (BoundArgument(frame, item),)
        is_open = is_open or inner is None
        found += inner or ()
        if len(found) > MAX_STRINGS:
            yield Unknown("it is too large")
            return
    yield Items(tuple(found), kind_of(expr.kind), is_open)


def kind_of(word: str) -> ItemsKind:
    """Return the container that an expression of a kind makes; for a comprehension, that of its name."""
    return next((kind for kind in get_args(ItemsKind) if word.startswith(kind)), "list")


def _unpacked(evaluator: Evaluator, frame: Frame, expr: Expr) -> tuple[BoundArgument, ...] | None:
    values = evaluator.evaluate(frame, expr)
    return elements(evaluator, frame, values[0]) if len(values) == 1 else None


def dictionary(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    """Yield the value of ``{key: value, **others}``; it is open if keys are not known."""
    found: dict[Constant, BoundArgument] = {}
    is_open = False
    for key, value in zip(expr.items[::2], expr.items[1::2], strict=True):
        if key.text == "**":
            values = evaluator.evaluate(frame, value)
            table = values[0] if len(values) == 1 and isinstance(values[0], Table) else Table((), True)
            found.update(table.entries)
            is_open = is_open or table.open
        else:
            word = _key(evaluator, frame, key)
            is_open = is_open or word is None
            found.update({word[0]: BoundArgument(frame, value)} if word is not None else {})
    yield Table(tuple(found.items()), is_open)


def _key(evaluator: Evaluator, frame: Frame, key: Expr) -> tuple[Constant] | None:
    if key.kind == "const":
        return (key.value,)
    values = evaluator.evaluate(frame, key)
    return constant(values[0]) if len(values) == 1 else None


# Comprehensions


def comprehension(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    """Yield the value of a comprehension over known elements."""
    turns = _turns(evaluator, frame, [item for item in expr.items if item.kind == "for"])
    if turns is None:
        yield Unknown()
    elif expr.kind == "dictcomp":
        keys = [_key(evaluator, turn, expr.items[0]) for turn in turns]
        entries = {key[0]: BoundArgument(turn, expr.items[1]) for key, turn in zip(keys, turns, strict=True) if key}
        yield Table(tuple(entries.items()), None in keys)
    else:
        yield Items(tuple(BoundArgument(turn, expr.items[0]) for turn in turns), kind_of(expr.kind))


def _turns(evaluator: Evaluator, frame: Frame, clauses: Sequence[Expr]) -> list[Frame] | None:
    """Return a frame for each evaluation of the element; None if that is not known."""
    turns = [frame]
    for clause in clauses:
        inner: list[Frame] = []
        for turn in turns:
            found = _unpacked(evaluator, turn, clause.items[1])
            if found is None or len(inner) + len(found) > MAX_STRINGS:
                return None
            inner += [turn.binding(targets(evaluator, turn, clause.items[0], item)) for item in found]
        tested = [(turn, _admitted(evaluator, turn, clause.items[2:])) for turn in inner]
        if any(admitted is None for _, admitted in tested):
            return None
        turns = [turn for turn, admitted in tested if admitted]
    return turns


def _admitted(evaluator: Evaluator, frame: Frame, tests: Sequence[Expr]) -> bool | None:
    """Whether the conditions of a clause hold."""
    found = [holds(evaluator, frame, test) for test in tests]
    return False if False in found else None if None in found else True


def targets(evaluator: Evaluator, frame: Frame, target: Expr, element: BoundArgument) -> dict[str, BoundArgument]:
    """Return the bindings of an element to a target: a name, or several names in brackets."""
    if target.kind == "name":
        return {target.text: element}
    names = [part for part in target.walk() if part.kind == "name"]
    values = evaluator.values(element)
    parts = elements(evaluator, frame, values[0]) if len(values) == 1 else None
    if parts is None or len(parts) != len(target.items) or any(item.kind == "starred" for item in target.items):
        return {item.text: BoundArgument(frame) for item in names}
    found: dict[str, BoundArgument] = {}
    for item, part in zip(target.items, parts, strict=True):
        found.update(targets(evaluator, frame, item, part))
    return found
