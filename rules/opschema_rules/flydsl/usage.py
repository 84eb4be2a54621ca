"""Code that is meant to fail, as in tests that expect an error, and calls of what may be another function when they run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from opschema_cli.source.bodies import Body
from opschema_cli.source.expected import expects_failure
from opschema_cli.source.guarded_code import is_conditional, is_tried
from opschema_cli.source.python import Expr, PythonFile, Scope
from opschema_rules.flydsl.model import FlyTree

_EXPECTS = re.compile(r"\b(?:raises|warns|assert(?:Raises|Warns)(?:Regex)?|xfail|expectedFailure)\b")
_WORDS = ("raises", "warns", "Raises", "Warns", "xfail", "expectedFailure")
"""Words of which every match has one; for a fast check."""

_REPLACES = re.compile(r"\b(?:patch|monkeypatch|mocker)\b|\b(?:setattr|setitem|globals|vars)\(|\bsys\.modules\b")
_ASKS = re.compile(r"\bsignature\(")
_TAKES_NAMES = re.compile(r"\blambda\b([^:\n]{0,200}):|\bfor\b([^:\n]{0,200}?)\bin\b")
_NAME = re.compile(r"[A-Za-z_]\w*")
_LAST_OF_STRING = re.compile(r"([A-Za-z_]\w*)[\"']")


def is_meant_to_fail(tree: FlyTree, body: Body) -> bool:
    """Whether a test holds a body, or is all that calls the traced function in which it lies."""
    if _expects(tree, body):
        return True
    traced = tree.around(body)
    return traced is not None and bool(traced.calls) and all(_expects(tree, call.body) for call in traced.calls)


def is_unsure(tree: FlyTree, body: Body, call: Expr) -> bool:
    """Whether a call is meant to fail, is one of several tries, or is of what tests and modules may put something else for."""
    if is_meant_to_fail(tree, body):
        return True
    outermost = _outermost(body)
    if is_tried(body, call.start) or is_conditional(body, call.start):
        return True
    if expects_failure(tree.bodies, body, call.start) or _is_tested(tree, outermost or tree.bodies.module(body.file)):
        return True
    names = set(_NAME.findall(body.file.text(call.items[0])))
    return not names.isdisjoint(_replaced(body.file) | _taken(outermost or tree.bodies.module(body.file)))


@lru_cache(maxsize=1024)
def _is_tested(tree: FlyTree, outermost: Body) -> bool:
    """Whether a function, or a module, asks for signatures or replaces something, or is called only by what expects an error."""
    if outermost.function is None:
        return _ASKS.search(outermost.file.source.text) is not None
    text = outermost.file.text(outermost.function.outer)
    if _ASKS.search(text) is not None or _REPLACES.search(text) is not None:
        return True
    callers = [caller for caller, _ in tree.bodies.calls_of(outermost)]
    return bool(callers) and all(_expects(tree, caller) for caller in callers)


@lru_cache(maxsize=64)
def _replaced(file: PythonFile) -> frozenset[str]:
    """The names of attributes that a file writes, and those that it may write in other ways."""
    text = file.source.text
    found = {name for scope in file.body.walk() for name in _written(scope)}
    return frozenset(found | set(_LAST_OF_STRING.findall(text)) if _REPLACES.search(text) else found)


def _written(scope: Scope) -> Iterator[str]:
    targets = [item.target for item in scope.assigns] + [name for item in scope.unpacks for name in item.targets]
    yield from (name.rpartition(".")[2] for name in targets if "." in name and not name.startswith("self."))


@lru_cache(maxsize=1024)
def _taken(body: Body) -> frozenset[str]:
    """The names that `lambda` and loops in a function, or in all of a module, take."""
    text = body.file.text(body.function.outer) if body.function is not None else body.file.source.text
    return frozenset(name for found in _TAKES_NAMES.findall(text) for part in found for name in _NAME.findall(part))


def _outermost(body: Body) -> Body | None:
    return next((item for item in reversed(list(body.outward())) if item.function is not None), None)


def _expects(tree: FlyTree, body: Body) -> bool:
    outermost = _outermost(body)
    if outermost is None or outermost.function is None:
        return False
    if outermost not in tree.expecting:
        text = outermost.file.text(outermost.function.outer)
        tree.expecting[outermost] = any(word in text for word in _WORDS) and _EXPECTS.search(text) is not None
    return tree.expecting[outermost]
