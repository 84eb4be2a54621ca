"""Code whose errors are expected by a test or handled by the code around it, so that errors in it may be intended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.statements import all_statements, is_variable
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.guarded_code import is_conditional, is_guarded, is_tried, never_runs
from opschema_cli.source.program import FunctionRef, ValueRef
from opschema_cli.source.python import Assign, Expr, PythonFile, Statement
from opschema_cli.source.text import NestedSpans, Span, SpanSet
from opschema_cli.source.word_index import called_word

_MARKS = frozenset({"xfail", "expectedFailure"})
"""Test markers that expect a failure."""

_KNOWN = re.compile(r"(?:assert)?(?:raises|warns)(?:regex)?|suppress", re.IGNORECASE)
"""Functions of pytest, unittest and contextlib that expect errors in a block or in a function that they get."""

_WORDS = ("raises", "warns", "suppress")
"""Lowercase substrings; each of these names contains one of them."""

_EXPECTING = ("rais", "expect", "suppress", "fail")
"""Parts of the names of other functions and of decorators that do so."""

_HANDLING = (*_EXPECTING, "ignor", "error", "warn", "catch", "swallow", "skip", "try", "exitstack")
"""Parts of the names of contexts that expect or handle errors, enter others that may, or skip a test."""

_OTHER_ERRORS = frozenset(
    {
        "ImportError",
        "ModuleNotFoundError",
        "OSError",
        "FileNotFoundError",
        "KeyError",
        "KeyboardInterrupt",
        "StopIteration",
    }
)

_ERRORS = ("Error", "Exception", "Warning")


def expects_failure(bodies: Bodies, body: Body, at: int) -> bool:
    """Whether a test expects an error at a place."""
    named, outermost = names_expectation(body.file), outermost_function(body)
    if named and any(at in _expecting(around) for around in body.outward()):
        return True
    expected = expectation(bodies, outermost) if outermost is not None else "blocks" if named else ""
    return expected == "anywhere" or (expected == "blocks" and any(at in _lambdas(item) for item in body.outward()))


def allows_failure(bodies: Bodies, body: Body, at: int) -> bool:
    """Whether the code allows a call to raise: a handler catches it, a test expects it, or it is for another release."""
    never = never_runs(body, at) or is_conditional(body, at)
    return never or is_tried(body, at) or expects_failure(bodies, body, at)


def allows_any_error(bodies: Bodies, body: Body, at: int) -> bool:
    """Whether the code allows any error: something handles or expects one, or the code is for another release."""
    return is_guarded(body, at) or never_runs(body, at) or expects_failure(bodies, body, at)


def is_handled(bodies: Bodies, body: Body, at: int) -> bool:
    """Whether errors at a place may be handled by a handler or context around it, or by a function that gets the code there."""
    found = (at in _handled_below(bodies, around) or _is_passed(bodies, around, at) for around in body.outward())
    return any(found) or is_tried(body, at)  # also for a module, whose statements are not kept


@lru_cache(maxsize=64)
def names_expectation(file: PythonFile) -> bool:
    """Whether a file names a function that expects errors."""
    return _names_expectation(file.source.text)


def outermost_function(body: Body) -> Body | None:
    """Return the function of a module or class that a body is or is nested in."""
    return next((item for item in reversed(list(body.outward())) if item.function is not None), None)


# Tests


@lru_cache(maxsize=256)
def expectation(bodies: Bodies, outermost: Body) -> str:
    """Return where a function of a module or class expects errors: ``anywhere``, in ``blocks`` below a ``with``, or nowhere if
    empty.
    """
    definitions = [item.definition for item in outermost.outward() if item.definition is not None]
    marks = [mark for item in definitions for mark in item.decorators]
    assigns = [item for around in outermost.outward() for item in around.scope.named.get("pytestmark", ())]
    marks += [item.value for item in assigns if isinstance(item, Assign) and item.value is not None]
    if any(part.member in (*_MARKS, "skip") for mark in marks for part in mark.walk()):
        return "anywhere"
    if any(_is_expecting_mark(bodies, bodies.module(outermost.file), mark) for mark in marks):
        return "anywhere"
    text = outermost.file.text(outermost.function.outer) if outermost.function is not None else ""
    if not _names_expectation(text):
        return ""
    inside = list(bodies.inside(outermost))
    expecting = [call for body in inside for call in body.scope.calls if _is_known_to_expect(call)]
    heads = {head.span for body in inside for item in _expecting_blocks(body) for head in item.exprs[::2]}
    uses = (use for body in inside for use in body.scope.uses)
    elsewhere = any(call.span not in heads and len(call.positional()) < 2 for call in expecting)
    if elsewhere or any(use.name.rpartition(".")[2] in _MARKS for use in uses):
        return "anywhere"
    return "blocks" if expecting else ""


def _names_expectation(text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in _WORDS) or any(mark in text for mark in _MARKS)


def _is_known_to_expect(expr: Expr) -> bool:
    """Whether an expression calls a test framework's function that expects errors."""
    return expr.kind == "call" and _KNOWN.fullmatch(called_word(expr.items[0])) is not None


