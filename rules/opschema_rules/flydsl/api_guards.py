"""Decides whether the condition of an `if` may depend on the FlyDSL release: a version test, `hasattr()`, or an unknown value."""

from __future__ import annotations

import builtins
import math
import re
import sys
from collections.abc import Iterator
from functools import lru_cache

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.evaluation.statements import all_statements, own_expressions
from opschema_cli.source.bodies import Body, argument_for
from opschema_cli.source.program import ClassRef, External, FunctionRef, ValueRef
from opschema_cli.source.python import Condition, Expr, PythonFile
from opschema_cli.source.text import NestedSpans, Span
from opschema_rules.flydsl.detection import ROOT
from opschema_rules.flydsl.model import FlyTree

_ASKS = re.compile(
    r"version|hasattr|getattr|find_spec|import_module|__import__|signature|vars\b|dir\b|__dict__|__all__|type_checking"
    r"|legacy|compat|support|\bhas_|_has_|_api\b|release|\bnew_|\bold_",
    re.IGNORECASE,
)
_FUNCTION_ASKS = re.compile(rf"{_ASKS.pattern}|\bexcept\b|\bimport\b", re.IGNORECASE)
_FUNCTION_CHECKS = re.compile(r"version|hasattr|getattr|find_spec|import_module|signature|\bexcept\b", re.IGNORECASE)
"""The function pattern for a tree with its own FlyDSL, whose kernels rarely check for another one."""

_VERSION = re.compile(r"version|hasattr(?!\(\s*[\w.]+,\s*[\"']mark_layout_dynamic[\"'])", re.IGNORECASE)
"""A version test. Wrapped tensors have ``mark_layout_dynamic`` in every release, so a test for it only asks whether one is wrapped.
"""

_LEADS_TO_VERSION = re.compile(r"(?<![a-z])version|hasattr\(\s*(?:fx|fly\w*)\b", re.IGNORECASE)
"""A version test in a value reached through other values: what may lack an attribute there is rarely a module of FlyDSL."""

_FILE_ASKS = re.compile(
    rf"{_LEADS_TO_VERSION.pattern}|find_spec|import_module|\b(?:dir|vars)\(|__dict__|__all__\b(?!\s*=)"
    r"|\btry:\s*\n(?:[^\n]*\n){0,4}?[^\n]*\b(?:fx|fly\w*)\b[^\n]*\n(?:[^\n]*\n){0,4}?[ \t]*except\b",
    re.IGNORECASE,
)
"""A version test anywhere in a file, outside the condition."""

_LEAVES = re.compile(r"\s*(?:return|raise|continue|break|pytest\.skip|sys\.exit)\b")
_KNOWN = frozenset(sys.stdlib_module_names) | {"torch", "numpy", "pytest", "triton", ROOT}
"""Packages whose names are unrelated to FlyDSL, unless :data:`_ASKS` matches them."""
_OTHERS = _KNOWN - {ROOT, "importlib"}
_OWN = ("__name__", "__file__", "__doc__", "__debug__")


def may_ask(tree: FlyTree, body: Body, expr: Expr, hops: int = MAX_CALLS) -> bool:
    """Whether an expression may depend on the installed FlyDSL. Unknown expressions may, unless the tree has its own FlyDSL and no
    file here checks for another one.
    """
    return any(
        (part.kind == "other" and _unknown_may_ask(tree, body.file))
        or (part.kind == "name" and _name_may_ask(tree, body, part.text, hops))
        for part in expr.walk()
    )


def is_guarded(tree: FlyTree, body: Body, at: int) -> bool:
    """Whether the code at a place of a body, outside nested functions, runs with some FlyDSL releases only."""
    return (
        any(_guards(tree, body, span) for span in body.scope.guarding.around(at))
        or any(may_ask(tree, body, test) for test in choices_around(body, at))
        or at >= _end_of_first_exit(tree, body)
    )


def is_guarded_around(tree: FlyTree, body: Body, at: int) -> bool:
    """Whether the code at a place of a body or of a function inside it runs with some FlyDSL releases only."""
    for outer in body.outward():
        if is_guarded(tree, outer, at):
            return True
        at = outer.function.outer.start if outer.function is not None else at
    return False


def names_version(tree: FlyTree, body: Body, at: int) -> bool:
    """Whether the code at a place of a body or of a function inside it is for some versions only."""
    return any(
        any(_names_version(tree, around, item.expr) for item in conditions_around(around, at))
        or any(_names_version(tree, around, test) for test in choices_around(around, at))
        or at >= _end_of_first_exit(tree, around)
        for around in body.outward()
    )


def choices_around(body: Body, at: int) -> Iterator[Expr]:
    """Yield the expressions that decide whether the part of their own expression at a place is evaluated."""
    spans, tests = _choices(body)
    yield from (test for span in spans.around(at) for test in tests[span])


