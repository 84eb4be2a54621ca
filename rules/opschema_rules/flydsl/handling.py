"""Code that may handle the errors of what stands below it or is passed to it, as far as names and the tree say."""

from __future__ import annotations

import re
from functools import lru_cache

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.statements import all_statements, is_variable
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import FunctionRef, ValueRef
from opschema_cli.source.python import Expr, Statement
from opschema_cli.source.text import NestedSpans, Span, SpanSet
from opschema_cli.source.word_index import called_word
from opschema_rules.flydsl.model import FlyTree

MARKS = frozenset({"xfail", "expectedFailure"})
"""Marks of tests that are meant to fail."""

_KNOWN = re.compile(r"(?:assert)?(?:raises|warns)(?:regex)?|suppress", re.IGNORECASE)
"""The functions of pytest, unittest and contextlib that expect errors of what stands below them, or of what they are passed."""

_WORDS = ("raises", "warns", "suppress")
"""One of these is in each of their names, in small letters."""

_EXPECTING = ("rais", "expect", "suppress", "fail")
"""Parts of the names of other functions that do, and of decorators."""

_HANDLING = (*_EXPECTING, "ignor", "error", "warn", "catch", "swallow")
"""The same of contexts that expect or handle errors."""

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


def is_known_to_expect(expr: Expr) -> bool:
    """Whether an expression is a call of a function of a test framework that expects errors."""
    return expr.kind == "call" and _KNOWN.fullmatch(called_word(expr.items[0])) is not None


def names_expectation(text: str) -> bool:
    """Whether a text names what expects errors."""
    lowered = text.lower()
    return any(word in lowered for word in _WORDS) or any(mark in text for mark in MARKS)


def is_handled(tree: FlyTree, body: Body, at: int) -> bool:
    """Whether a context around a place, or a function that is passed what stands there, may handle errors."""
    return any(at in _handled_below(tree, around) or _is_passed(tree, around, at) for around in body.outward())


def expects_errors(tree: FlyTree, body: Body, decorator: Expr) -> bool:
    """Whether a decorator may expect errors of what it decorates; those of pytest and FlyDSL that do are known elsewhere."""
    name = decorator.callee or decorator.text
    if not name or name.startswith("pytest.") or tree.names.full(body, name):
        return False
    found = tree.bodies.resolve(body, name)
    if isinstance(found, ValueRef) and found.assign.value is not None:
        return any(part.member in (*MARKS, "skip") for part in found.assign.value.walk())
    target = tree.bodies.function(found) if isinstance(found, FunctionRef) else None
    return _expects(called_word(decorator)) or (target is not None and _calls_what_expects(target))


@lru_cache(maxsize=256)
def _handled_below(tree: FlyTree, body: Body) -> SpanSet:
    """The code below contexts that may handle errors, and below `try` with handlers for errors that calls may raise."""
    found: list[Span] = []
    for item in all_statements(body.statements):
        if item.kind == "with" and any(_is_handling(tree, body, expr) for expr in item.exprs[::2]):
            found.append(item.span)
        elif item.kind == "try" and any(map(_may_catch, item.blocks[1])):
            found.append(Span(item.blocks[0][0].start, item.blocks[0][-1].end))
    return SpanSet(found)


def _may_catch(handler: Statement) -> bool:
    """Whether a handler is not only for errors that have other causes than a call's arguments."""
    names = [part.member for expr in handler.exprs for part in expr.walk() if part.member]
    return not names or not _OTHER_ERRORS.issuperset(names)


def _is_handling(tree: FlyTree, body: Body, context: Expr) -> bool:
    """Whether a context may handle errors; a variable that is not surely given a harmless one may."""
    if is_variable(context):
        binder = body.binder(context.text)
        values = binder.values(context.text) if binder is not None else None
        only = values[0] if values is not None and len(values) == 1 else None
        return only is None or only.kind != "call" or _is_handling(tree, body, only)
    if context.kind != "call":
        return True
    word = called_word(context.items[0]).lower()
    return any(part in word for part in _HANDLING) or _handles(tree.bodies.called(body, context.callee))


def _is_passed(tree: FlyTree, body: Body, at: int) -> bool:
    """Whether a place is in the arguments of a call of what expects or handles errors."""
    spans, calls = _passing(body)
    span = spans.innermost(at - 1)
    call = calls[span] if span is not None else None
    if call is None:
        return False
    names = [item.text for item in call.items[1:] if item.kind == "name"]
    known = _expects(called_word(call.items[0])) or any(name.endswith(_ERRORS) for name in names)
    return known or _handles(tree.bodies.called(body, call.callee))


@cached_on_argument
def _passing(body: Body) -> tuple[NestedSpans, dict[Span, Expr]]:
    """The calls of a body that are passed lambdas or names."""
    found = {
        call.span: call for call in body.scope.calls if any(item.kind in ("lambda", "name") for item in call.items[1:])
    }
    return NestedSpans(found), found


def _expects(word: str) -> bool:
    return any(part in word.lower() for part in _EXPECTING)


@lru_cache(maxsize=256)
def _handles(body: Body | None) -> bool:
    """Whether a function has handlers, or a test's ``raises``, in it."""
    handlers = any(item.kind == "except" for item in all_statements(body.statements)) if body is not None else False
    return handlers or (body is not None and _calls_what_expects(body))


def _calls_what_expects(body: Body) -> bool:
    return any(_expects(called_word(call.items[0])) for scope in body.scope.walk() for call in scope.calls)
