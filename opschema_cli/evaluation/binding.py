"""Binding of a call's arguments to parameters."""

from __future__ import annotations

from opschema_cli.evaluation.changes import changes_in
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.limits import MAX_CALLER_FRAMES, MAX_CALLERS
from opschema_cli.evaluation.values import Arguments, BoundArgument, Frame, Func, Items, Table
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr


def arguments_of(evaluator: Evaluator, frame: Frame, call: Expr) -> Arguments:
    """Return the arguments of a call; known unpacked arguments are listed one by one."""
    positional: list[BoundArgument] = []
    keywords: dict[str, BoundArgument] = {}
    unclear = False
    for word, expr in call.args:
        if word == "*":
            found = evaluator.evaluate(frame, expr)
            items = found[0] if len(found) == 1 and isinstance(found[0], Items) else None
            positional += items.elements if items is not None else ()
            unclear = unclear or items is None or items.open
        elif word == "**":
            table = _table(evaluator, frame, expr)
            keywords.update(table.words)
            unclear = unclear or table.open
        elif word:
            keywords[word] = BoundArgument(frame, expr)
        elif not unclear:
            positional.append(BoundArgument(frame, expr))
    return Arguments(frame, call, tuple(positional), keywords, unclear)


def _table(evaluator: Evaluator, frame: Frame, expr: Expr) -> Table:
    """Return the table that ``**`` unpacks, without the keys that code removes from it."""
    found = evaluator.evaluate(frame, expr)
    if len(found) != 1 or not isinstance(found[0], Table):
        return Table((), True)
    removed = changes_in(frame.body.file).removed.get(expr.text, ()) if expr.kind == "name" else ()
    if not removed:
        return found[0]
    left = () if "" in removed else tuple(entry for entry in found[0].entries if entry[0] not in removed)
    return Table(left, True)


def callers(evaluator: Evaluator, body: Body, depth: int = MAX_CALLERS) -> list[Frame]:
    """Return a frame of a body for each call of its function in the tree; the frame without a call if there is none, or if there
    are many.
    """
    owner = next((item for item in body.outward() if item.function is not None), None)
    assumed = evaluator.frames.assumed(body)
    if owner is not body or depth <= 0 or body.parent is None or body.parent.function is not None:
        return [assumed]
    calls = evaluator.bodies.calls_of(body)
    function = Func(body, evaluator.frames.assumed(body.parent))
    found: list[Frame | None] = []
    for caller, call in calls:
        for frame in callers(evaluator, caller, depth - 1):
            arguments = arguments_of(evaluator, frame, call)
            found.append(evaluator.frames.entered(function, _of_method(evaluator, body, arguments)))
            if len(found) > MAX_CALLER_FRAMES:
                return [assumed]
    known = [frame for frame in found if frame is not None]
    return known if known and len(known) == len(found) else [assumed]


def _of_method(evaluator: Evaluator, body: Body, arguments: Arguments) -> Arguments:
    """Return the arguments of a call, preceded by the object that the method is called on."""
    this = evaluator.frames.assumed(body).bindings.get(body.this) if body.this and body.method is body else None
    if this is None:
        return arguments
    return Arguments(arguments.frame, arguments.call, (this, *arguments.positional), arguments.keywords, arguments.open)
