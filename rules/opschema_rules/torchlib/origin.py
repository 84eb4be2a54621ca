"""The origin of a registration: the call that is to blame for it, when its module makes it, and who else may make it."""

from __future__ import annotations

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import Frame, Func, Items, Text, Unknown, Value
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Use
from opschema_rules.torchlib.registrations import Event


def origin(
    evaluator: Evaluator, event: Event, function: Func | None, names: Text, schema: Text | None = None
) -> tuple[Frame, Expr]:
    """The call that is to blame for a registration: of a helper that is passed the function, the schema or, when neither is
    known, the name, its call.
    """
    frame, call = event.frame, event.call
    while frame.site is not None and _is_passed(evaluator, frame, function, names, schema):
        site = frame.site
        frame, call = site.frame, site.call
    return frame, call


def moment(event: Event, function: Func) -> int | None:
    """The position that a function's module has reached when an event takes place; None when it is not known."""
    frame, call = event.frame, event.call
    while (site := frame.site) is not None:
        frame, call = site.frame, site.call
    within = any(body.function is not None for body in frame.body.outward())
    return None if within or frame.body.file is not function.shown.body.file else call.start


def _is_passed(evaluator: Evaluator, frame: Frame, function: Func | None, names: Text, schema: Text | None) -> bool:
    passed = [value for given in frame.bindings.values() for value in evaluator.values(given)]
    held = [given for value in passed if isinstance(value, Items) for given in value.elements]
    passed += [item for given in held for item in evaluator.values(given)]
    if function is None:
        return any(_is_name(item, names) for item in passed)
    shown = function.shown
    return any(
        item == schema if isinstance(item, Text) else isinstance(item, Func) and item.shown == shown for item in passed
    )


def _is_name(value: Value, names: Text) -> bool:
    """Whether a value identifies the names: one that they end with, or a function of that name."""
    if isinstance(value, Func) and names.names:
        function = value.shown.body.function
        return function is not None and all(name.endswith(f"::{function.name}") for name in names.names)
    if not isinstance(value, Text) or value.names is None or names.names is None:
        return False
    return bool(value.names) and all(any(name.endswith(word) for name in names.names) for word in value.names)


def is_mentioned(evaluator: Evaluator, function: Body) -> bool:
    """Whether the code may use a function elsewhere than where it is seen to be called."""
    name = function.function.name if function.function is not None else ""
    uses = ((body, use) for body in evaluator.bodies.near(name) for use in body.scope.uses)
    return any(_may_be(evaluator, body, use, function) for body, use in uses if use.name.rpartition(".")[2] == name)


def _may_be(evaluator: Evaluator, body: Body, use: Use, function: Body) -> bool:
    first, *rest = use.name.split(".")
    found = evaluator.lookup(evaluator.frames.assumed(body), first, use.start)
    for word in rest:
        found = tuple(item for value in found for item in evaluator.attribute(value, word))
    return any(isinstance(item, Unknown) or (isinstance(item, Func) and item.body is function) for item in found)
