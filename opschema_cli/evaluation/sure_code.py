"""Code that always runs when the code around it is used, and that is not expected to fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from opschema_cli.evaluation.expected_errors import expects_failure, is_handled
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.guarded_code import asks_what_exists, behind_exits, never_runs
from opschema_cli.source.python import Condition, Expr, PythonFile, Statement
from opschema_cli.source.resolution import ClassRef
from opschema_cli.source.text import Span, SpanSet

MAX_CALLERS = 3
"""Maximum number of functions to follow from a helper to the tests that use it."""

_SKIPS = re.compile(r"\b(?:skip|skipTest|xfail|fail|importorskip|exit)\Z")
_FAILS = re.compile(r"raise|error|fail|expect|suppress|warns|skip|\btry\b", re.IGNORECASE)
_MARKED = re.compile(
    r"\bskip\b|xfail|expected|fail|raise|error|disable|\bskip_?if\b(?!.*(?:cuda|device))", re.IGNORECASE | re.DOTALL
)
_MARKS = ("pytestmark", "__test__")
_PLAIN_CALLS = frozenset({"len", "isinstance", "min", "max", "abs", "tuple", "list", "str", "int"})
_CHOICES = frozenset({"ifexp", "boolop"})


def surely_runs(bodies: Bodies, body: Body, at: int, hops: int = MAX_CALLERS) -> bool:
    """Whether the code at a place runs without a condition on what exists, a handler, or a test that expects an error.

    Conditions on parameters, local variables, attributes that an object writes and dtypes are none of
    these: some call fulfils them. What a lambda does is not sure.
    """
    if any(item.start <= at < item.outer.end for around in body.outward() for item in around.scope.lambdas):
        return False
    return is_unconditional(bodies, body, at) and _is_used_surely(bodies, body, hops)


def is_unconditional(bodies: Bodies, body: Body, at: int) -> bool:
    """Whether the code at a place has no such condition, handler or test around it, however the enclosing functions are used."""
    if any(at in _doubtful(bodies, item) or _is_marked(item) for item in body.outward()):
        return False
    return not (never_runs(body, at) or expects_failure(bodies, body, at) or is_handled(bodies, body, at))


def _is_used_surely(bodies: Bodies, body: Body, hops: int) -> bool:
    """Whether a test helper is used where no error is expected."""
    return all(_is_called_surely(bodies, item, hops) for item in body.outward() if item.function is not None)


@lru_cache(maxsize=1024)
def _is_called_surely(bodies: Bodies, outer: Body, hops: int) -> bool:
    if outer.function is None or outer.function.name.startswith("test") or hops <= 0:
        return True
    if not _FAILS.search(outer.file.source.text):
        return True
    return all(surely_runs(bodies, user, start, hops - 1) for user, start in _users(bodies, outer))


def _users(bodies: Bodies, function: Body) -> Iterator[tuple[Body, int]]:
    """Yield the places in its file, outside itself, where a function is named or used as a fixture."""
    name = function.function.name if function.function is not None else ""
    found = _named(bodies, function.file).get(name, ())
    return ((body, at) for body, at in found if function not in body.outward())


@lru_cache(maxsize=16)
def _named(bodies: Bodies, file: PythonFile) -> dict[str, list[tuple[Body, int]]]:
    """The places of a file where names are read, by the last part of each, and its functions with a parameter of that name."""
    found: dict[str, list[tuple[Body, int]]] = {}
    for body in bodies.of(file):
        for use in body.scope.uses:
            found.setdefault(use.name.rpartition(".")[2], []).append((body, use.start))
        for item in body.params:
            found.setdefault(item.name, []).append(
                (body, body.function.outer.end - 1 if body.function is not None else 0)
            )
    return found


@lru_cache(maxsize=1024)
def _doubtful(bodies: Bodies, body: Body) -> SpanSet:
    """Return the code of a body that only runs under an unknown condition, or after the body may have been left."""
    scope = body.scope
    branches = {span: item for item in scope.conditions for span in (item.body, item.orelse) if span is not None}
    plain = {item.expr.span: _is_plain(bodies, body, item.expr) for item in scope.conditions}
    found = [span for span in scope.guarded if span not in branches or not plain[branches[span].expr.span]]
    end = body.definition.outer.end if body.definition is not None else len(body.file.source.text)
    leaving = (item for item in scope.conditions if not plain[item.expr.span] and _may_leave(body, item))
    behind = (Span((item.orelse or item.body).end, end) for item in leaving if item.kind == "if")
    return SpanSet([*found, *behind, *behind_exits(body, _skips), *_choices(bodies, body)])


def _choices(bodies: Bodies, body: Body) -> Iterator[Span]:
    """Yield the parts of expressions that are evaluated under a condition that is not plain."""
    values = (item.value for item in body.scope.assigns if item.value is not None)
    seen = set[Span]()
    for expr in (*body.scope.calls, *body.scope.returns, *values):
        for part in expr.walk():
            if part.kind in _CHOICES and part.span not in seen:
                seen.add(part.span)
                if not _is_plain(bodies, body, part.items[0]):
                    yield from (item.span for item in part.items[1:])


def _may_leave(body: Body, item: Condition) -> bool:
    """Whether a condition may end the execution of the code around it."""
    spans = filter(None, (item.body, item.orelse))
    return any(_LEAVES.search(body.file.source.text, *span) for span in spans)


_LEAVES = re.compile(r"\b(?:return|raise|continue|break|skip|exit)\b")


def _skips(item: Statement) -> bool:
    return item.kind == "expr" and bool(item.exprs) and _SKIPS.search(item.exprs[0].callee) is not None


def _is_plain(bodies: Bodies, body: Body, condition: Expr) -> bool:
    """Whether a condition only tests arguments, variables, attributes that an object writes, and constants of torch."""
    params = {item.name for around in body.outward() for item in around.params}
    if all(part.kind != "name" for part in condition.walk()) or asks_what_exists(body.file.text(condition)):
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
        lineage, name = bodies.program.lineage(body.owner), rest.partition(".")[0]
        written = any(name in bodies.program.instance_writes(ref) for ref in lineage)
        return written and not any(name in _finding(bodies, ref) for ref in lineage)
    if (
        first in params
        or dotted == "__name__"
        or dotted in _PLAIN_CALLS
        or (first == "torch" and "version" not in rest)
    ):
        return True
    values = body.values(first) if body.function is not None else None
    return bool(values) and not any(_FINDS.search(body.file.text(value)) for value in values or ())


@lru_cache(maxsize=256)
def _finding(bodies: Bodies, ref: ClassRef) -> frozenset[str]:
    """The attributes to which methods of a class assign values that may depend on what exists."""
    return frozenset(
        item.target.removeprefix(f"{method.params[0].name}.")
        for method in ref.cls.body.functions
        for item in method.body.assigns
        if method.params and item.value is not None and _ASKS.search(ref.file.text(item.value))
    )


_ASKS = re.compile(r"\bin\b|kernel_map|\.get\(|[Aa]ttr\(")
_FINDS = re.compile(
    r"\b(?:in|import|[A-Z][A-Z_0-9]+)\b|[Aa]ttr|[Ss]ignature|[Vv]ersion|environ|spec|kernel_map|\.get\("
)
"""Values that may depend on what exists."""


def _is_marked(body: Body) -> bool:
    """Whether a test, or all tests of a class or module, may be skipped or are expected to fail."""
    definition = body.definition
    if definition is not None and any(_MARKED.search(body.file.text(item)) for item in definition.decorators):
        return True
    marks = (item.value for item in body.scope.assigns if body.function is None and item.target in _MARKS)
    return any(value is None or value.text == "False" or _MARKED.search(body.file.text(value)) for value in marks)
