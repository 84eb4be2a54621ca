"""Recognizes code that is expected to fail, such as tests of errors, and calls that may not run as written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.expected_errors import (
    expectation,
    expects_failure,
    is_handled,
    names_expectation,
    outermost_function,
)
from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.source.bodies import Body
from opschema_cli.source.guarded_code import is_conditional, is_guarded, is_tried
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.text import places_of
from opschema_cli.source.word_index import called_word
from opschema_rules.flydsl.api_guards import conditions_around, is_guarded_around, names_version
from opschema_rules.flydsl.body_index import index_of
from opschema_rules.flydsl.dead_code import is_dead
from opschema_rules.flydsl.model import Call, FlyTree
from opschema_rules.flydsl.rebinding import may_be_another

_ASKING = frozenset({"signature", "getfullargspec", "getargspec", "co_argcount", "co_varnames"})
"""Names through which code inspects the parameters of a function."""

_BY_NAME = frozenset({"hasattr", "getattr", "setattr", "delattr", "attrgetter", "methodcaller", "object", "patch"})
"""Last words of functions that take an attribute's name as a string."""


def is_unsure(tree: FlyTree, body: Body, call: Expr) -> bool:
    """Whether a call is expected to fail, is one of several attempts, or calls a function that tests or modules may replace."""
    if _may_fail(tree, body, call.start) or is_meant_to_fail(tree, body) or _is_tried_beside(tree, body):
        return True
    module = tree.bodies.module(body.file)
    if _asks_for_parameters(module) or _asks_for_parameters(outermost_function(body) or module):
        return True
    return _is_asked_for(body, call) or may_be_another(tree, body, call.items[0])


