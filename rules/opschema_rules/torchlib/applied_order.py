"""The order in which the registering calls of one module take place."""

from __future__ import annotations

from opschema_cli.source.python import Expr, Scope


def runs_before(scope: Scope, first: Expr, second: Expr) -> bool:
    """Whether a call of a scope runs before another one. Of the decorators of a function, the last one is applied first."""
    if first.start == second.start:
        return False
    return (first.start < second.start) is not _decorate_one(scope, first, second)


def _decorate_one(scope: Scope, first: Expr, second: Expr) -> bool:
    """Whether two calls are decorators of one function."""
    return any(
        all(any(item.start <= call.start < item.end for item in function.decorators) for call in (first, second))
        for function in scope.functions
        if function.outer.start <= first.start < function.outer.end
    )
