"""Methods of objects and `functools.partial` as functions of the parameters that are left."""

from __future__ import annotations

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.values import Arguments, Func, Partial, Value
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Param


def bound_method(value: Value | None) -> Body | None:
    """Return the method of a value, if it is a method of an object without further arguments, without its first parameter."""
    if not isinstance(value, Partial) or not isinstance(value.target, Func):
        return None
    body, given = value.target.body, value.arguments
    alone = len(given.positional) == 1 and not given.keywords and not given.open
    return _of_object(body) if alone and _is_method(body) else None


def partial_function(value: Value | None) -> Body | None:
    """Return the function that a `partial` makes, as `inspect.signature` shows it; None if part of that is not known.

    Parameters that are bound by position are left out. One that is bound by name, and those behind it, can be passed by name
    only: an argument that is passed by position would reach the bound one again.
    """
    if not isinstance(value, Partial) or bound_method(value) is not None:
        return None
    target, given = _unwrapped(value)
    body = target.body if isinstance(target, Func) and target.wraps is None else None
    if body is None or body.function is None or given.open:
        return None
    params = _left(body.function.params, given)
    if params is None:
        return None
    bound = _is_method(body) and bool(given.positional)
    parent = body.parent.parent if bound and body.parent is not None else body.parent
    return Body(body.file, msgspec.structs.replace(body.function, params=params), None, parent)


def _unwrapped(value: Partial) -> tuple[Value, Arguments]:
    """The function under a `partial` of a `partial`, or of a method, with all that is bound."""
    target: Value = value.target
    given = value.arguments
    while isinstance(target, Partial):
        given, target = target.arguments.joined(given), target.target
    return target, given


def _left(params: tuple[Param, ...], given: Arguments) -> tuple[Param, ...] | None:
    """The parameters of a `partial`; None if the call of the function fails whatever it is passed."""
    plain = [item for item in params if item.kind in ("posonly", "normal")]
    kinds = {item.kind for item in params}
    if len(given.positional) > len(plain) and "vararg" not in kinds:
        return None
    rest = [item for item in params if item not in plain[: len(given.positional)]]
    named = {item.name for item in rest if item.kind in ("normal", "kwonly")}
    if not given.keywords.keys() <= named and "kwarg" not in kinds:
        return None
    return tuple(_by_name(rest, given))


def _by_name(params: list[Param], given: Arguments) -> list[Param]:
    found, closed = [], False
    for item in params:
        bound = item.kind in ("normal", "kwonly") and item.name in given.keywords
        closed = closed or (bound and item.kind == "normal")
        if item.kind == "vararg" and closed:
            continue
        kind = "kwonly" if closed and item.kind == "normal" else item.kind
        default = given.keywords[item.name].expr or item.default if bound else item.default
        found.append(msgspec.structs.replace(item, kind=kind, default=default))
    return found


def _is_method(body: Body) -> bool:
    return body.method is body and bool(body.this) and body.params[0].kind in ("posonly", "normal")


@cached_on_argument
def _of_object(body: Body) -> Body:
    """A method as a function of its other parameters."""
    assert body.function is not None
    assert body.parent is not None
    rest = msgspec.structs.replace(body.function, params=body.params[1:])
    return Body(body.file, rest, None, body.parent.parent)
