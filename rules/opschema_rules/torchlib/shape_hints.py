"""Ranks and dtypes of tensors and values of strings that a fake and a kernel plainly expect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from opschema_cli.evaluation.statements import all_statements, own_expressions, targets
from opschema_cli.schema.dtypes import canonical, is_dtype
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Statement

MAX_RANKS = 3
"""Maximum number of ranks of one tensor to try."""


def ranks_of(bodies: Iterable[Body], name: str) -> tuple[int, ...]:
    """Return the ranks to try for a tensor, likeliest first: those that the code unpacks or checks for, otherwise the usual
    ones.
    """
    exact: dict[int, None] = {}
    least = 0
    for body in bodies:
        statements, expressions = _parts(body)
        for item in statements:
            exact.update(dict.fromkeys(_unpacked(item, name)))
        for expr in expressions:
            exact.update(dict.fromkeys(_compared(expr, name)))
            least = max(least, _indexed(expr, name))
    if exact:
        return tuple(exact)[:MAX_RANKS]
    usual = (2, 3, 1, 4) if least < 2 else (least, least + 1)
    return tuple(rank for rank in usual if rank >= least)[:MAX_RANKS]


def strings_of(bodies: Iterable[Body], name: str) -> tuple[str, ...]:
    """The strings that a parameter is compared with."""
    found: dict[str, None] = {}
    for body in bodies:
        for expr in _parts(body)[1]:
            if expr.kind == "compare" and any(part.kind == "name" and part.text == name for part in expr.items):
                found.update((part.value, None) for part in expr.items if isinstance(part.value, str))
    return tuple(found)


def dtypes_of(bodies: Iterable[Body], name: str) -> frozenset[str]:
    """The dtypes of a tensor that the code asserts; empty if it asserts none. A call with another one is refused."""
    conditions = (expr for body in bodies for item in body.statements for expr in _required(item))
    tests = (test for expr in conditions for test in _conjuncts(expr))
    asserted = [dtypes for dtypes in (_asserted(test, name) for test in tests) if dtypes]
    return frozenset.intersection(*asserted) if asserted else frozenset()


def _required(item: Statement) -> Iterator[Expr]:
    """The condition of ``assert``, or of ``torch._check``."""
    if item.kind == "assert":
        yield item.exprs[0]
    elif item.kind == "expr" and item.exprs[0].callee == "torch._check":
        yield from item.exprs[0].positional()[:1]


def _conjuncts(test: Expr) -> Iterator[Expr]:
    """The conditions that all hold if this one does."""
    if test.kind == "boolop" and test.text == "and":
        for item in test.items:
            yield from _conjuncts(item)
    else:
        yield test


def _asserted(test: Expr, name: str) -> frozenset[str]:
    """The dtypes in ``x.dtype == torch.int8`` and ``x.dtype in (torch.half, torch.float)``; empty if one is not plain."""
    if test.kind != "compare" or len(test.items) != 2 or test.items[0].text != f"{name}.dtype":
        return frozenset()
    right = test.items[1]
    several = test.text == "in" and right.kind in ("tuple", "list", "set")
    if test.text != "==" and not several:
        return frozenset()
    named = [item.text.rpartition(".")[2] for item in (right.items if several else (right,))]
    return frozenset(map(canonical, named)) if all(map(is_dtype, named)) else frozenset()


@lru_cache(maxsize=8)
def _parts(body: Body) -> tuple[list[Statement], list[Expr]]:
    """The assignments of a body, and its comparisons, subscripts and calls: all that shows a rank."""
    statements = list(all_statements(body.statements))
    parts = (part for item in statements for own in own_expressions(item) for part in own.walk())
    shown = [part for part in parts if part.kind in ("compare", "subscript", "call")]
    return [item for item in statements if item.kind == "assign"], shown


def _unpacked(item: Statement, name: str) -> Iterator[int]:
    """The rank in ``a, b = x.shape``."""
    if item.kind != "assign" or not _is_shape(item.exprs[-1], name):
        return
    for target in targets(item):
        if target.kind in ("tuple", "list") and not any(part.kind == "starred" for part in target.items):
            yield len(target.items)


def _compared(expr: Expr, name: str) -> Iterator[int]:
    """The rank in ``x.dim() == 3``."""
    if expr.kind == "compare" and expr.text == "==" and _is_rank(expr.items[0], name):
        value = expr.items[1].value
        if isinstance(value, int) and 0 < value < 7:
            yield value


def _indexed(expr: Expr, name: str) -> int:
    """The least rank for which ``x.shape[1]``, ``x.size(1)`` or ``x[:, 1]`` exists."""
    if expr.kind == "subscript" and _is_shape(expr.items[0], name):
        return _reach(expr.items[1])
    if expr.kind == "call" and expr.callee in (f"{name}.size", f"{name}.stride") and len(expr.items) == 2:
        return _reach(expr.items[1])
    if expr.kind == "subscript" and expr.items[0].kind == "name" and expr.items[0].text == name:
        return sum(
            (item.kind in ("slice", "const") and item.value is None) or item.kind == "const" for item in expr.items[1:]
        )
    return 0


def _reach(index: Expr) -> int:
    sign, value = (-1, index.items[0].value) if index.kind == "unary" and index.text == "-" else (1, index.value)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return min(value + 1 if sign * value >= 0 and sign > 0 else value, 6)


def _is_shape(expr: Expr, name: str) -> bool:
    call = expr.kind == "call" and expr.callee == f"{name}.size" and len(expr.items) == 1
    return call or (expr.kind == "name" and expr.text == f"{name}.shape")


def _is_rank(expr: Expr, name: str) -> bool:
    if expr.kind == "call" and expr.callee == "len":
        return len(expr.items) == 2 and _is_shape(expr.items[1], name)
    return (expr.kind == "call" and expr.callee == f"{name}.dim") or (
        expr.kind == "name" and expr.text == f"{name}.ndim"
    )
