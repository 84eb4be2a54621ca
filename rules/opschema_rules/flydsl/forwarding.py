"""Helpers that compile a function which they are passed, with the arguments after it: ``def run(exe, *args)``."""

from __future__ import annotations

from opschema_cli.source.python import Expr, Function, Scope
from opschema_cli.source.word_index import called_word

COMPILE = "compile"
"""The last word of the FlyDSL function that takes a traced function and its arguments."""


def forwarding_call(function: Function) -> Expr | None:
    """Return the call by which a helper may compile its first argument with all others; None if it uses them in any other way."""
    params = function.params
    kinds = [item.kind for item in params]
    if function.decorators or kinds not in (["normal", "vararg"], ["posonly", "vararg"]):
        return None
    body = function.peek_body()
    if any(_binds(scope, item.name) for scope in body.walk() for item in params):
        return None
    made = [call for call in body.calls if called_word(call.items[0]) == COMPILE and call.args]
    return made[0] if len(made) == 1 and _passes_all(made[0], params[0].name, params[1].name) else None


def _passes_all(call: Expr, first: str, others: str) -> bool:
    """Whether a call is ``f(first, *others)``."""
    return [(word, item.kind, item.text) for word, item in call.args] == [("", "name", first), ("*", "name", others)]


def _binds(scope: Scope, name: str) -> bool:
    return name in scope.named or name in scope.deleted