def _is_expecting_mark(bodies: Bodies, module: Body, decorator: Expr) -> bool:
    """Whether a decorator may expect errors of the decorated function; pytest's are known by name."""
    name = decorator.callee or decorator.text
    if not name or name.startswith("pytest."):
        return False
    found = bodies.resolve(module, name)
    if isinstance(found, ValueRef) and found.assign.value is not None:
        return any(part.member in (*_MARKS, "skip") for part in found.assign.value.walk())
    target = bodies.function(found) if isinstance(found, FunctionRef) else None
    return _expects(called_word(decorator)) or (target is not None and _calls_what_expects(target))


@cached_on_argument
def _expecting(body: Body) -> SpanSet:
    """Return the code of a body that is passed to a function that expects errors, or is below a ``with`` that does."""
    passed = (Span(call.start + 1, call.end) for call in body.scope.calls if _is_known_to_expect(call))
    blocks = _expecting_blocks(body) if body.function is not None else ()
    return SpanSet([*passed, *(item.span for item in blocks), *_blocks_outside_functions(body)])


def _expecting_blocks(body: Body) -> Iterator[Statement]:
    """Yield the ``with`` statements of a function that expect errors in their block."""
    for item in all_statements(body.statements):
        if item.kind == "with" and any(map(_is_known_to_expect, item.exprs[::2])):
            yield item


def _blocks_outside_functions(body: Body) -> Iterator[Span]:
    """Yield the blocks that expect errors in a module or class, whose statements are not kept."""
    text = body.file.source.text
    for call in body.scope.calls if body.function is None else ():
        start = text.rfind("\n", 0, call.start) + 1
        if _is_known_to_expect(call) and text[start : call.start].lstrip().startswith(("with ", "async with ")):
            yield Span(call.start + 1, _end_of_block(text, start, call.end))


def _end_of_block(text: str, start: int, end: int) -> int:
    """Return the end of the lines after ``end`` that are indented deeper than the line beginning at ``start``."""
    indent = _indent(text[start:end])
    while 0 <= (end := text.find("\n", end)) < len(text) - 1:
        end += 1
        stop = text.find("\n", end)
        line = text[end : stop if stop >= 0 else len(text)]
        if line.strip() and _indent(line) <= indent and not line.lstrip().startswith(("#", ")")):
            return end
    return len(text)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


@cached_on_argument
def _lambdas(body: Body) -> SpanSet:
    return SpanSet(item.span for item in body.scope.lambdas)


# Handlers


@lru_cache(maxsize=256)
def _handled_below(bodies: Bodies, body: Body) -> SpanSet:
    """Return the code below contexts that may handle errors, and below `try` with handlers for errors that calls may raise."""
    found: list[Span] = []
    for item in all_statements(body.statements):
        if item.kind == "with" and any(_is_handling(bodies, body, expr) for expr in item.exprs[::2]):
            found.append(item.span)
        elif item.kind == "try" and any(map(_may_catch, item.blocks[1])):
            found.append(Span(item.blocks[0][0].start, item.blocks[0][-1].end))
    return SpanSet(found)


def _may_catch(handler: Statement) -> bool:
    """Whether a handler may catch errors caused by a call's arguments."""
    names = [part.member for expr in handler.exprs for part in expr.walk() if part.member]
    return not names or not _OTHER_ERRORS.issuperset(names)


def _is_handling(bodies: Bodies, body: Body, context: Expr) -> bool:
    """Whether a context may handle errors; so may a variable, unless it is known to hold a harmless one."""
    if is_variable(context):
        binder = body.binder(context.text)
        values = binder.values(context.text) if binder is not None else None
        only = values[0] if values is not None and len(values) == 1 else None
        return only is None or only.kind != "call" or _is_handling(bodies, body, only)
    if context.kind != "call":
        return True
    word = called_word(context.items[0]).lower()
    return any(part in word for part in _HANDLING) or _handles(bodies.called(body, context.callee))


def _is_passed(bodies: Bodies, body: Body, at: int) -> bool:
    """Whether a place is in the arguments of a call that expects or handles errors."""
    spans, calls = _passing(body)
    span = spans.innermost(at - 1)
    call = calls[span] if span is not None else None
    if call is None:
        return False
    names = [item.text for item in call.items[1:] if item.kind == "name"]
    known = _expects(called_word(call.items[0])) or any(name.endswith(_ERRORS) for name in names)
    return known or _handles(bodies.called(body, call.callee))


@cached_on_argument
def _passing(body: Body) -> tuple[NestedSpans, dict[Span, Expr]]:
    """The calls of a body with lambdas or names as arguments."""
    found = {
        call.span: call for call in body.scope.calls if any(item.kind in ("lambda", "name") for item in call.items[1:])
    }
    return NestedSpans(found), found


def _expects(word: str) -> bool:
    return any(part in word.lower() for part in _EXPECTING)


@lru_cache(maxsize=256)
def _handles(body: Body | None) -> bool:
    """Whether a function contains handlers, or a test's ``raises``."""
    handlers = any(item.kind == "except" for item in all_statements(body.statements)) if body is not None else False
    return handlers or (body is not None and _calls_what_expects(body))


def _calls_what_expects(body: Body) -> bool:
    return any(_expects(called_word(call.items[0])) for scope in body.scope.walk() for call in scope.calls)
