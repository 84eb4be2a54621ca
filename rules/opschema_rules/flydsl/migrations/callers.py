"""Callers of traced functions. A migration only changes a signature if all of them are known."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from opschema_cli.migrate.workbench import LeftAlone
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import FunctionRef
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.migrations.references import References
from opschema_rules.flydsl.model import Call, Traced


class Group(msgspec.Struct, frozen=True):
    """Traced functions that pass a value on to each other, and all their calls."""

    functions: tuple[Traced, ...]
    calls: tuple[Call, ...]


def group_above(references: References, kernels: Iterable[Traced]) -> Group:
    """Return the functions with all traced functions that call them, directly or indirectly.

    Raises:
        LeftAlone: one is used other than by a call whose place is known.
    """
    functions: list[Traced] = []
    calls: list[Call] = []
    waiting = list(kernels)
    while waiting:
        traced = waiting.pop(0)
        if traced in functions:
            continue
        functions.append(traced)
        found = calls_of(references, traced)
        calls += found
        around = (references.tree.around(call.body) for call in found)
        waiting += [item for item in around if item is not None]
    return Group(tuple(functions), tuple(calls))


def calls_of(references: References, traced: Traced) -> list[Call]:
    """Return all calls of a traced function.

    Raises:
        LeftAlone: it is a method, is read for something else, or is called in a function that is traced with another one.
    """
    parent, path = traced.body.parent, traced.body.file.path
    if parent is not None and parent.cls is not None:
        raise LeftAlone(traced.place, f"`{traced.name}()` is a method, so not all of its calls are known")
    named = references.tree.bodies.resolve(parent, traced.name) if parent is not None else None
    if not isinstance(named, FunctionRef) or named.function is not traced.function:
        raise LeftAlone(traced.place, f"`{traced.name}` is bound more than once, so its calls are not known")
    for place in references.doubtful(path, traced.name):
        raise LeftAlone(place, f"this may be `{traced.name}()` of {path}: its module is not found in the workspace")
    calls: list[Call] = []
    for reference in references.of_function(path, traced.function):
        expr = reference.called
        if expr is None:
            reason = f"`{traced.name}` is not called here but used as a value, so not all of its calls are known"
            raise LeftAlone(reference.place, reason)
        _check_helper(references, traced, reference.body, expr)
        calls.append(Call(traced, reference.body, expr))
    return calls


def _check_helper(references: References, traced: Traced, body: Body, expr: Expr) -> None:
    """Check that a call is in a traced function itself, or in code that no traced function runs."""
    through = references.traced_through(body)
    if through is not None and references.tree.around(body) is None:
        helper = next(item.function for item in body.outward() if item.function is not None)
        reason = f"`{helper.name}()` calls `{traced.name}()`, and `{through.title}()` runs it when it is traced"
        raise LeftAlone(body.at(expr), reason)
