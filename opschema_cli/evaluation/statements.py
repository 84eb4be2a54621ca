"""Walks over the statements of functions and the expressions in them, and the names that they bind."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from opschema_cli.source.python import Expr, Statement


def all_statements(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Yield statements and those in their blocks, in source order; functions and classes are not entered."""
    waiting = list(statements)[::-1]
    while waiting:
        item = waiting.pop()
        yield item
        waiting += (inner for block in reversed(item.blocks) for inner in reversed(block))


def statements_around(statements: Sequence[Statement], at: int) -> Iterator[Statement]:
    """Yield those of :func:`all_statements` that contain a place, outer ones first."""
    while statements:
        item = statements[bisect_right(statements, at, key=_start) - 1]
        if not item.start <= at < item.end:
            return
        yield item
        statements = next((block for block in item.blocks if block and block[0].start <= at < block[-1].end), ())


def _start(item: Statement) -> int:
    return item.start


def own_expressions(item: Statement) -> Iterator[Expr]:
    """The expressions of a statement and all below them, parents first; lambdas are not entered."""
    waiting = list(item.exprs)[::-1]
    while waiting:
        expr = waiting.pop()
        yield expr
        if expr.kind != "lambda":
            waiting += reversed(expr.items)


def sure_expressions(item: Statement) -> Iterator[Expr]:
    """Yield those of :func:`own_expressions` that are evaluated whenever the statement runs: only ``b`` in ``a if b else c``,
    only ``a`` in ``a and b``.
    """
    left_out = {
        part.span
        for expr in own_expressions(item)
        if expr.kind in ("ifexp", "boolop")
        for operand in expr.items[1:]
        for part in operand.walk()
    }
    return (expr for expr in own_expressions(item) if expr.span not in left_out)


def targets(item: Statement) -> tuple[Expr, ...]:
    """The targets of a statement."""
    match item.kind:
        case "assign":
            return item.exprs[:-1]
        case "annassign" | "augassign" | "for":
            return item.exprs[:1]
        case "with":
            return item.exprs[1::2]
        case "delete":
            return item.exprs
    return ()


def bound_by(target: Expr) -> Iterator[str]:
    """Yield the variables that an assignment to a target binds."""
    if target.kind in ("tuple", "list", "starred"):
        for item in target.items:
            yield from bound_by(item)
    elif is_variable(target):
        yield target.text


def is_variable(expr: Expr) -> bool:
    """Whether an expression is a name without a dot."""
    return expr.kind == "name" and "." not in expr.text


def names_read(exprs: Iterable[Expr]) -> list[str]:
    """Return the first words of all names in expressions, without duplicates, in source order."""
    found = (part.text.partition(".")[0] for expr in exprs for part in expr.walk() if part.kind == "name")
    return list(dict.fromkeys(found))