def of_sure_call(tree: FlyTree, call: Call, found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield the findings in a call, unless it is unsure; this is only computed if there are findings."""
    diagnostics = list(found)
    if diagnostics and not is_unsure(tree, call.body, call.expr):
        yield from diagnostics


def is_meant_to_fail(tree: FlyTree, body: Body, hops: int = MAX_CALLS) -> bool:
    """Whether an error is expected wherever the function of a body is called; without a known call, where the enclosing function
    is.
    """
    function = next((item for item in body.outward() if item.function is not None), None)
    if function is None or hops <= 0:
        return False
    if function not in tree.failing:
        tree.failing[function] = False  # of functions that call each other
        called = [
            (caller, call.start) for caller, call in _calls_of(tree, function) if function not in caller.outward()
        ]
        found = [
            expects_failure(tree.bodies, caller, at) or is_meant_to_fail(tree, caller, hops - 1)
            for caller, at in called
        ]
        if all(found):
            found += [_is_passed_to_test(tree, caller, at) for caller, at in _passed(tree, function)]
        around = function.parent is not None and is_meant_to_fail(tree, function.parent, hops - 1)
        around = around or any(is_handled(tree.bodies, caller, at) for caller, at in _passed_beside(function))
        tree.failing[function] = all(found) if found else around or _is_part_of_failing_test(tree, function)
    return tree.failing[function]


def is_left_alone(tree: FlyTree, body: Body, at: int, word: str) -> bool:
    """Whether code first checks for the name, sets it, or expects that it is missing."""
    bodies = tree.bodies
    if word in _said_or_set(body.file):
        return True
    return is_guarded_around(tree, body, at) or expects_failure(bodies, body, at) or is_handled(bodies, body, at)


def may_be_absent(tree: FlyTree, body: Body, at: int, word: str = "") -> bool:
    """Whether code checks for or sets an attribute, runs for some versions only, or expects an error. Unlike :func:`is_left_alone`,
    this is for attributes that no release has: an unknown condition makes no difference.
    """
    if word and word in _asked_or_set(body.file):
        return True
    return names_version(tree, body, at) or expects_failure(tree.bodies, body, at) or is_handled(tree.bodies, body, at)


@cached_on_argument
def _asked_or_set(file: PythonFile) -> frozenset[str]:
    """The attributes that a file looks up by name or sets, also on instances of its own classes; if it computes some of these
    names, with all its strings.
    """
    scopes = list(file.body.walk())
    found = {
        holder_word[2] for scope in scopes for item in scope.assigns if (holder_word := item.target.rpartition("."))[0]
    }
    for call in (call for scope in scopes for call in scope.calls if called_word(call.items[0]) in _BY_NAME):
        names = [item.value for item in call.items[1:] if isinstance(item.value, str)]
        found.update(names or (text for scope in scopes for text in scope.strings))
    return frozenset(found)


@cached_on_argument
def _said_or_set(file: PythonFile) -> frozenset[str]:
    """The strings of a file that may be names, and the attributes that it assigns."""
    scopes = list(file.body.walk())
    assigned = (item.target.rpartition(".") for scope in scopes for item in scope.assigns)
    strings = (text for scope in scopes for text in scope.strings)
    return frozenset(strings).union(name for holder, _, name in assigned if holder)


def _passed(tree: FlyTree, function: Body) -> list[tuple[Body, int]]:
    """Return the places in its file where a function of a module is passed as a value."""
    if function.function is None or function.parent is None or function.parent.definition is not None:
        return []
    name, text = function.function.name, function.file.source.text
    is_named = any(not text.startswith("(", at + len(name)) for at in places_of(name, text))
    return _passed_in(tree, function.file).get(name, []) if is_named else []


def _passed_beside(function: Body) -> list[tuple[Body, int]]:
    """Return the places where the enclosing function names a nested one."""
    body, name = function.parent, function.function.name if function.function is not None else ""
    return (
        [(body, use.start) for use in index_of(body).uses.get(name, ())] if body is not None and body.function else []
    )


@lru_cache(maxsize=64)
def _passed_in(tree: FlyTree, file: PythonFile) -> dict[str, list[tuple[Body, int]]]:
    """The places in a file with names that are not called, by name."""
    found: dict[str, list[tuple[Body, int]]] = {}
    for body in tree.bodies.of(file):
        called = {call.items[0].start for call in body.scope.calls}
        for use in body.scope.uses:
            if use.start not in called and body.binder(use.name) is None:
                found.setdefault(use.name, []).append((body, use.start))
    return found


def _is_passed_to_test(tree: FlyTree, body: Body, at: int) -> bool:
    """Whether a function is passed where an error is expected, or to a test of the file that may expect one."""
    at_top = outermost_function(body) is None and names_expectation(body.file)
    return at_top or expects_failure(tree.bodies, body, at) or is_handled(tree.bodies, body, at)


def _is_tried_beside(tree: FlyTree, body: Body) -> bool:
    """Whether the enclosing function calls a nested one and handles errors at every call."""
    calls = _calls_of(tree, body) if body.function is not None and outermost_function(body) is not body else []
    return bool(calls) and all(
        is_tried(caller, call.start) and outermost_function(caller) is outermost_function(body)
        for caller, call in calls
    )


def _calls_of(tree: FlyTree, body: Body) -> list[tuple[Body, Expr]]:
    traced = tree.traced_of(body)
    return [(call.body, call.expr) for call in traced.calls] if traced is not None else tree.bodies.calls_of(body)


def _is_part_of_failing_test(tree: FlyTree, body: Body) -> bool:
    """Whether a function without a known call is a test that expects an error anywhere, or is nested in a test of any kind."""
    outermost = outermost_function(body)
    expected = expectation(tree.bodies, outermost) if outermost is not None else ""
    return expected == "anywhere" or (bool(expected) and body is not outermost) or _is_part_of_test_class(body)


def _is_part_of_test_class(body: Body) -> bool:
    """Whether a function is a method, but not a test, in a file with tests that expect errors."""
    function, around = body.function, body.parent
    is_method = function is not None and around is not None and around.cls is not None
    return is_method and function is not None and not function.name.startswith("test") and names_expectation(body.file)


def _may_fail(tree: FlyTree, body: Body, at: int) -> bool:
    """Whether an error at a place is expected or handled, or the code there is for some releases only, or never runs."""
    tried = is_tried(body, at) if body.function is not None else is_guarded(body, at)
    passes = tried or is_conditional(body, at) or is_dead(tree, body, at)
    return (
        passes
        or expects_failure(tree.bodies, body, at)
        or is_handled(tree.bodies, body, at)
        or names_version(tree, body, at)
    )


@cached_on_argument
def _asks_for_parameters(around: Body) -> bool:
    """Whether a function or a module chooses between calls by the parameters of functions."""
    scopes = around.scope.walk() if around.function is not None else [around.scope]
    return any(not _ASKING.isdisjoint(use.name.split(".")) for scope in scopes for use in scope.uses)


def _is_asked_for(body: Body, call: Expr) -> bool:
    """Whether a condition around a call names the called function, as in ``if takes_width(launch)``."""
    conditions = (item for around in body.outward() for item in conditions_around(around, call.start))
    return any(part.text == call.callee for item in conditions for part in item.expr.walk() if part.kind == "name")
