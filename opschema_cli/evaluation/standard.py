"""Calls of functions outside the workspace: those of dialects, and those of the standard library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from opschema_cli.evaluation.builtins import BUILTINS
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import (
    UNKNOWN,
    Arguments,
    ClassValue,
    Func,
    Instance,
    PackValue,
    Partial,
    Same,
    Text,
    Unknown,
    Value,
    Values,
    Wraps,
)

TRANSPARENT = frozenset(
    {"functools.cache", "functools.lru_cache", "staticmethod", "classmethod", "typing.no_type_check"}
    | {
        "typing.overload",
        "typing.final",
        "typing_extensions.deprecated",
        "warnings.deprecated",
        "typing_extensions.override",
    }
)
"""Decorators, called or not, that return the function unchanged."""


def called_outside(evaluator: Evaluator, name: str, arguments: Arguments) -> Iterator[Value]:
    """Yield the possible results of a call of the function with that full name."""
    read = evaluator.external_call(name)
    if read is not None:
        yield from read(evaluator, arguments)
    elif name in TRANSPARENT or evaluator.is_transparent(name):
        functions: list[Value] = [
            item for item in _plain(evaluator, arguments, 0) if isinstance(item, Func | PackValue)
        ]
        yield from functions or [Same()]
    elif name in _STANDARD:
        yield from _STANDARD[name](evaluator, arguments)
    else:
        yield Unknown(f"it is what `{name}` returns")


def _plain(evaluator: Evaluator, arguments: Arguments, index: int) -> Values:
    """Return the possible values of one positional argument; empty if it is not passed."""
    return evaluator.values(arguments.positional[index]) if index < len(arguments.positional) else ()


def _partial(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    passed = arguments.positional[1:]
    rest = Arguments(arguments.frame, arguments.call, passed, arguments.keywords, arguments.open)
    yield from (Partial(target, rest) for target in _plain(evaluator, arguments, 0) or UNKNOWN)


def _wraps(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    for item in _plain(evaluator, arguments, 0) or UNKNOWN:
        yield Wraps(item) if isinstance(item, Func) else Unknown()


def _update_wrapper(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    inner, shown = (_plain(evaluator, arguments, index) or UNKNOWN for index in (0, 1))
    for outer, function in product(inner, shown):
        known = isinstance(outer, Func) and isinstance(function, Func)
        yield Func(outer.body, outer.frame, function) if known else Unknown()  # type: ignore[union-attr, arg-type]


def _getattr(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    holders, keys = (_plain(evaluator, arguments, index) or UNKNOWN for index in (0, 1))
    for holder, key in product(holders, keys):
        names = key.names if isinstance(key, Text) else None
        found = (item for word in sorted(names or ()) for item in evaluator.attribute(holder, word))
        yield from found if names else UNKNOWN


def _type(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    for item in _plain(evaluator, arguments, 0) or UNKNOWN:
        yield ClassValue(item.ref, item.frame is None) if isinstance(item, Instance) else Unknown()


_STANDARD: dict[str, Callable[[Evaluator, Arguments], Iterator[Value]]] = {
    "functools.partial": _partial,
    "functools.wraps": _wraps,
    "functools.update_wrapper": _update_wrapper,
    "getattr": _getattr,
    "type": _type,
    **BUILTINS,
}
