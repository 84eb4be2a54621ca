"""Calls between functions of pypto's language, which must pass as many arguments as the functions take."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.call_misfits import misfits
from opschema_cli.source.python import Expr
from opschema_rules.pypto.language import called, language_name
from opschema_rules.pypto.model import WrongCall

_CALLED = frozenset({"jit.inline", "jit.incore", "jit.opaque", "inline", "function"})
"""Decorators of functions that others call by position, with all of their arguments."""


def wrong_calls(bodies: Bodies, entry: Body, seen: set[Body]) -> Iterator[WrongCall]:
    """Yield the calls of such functions with a wrong number of arguments, in an entry and in the functions that it calls;
    ``seen`` holds the functions already checked.
    """
    waiting = [entry]
    while waiting:
        body = waiting.pop()
        if body in seen:
            continue
        seen.add(body)
        for call in body.scope.calls:
            target = called(bodies, body, call)
            if target is not None and _is_called(bodies, target):
                yield from _misfitting(body, call, target)
                waiting.append(target)


def _is_called(bodies: Bodies, target: Body) -> bool:
    """Whether a function has exactly one decorator, which is one of these, and only plain parameters."""
    function, around = target.function, target.parent
    if function is None or around is None or len(function.decorators) != 1:
        return False
    plain = all(item.kind in ("posonly", "normal") for item in function.params)
    return plain and language_name(bodies, around, function.decorator_names[0]) in _CALLED


def _misfitting(body: Body, call: Expr, target: Body) -> Iterator[WrongCall]:
    function = target.function
    assert function is not None
    params = [item for item in function.params if item.name != target.this]
    if any(call.keywords):
        return
    passed = len(call.items) - 1
    if passed != len(params) and next(misfits(call, params), None) is not None:
        yield WrongCall(body.at(call), target.at(function.span), function.name, len(params), passed)