@cached_on_argument
def _choices(body: Body) -> tuple[NestedSpans, dict[Span, list[Expr]]]:
    inner = (part for item in all_statements(body.statements) for part in own_expressions(item) if part.kind != "ifexp")
    found: dict[Span, list[Expr]] = {}
    for part in (*body.scope.conditional_expressions, *inner):
        for span, test in _tests_in(part):
            found.setdefault(span, []).append(test)
    return NestedSpans(found), found


def _tests_in(expr: Expr) -> Iterator[tuple[Span, Expr]]:
    """Yield the parts of an expression that may not be evaluated, each with the expression that decides it."""
    match expr.kind:
        case "ifexp":
            test, *values = expr.items
            yield from ((value.span, test) for value in values)
        case "boolop":
            yield from ((Span(item.end, expr.end), item) for item in expr.items)
        case "listcomp" | "setcomp" | "dictcomp" | "generator":
            clauses = [item for item in expr.items if item.kind == "for"]
            tests = [test for clause in clauses for test in clause.items[2:]]
            yield from ((Span(expr.start, clauses[0].start), test) for test in tests)


def conditions_around(body: Body, at: int) -> Iterator[Condition]:
    """Yield the conditions of a body that apply at a place."""
    spans, conditions = _branches(body)
    yield from (conditions[span] for span in spans.around(at))


@cached_on_argument
def _branches(body: Body) -> tuple[NestedSpans, dict[Span, Condition]]:
    """The branches of a body, each with its condition."""
    pairs = ((span, item) for item in body.scope.conditions for span in (item.body, item.orelse) if span is not None)
    found = dict(pairs)
    return NestedSpans(found), found


@lru_cache(maxsize=256)
def _end_of_first_exit(tree: FlyTree, body: Body) -> float:
    """The end of the first branch that exits the body for some versions."""
    leaving = (item for item in body.scope.conditions if item.kind == "assert" or _leaves(body, item.body))
    return min((item.body.end for item in leaving if _names_version(tree, body, item.expr)), default=math.inf)


def _guards(tree: FlyTree, body: Body, span: Span) -> bool:
    """Whether an optional stretch may exist for other FlyDSL releases: the block of a `try`, or a branch of such a condition."""
    condition = condition_of(body, span)
    return condition is None or is_dead(condition, span) or may_ask(tree, body, condition.expr)


def _leaves(body: Body, span: Span) -> bool:
    return _LEAVES.match(body.file.text(span).rpartition("\n")[2]) is not None


def _names_version(tree: FlyTree, body: Body, expr: Expr) -> bool:
    """Whether a condition, or a value that it reads, is known to test the version; a missing package does not count."""
    found, seen = [(body, expr)], set[tuple[Body, str]]()
    for level in range(MAX_CALLS):
        asks = _VERSION if level < 2 else _LEADS_TO_VERSION
        if any(asks.search(around.file.text(value)) is not None for around, value in found):
            return True
        names = {(item, part.text) for item, value in found for part in value.walk() if part.kind == "name"} - seen
        seen |= names
        found = [value for item, name in names for value in _values_of(tree, item, name)]
    return False


def _values_of(tree: FlyTree, body: Body, dotted: str) -> Iterator[tuple[Body, Expr]]:
    """Yield the values of a name, or the return values of the function of that name, each with its body."""
    first = dotted.partition(".")[0]
    binder = body.binder(first) or tree.bodies.module(body.file)
    yield from ((binder, value) for value in binder.values(first) or ())
    found = tree.bodies.resolve(body, dotted)
    if not isinstance(found, ValueRef | FunctionRef) or found.file.path in _own_paths(tree):
        return
    if isinstance(found, ValueRef) and found.owner is None and found.assign.value is not None:
        yield tree.bodies.module(found.file), found.assign.value
    target = tree.bodies.function(found) if isinstance(found, FunctionRef) else None
    yield from ((target, value) for value in target.scope.returns) if target is not None else ()


@lru_cache(maxsize=8)
def _own_paths(tree: FlyTree) -> frozenset[str]:
    """The files of the tree's own FlyDSL."""
    return frozenset(tree.package.paths)


def is_dead(condition: Condition, span: Span) -> bool:
    """Whether a branch never runs, as the condition is a constant."""
    if condition.expr.kind != "const":
        return False
    return bool(condition.expr.value) is (span != condition.body)


def condition_of(body: Body, span: Span) -> Condition | None:
    """Return the condition of the `if` with the branch `span`; None for the blocks of `try`, loops and `case`."""
    return _branches(body)[1].get(span)


