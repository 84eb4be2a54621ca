"""Code that surely runs whenever what is around it is used, and that nobody expects to fail."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.expected import expects_failure
from opschema_cli.source.guarded_code import behind_exits, is_guarded, may_be_skipped, never_runs
from opschema_cli.source.python import Condition, Expr, Statement

MAX_CALLERS = 3
"""Most functions that are followed outwards, from a helper to the tests that use it."""

_SKIPS = re.compile(r"\b(?:skip|skipTest|xfail|fail|importorskip|exit)\Z")
_FAILS = re.compile(r"raise|error|fail|expect|suppress|warns|skip|\btry\b", re.IGNORECASE)
_MARKED = re.compile(
    r"\bskip\b|xfail|expected|fail|raise|error|disable|\bskip_?if\b(?!.*(?:cuda|device))", re.IGNORECASE | re.DOTALL
)
_MARKS = ("pytestmark", "__test__")
_PLAIN_CALLS = frozenset({"len", "isinstance", "min", "max", "abs", "tuple", "list", "str", "int"})
_CHOICES = frozenset({"ifexp", "boolop"})


def surely_runs(bodies: Bodies, body: Body, at: int, hops: int = MAX_CALLERS) -> bool:
    """Whether code at a place, in a body, runs without a condition on what exists, a handler, or a test that expects an error.

    Conditions on parameters, on what the object itself holds and on dtypes are none of these: some call fulfils them. What a
    lambda does is not sure.
    """
    if any(item.start <= at < item.outer.end for around in body.outward() for item in around.scope.lambdas):
        return False
    return is_unconditional(bodies, body, at) and _is_used_surely(bodies, body, hops)


def is_unconditional(bodies: Bodies, body: Body, at: int) -> bool:
    """The same of code alone, however the functions and lambdas around it are used."""
    if is_guarded(body, at) or may_be_skipped(body, at) or never_runs(body, at) or expects_failure(bodies, body, at):
        return False
    return not any(_is_doubtful(bodies, item, at) or _is_marked(item) for item in body.outward())


def _is_used_surely(bodies: Bodies, body: Body, hops: int) -> bool:
    """Whether a helper of tests is used where no error is expected."""
    around = list(body.outward())
    outer = next((item for item in reversed(around) if item.function is not None), None)
    if outer is None or outer.function is None or outer.function.name.startswith("test") or hops <= 0:
        return True
    if not _FAILS.search(body.file.source.text):
        return True
    return all(surely_runs(bodies, user, start, hops - 1) for user, start in _users(bodies, outer))


def _users(bodies: Bodies, function: Body) -> Iterator[tuple[Body, int]]:
    """The places of its file where a function is named, or taken as a fixture."""
    name = function.function.name if function.function is not None else ""
    for body in bodies.of(function.file, lambda item: name in function.file.text(item.outer)):
        if function not in body.outward():
            yield from ((body, use.start) for use in body.scope.uses if use.name.rpartition(".")[2] == name)
            if body.function is not None and any(item.name == name for item in body.params):
                yield body, body.function.outer.end - 1


def _is_doubtful(bodies: Bodies, body: Body, at: int) -> bool:
    """Whether a body runs code only under a condition that is not known, or after it may have been left."""
    scope = body.scope
    branches = {span: item for item in scope.conditions for span in (item.body, item.orelse) if span is not None}
    for span in scope.guarded:
        if span.start <= at < span.end and (span not in branches or not _is_plain(bodies, body, branches[span].expr)):
            return True
    if any(at in range(*span) for span in behind_exits(body, _skips)):
        return True
    return any(_may_leave(bodies, body, item, at) for item in scope.conditions) or _is_chosen(bodies, body, at)


def _is_chosen(bodies: Bodies, body: Body, at: int) -> bool:
    """Whether a part of an expression is evaluated under a condition, or a ``with`` around it may expect an error."""
    for item in _around(body.statements, at):
        if item.kind == "with" and _FAILS.search(" ".join(body.file.text(expr) for expr in item.exprs)):
            return True
        if item.kind == "with" and any(expr.kind == "name" for expr in item.exprs[::2]):
            return True
    found = (part for expr in (*body.scope.calls, *body.scope.returns) for part in expr.walk())
    values = (part for item in body.scope.assigns if item.value is not None for part in item.value.walk())
    for part in (*found, *values):
        if part.kind in _CHOICES and part.start <= at < part.end:
            first = part.items[0]
            if not first.start <= at < first.end and not _is_plain(bodies, body, first):
                return True
    return False


def _around(statements: tuple[Statement, ...], at: int) -> Iterator[Statement]:
    for item in statements:
        if item.start <= at < item.end:
            yield item
            for block in item.blocks:
                yield from _around(block, at)


def _may_leave(bodies: Bodies, body: Body, item: Condition, at: int) -> bool:
    """Whether a condition that is not plain may end the code above a place."""
    spans = [item.body, *([item.orelse] if item.orelse is not None else [])]
    if item.kind == "assert" or max(span.end for span in spans) > at or _is_plain(bodies, body, item.expr):
        return False
    return any(_LEAVES.search(body.file.source.text, *span) for span in spans)


_LEAVES = re.compile(r"\b(?:return|raise|continue|break|skip|exit)\b")


def _skips(item: Statement) -> bool:
    return item.kind == "expr" and bool(item.exprs) and _SKIPS.search(item.exprs[0].callee) is not None


def _is_plain(bodies: Bodies, body: Body, condition: Expr) -> bool:
    """Whether a condition asks for nothing but arguments, attributes that an object writes, and constants of torch."""
    params = {item.name for around in body.outward() for item in around.params}
    if all(part.kind != "name" for part in condition.walk()):
        return False
    for part in condition.walk():
        if part.kind == "call" and part.callee not in _PLAIN_CALLS and not part.callee.startswith("torch."):
            return False
        if part.kind == "name" and not _is_argument(bodies, body, part.text, params):
            return False
    return True


def _is_argument(bodies: Bodies, body: Body, dotted: str, params: set[str]) -> bool:
    first, _, rest = dotted.partition(".")
    if first == body.this and body.owner is not None:
        lineage = bodies.program.lineage(body.owner)
        return any(rest.partition(".")[0] in bodies.program.instance_writes(ref) for ref in lineage)
    return (
        first in params
        or dotted == "__name__"
        or dotted in _PLAIN_CALLS
        or (first == "torch" and "version" not in rest)
    )


def _is_marked(body: Body) -> bool:
    """Whether a test, or all tests of a class or module, may be skipped or are expected to fail."""
    definition = body.definition
    if definition is not None and any(_MARKED.search(body.file.text(item)) for item in definition.decorators):
        return True
    marks = (item.value for item in body.scope.assigns if body.function is None and item.target in _MARKS)
    return any(value is None or value.text == "False" or _MARKED.search(body.file.text(value)) for value in marks)
