"""Bindings of a name that reach a place: the last one before it, and earlier ones if a branch may have skipped that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from opschema_cli.source.python import Assign, Binding, Scope
from opschema_cli.source.resolution import bindings_of
from opschema_cli.source.text import Span


def bindings(scope: Scope, name: str) -> list[Binding]:
    """Return the bindings of a name in a scope, in source order."""
    found = bindings_of(scope, name)
    return sorted(found, key=lambda item: item.start) if len(found) > 1 else found


def bound_at(item: Binding) -> int:
    """Return the place from which on a binding applies: for an assignment its end, since its value does not see it."""
    return item.statement.end if isinstance(item, Assign) and item.value is not None else item.start


def reaching(found: Iterable[Binding], guards_at: Callable[[int], set[Span]], at: int | None) -> list[Binding]:
    """Return the bindings that a use at ``at`` may see, last one first; None means after all of them.

    ``guards_at`` returns the stretches around a place that may not run.
    """
    kept: list[Binding] = []
    around_use = guards_at(at) if at is not None else set()
    for item in sorted(found, key=bound_at, reverse=True):
        kept.append(item)
        if guards_at(item.start) <= around_use:
            break
    return kept


def guards(scope: Scope, at: int) -> Iterator[Span]:
    """Yield the stretches around a place that may not run."""
    return scope.guarding.around(at)


def loops(scope: Scope, at: int) -> Iterator[Span]:
    """Yield the bodies of ``for`` loops around a place, which may not run either."""
    return (item.body for item in scope.loops if item.body.start <= at < item.body.end)


def excludes(scope: Scope, first: int, second: int) -> bool:
    """Whether only one of two places runs: they are in different branches of one ``if``."""
    for item in scope.conditions:
        if item.orelse is not None:
            inside = [_within(at, item.body) - _within(at, item.orelse) for at in (first, second)]
            if inside in ([1, -1], [-1, 1]):
                return True
    return False


def _within(at: int, span: Span) -> int:
    return int(span.start <= at < span.end)
