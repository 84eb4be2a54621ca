"""Finds code that never runs while a function is traced: code under a condition that is constant in the tree, code after statements
that leave, and nested functions that only such code names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache

from opschema_cli.evaluation.statements import all_statements, own_expressions
from opschema_cli.source.bodies import Body
from opschema_cli.source.guarded_code import behind_exits, is_conditional, is_guarded
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Expr, Statement
from opschema_cli.source.text import Span, SpanSet
from opschema_rules.flydsl.api_guards import names_version
from opschema_rules.flydsl.model import FlyTree
from opschema_rules.flydsl.needs import is_const_expr


def may_pass(tree: FlyTree, body: Body, at: int) -> bool:
    """Whether an error at a place may not occur: the place may not be reached, or the error is handled."""
    return is_guarded(body, at) or may_not_run(tree, body, at)


def may_not_run(tree: FlyTree, body: Body, at: int) -> bool:
    """Whether the code at a place never runs, or for some releases only."""
    return is_conditional(body, at) or names_version(tree, body, at) or is_dead(tree, body, at)


def is_dead(tree: FlyTree, body: Body, at: int) -> bool:
    """Whether the code at a place never runs."""
    around = [item for item in body.outward() if item.definition is not None]
    if any(at in _dead_in(tree, item) for item in body.outward()):
        return True
    return len(around) > 1 and not _run_in(tree, around[-1]).issuperset(around)


@lru_cache(maxsize=256)
def _dead_in(tree: FlyTree, body: Body) -> SpanSet:
    """The stretches of a body that never run."""
    known = {expr.span: _holds(tree, body, expr) for expr, _, _ in _conditions(body)}
    dead = [span for expr, span, runs in _conditions(body) if known[expr.span] is (not runs)]
    return SpanSet([*dead, *behind_exits(body, _leaves)])


def _leaves(item: Statement) -> bool:
    return item.kind in ("return", "raise") or (
        item.kind == "expr" and item.exprs[0].callee in ("pytest.skip", "sys.exit", "exit", "quit", "os._exit")
    )


@lru_cache(maxsize=256)
def _run_in(tree: FlyTree, outermost: Body) -> frozenset[Body]:
    """Return the function and those of its nested functions that running code may name, or that have a decorator."""
    bodies, named = list(tree.bodies.inside(outermost)), defaultdict[str, list[Body]](list)
    for item in bodies:
        named[item.function.name if _is_only_named(item) and item.function is not None else ""].append(item)
    found, waiting = set[Body](), [outermost, *named.pop("", ())]
    while waiting:
        body = waiting.pop()
        if body not in found:
            found.add(body)
            dead = _dead_in(tree, body)
            uses = {use.name.partition(".")[0] for use in body.scope.uses if use.start not in dead}
            waiting += (item for name in uses for item in named.pop(name, ()))
    return frozenset(found)


def _is_only_named(body: Body) -> bool:
    """Whether code can only run a function by its name, which an enclosing function binds."""
    function, around = body.function, body.parent
    return function is not None and around is not None and around.function is not None and not function.decorators


def _conditions(body: Body) -> Iterator[tuple[Expr, Span, bool]]:
    """Yield the conditions of a body, each with a stretch and the truth value for which that runs."""
    for item in body.scope.conditions:
        if item.kind == "if":
            yield item.expr, item.body, True
            if item.orelse is not None:
                yield item.expr, item.orelse, False
    for statement in all_statements(body.statements):
        if statement.kind == "while":
            yield statement.exprs[0], statement.span, True
        for expr in own_expressions(statement):
            if expr.kind == "ifexp":
                yield expr.items[0], expr.items[1].span, True
                yield expr.items[0], expr.items[2].span, False
            elif expr.kind == "boolop":
                yield expr.items[0], Span(expr.items[1].start, expr.end), expr.text == "and"


def _holds(tree: FlyTree, body: Body, condition: Expr) -> bool | None:
    """Whether a condition holds; None if it is not known, for example because it reads a parameter."""
    expr = condition.items[1] if is_const_expr(condition) else condition
    for part in expr.walk():
        first = part.text.partition(".")[0] if part.kind == "name" else ""
        binder = body.binder(first) if first else None
        if binder is not None and any(item.name == first for item in binder.params):
            return None
    found = tree.evaluator.fold(body, expr)
    return bool(found.value) if isinstance(found, Folded) and not found.symbol else None