def _name_may_ask(tree: FlyTree, body: Body, dotted: str, hops: int) -> bool:
    if dotted in _OWN:
        return False
    if _ASKS.search(dotted) is not None:
        return True
    if hops <= 0:
        return _unknown_may_ask(tree, body.file)
    first = dotted.partition(".")[0]
    binder = body.binder(first) or tree.bodies.module(body.file)
    if any(item.name == first for item in binder.params):
        return _parameter_may_ask(tree, binder, dotted, hops)
    return _binding_may_ask(tree, binder, dotted, hops)


def _parameter_may_ask(tree: FlyTree, binder: Body, dotted: str, hops: int) -> bool:
    """Whether a caller may pass a version test as this argument; attributes of `self` are not followed."""
    first = dotted.partition(".")[0]
    if first == binder.this:
        return _unknown_may_ask(tree, binder.file)
    defaults = [item.default for item in binder.params if item.name == first and item.default is not None]
    given = [*_passed(tree, binder, first), *((binder.parent or binder, value) for value in defaults)]
    return any(may_ask(tree, caller, value, hops - 1) for caller, value in given)


def _passed(tree: FlyTree, binder: Body, name: str) -> Iterator[tuple[Body, Expr]]:
    traced = tree.traced_of(binder)
    if traced is not None:
        found = [(call.body, call.argument(name)) for call in traced.calls]
    else:
        found = [(caller, argument_for(call, binder.params, name)) for caller, call in tree.bodies.calls_of(binder)]
    yield from ((caller, value) for caller, value in found if value is not None)


def _binding_may_ask(tree: FlyTree, binder: Body, dotted: str, hops: int) -> bool:
    """Whether a name bound by a function or the module may depend on the installed FlyDSL."""
    first = dotted.partition(".")[0]
    assigns = [item for item in binder.scope.assigns if item.target == first]
    imports = [item.module.partition(".")[0] for item in binder.scope.imports if item.name == first and not item.level]
    if imports and _OTHERS.issuperset(imports):
        return False
    if not assigns or any(item.name == first for item in binder.scope.imports):
        return _global_may_ask(tree, binder, dotted, hops)
    if any(_is_asked_for(tree, binder, item.start, hops - 1) for item in assigns):
        return True
    parts = [item.value for item in binder.scope.unpacks if first in item.targets]
    parts += [item.iterable for item in binder.scope.loops if first in item.targets]
    unknown = first in binder.file.rebound or (not parts and any(item.value is None for item in assigns))
    if unknown and _asks_anywhere(tree, binder.file):
        return True
    values = [item.value for item in assigns if item.value is not None]
    return any(may_ask(tree, binder, value, hops - 1) for value in (*values, *parts))


def _is_asked_for(tree: FlyTree, body: Body, at: int, hops: int) -> bool:
    """Whether an assignment is inside a `try` or under such a condition."""
    for span in body.scope.guarded:
        if span.start <= at < span.end:
            condition = condition_of(body, span)
            if condition is None or may_ask(tree, body, condition.expr, hops):
                return True
    return False


def _global_may_ask(tree: FlyTree, body: Body, dotted: str, hops: int) -> bool:
    found = tree.bodies.resolve(body, dotted)
    match found:
        case External(name=name):
            package = name.partition(".")[0]
            known = package in _KNOWN or hasattr(builtins, package) or not _unknown_may_ask(tree, body.file)
            return not known or package == "importlib"
        case FunctionRef(file=file, function=function):
            asking = _FUNCTION_CHECKS if tree.contract.own else _FUNCTION_ASKS
            return asking.search(file.text(function.outer)) is not None or _asks_anywhere(tree, file)
        case ValueRef(file=file, assign=assign, owner=None):
            return _binding_may_ask(tree, tree.bodies.module(file), assign.target, hops - 1)
        case ClassRef(file=file):
            return _asks_anywhere(tree, file)
    return _unknown_may_ask(tree, body.file)


def _unknown_may_ask(tree: FlyTree, file: PythonFile) -> bool:
    return not tree.contract.own or _asks_anywhere(tree, file)


@lru_cache(maxsize=256)
def _asks_anywhere(tree: FlyTree, file: PythonFile) -> bool:
    """Whether a file, or a file of the tree that it imports, checks which FlyDSL is installed."""
    program, seen, waiting = tree.bodies.program, set(_own_paths(tree)), [file.path]
    while waiting:
        path = waiting.pop()
        found = program.load(path) if path not in seen else None
        seen.add(path)
        if found is None:
            continue
        if _asks(found):
            return True
        modules = [(program.absolute_module(found, item), item.attr) for item in found.body.imports]
        names = [name for module, attr in modules if module is not None for name in (module, f"{module}.{attr}")]
        waiting += filter(None, map(program.module_path, names))
    return False


@lru_cache(maxsize=256)
def _asks(file: PythonFile) -> bool:
    return _FILE_ASKS.search(file.source.text) is not None
