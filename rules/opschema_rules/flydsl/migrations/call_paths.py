"""Follows names and integers from a kernel through the calls that lead to it."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from opschema_cli.migrate.codemods.scopes import all_parameters
from opschema_cli.source.bodies import Body, argument_for
from opschema_cli.source.program import ValueRef
from opschema_cli.source.python import Expr
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Place
from opschema_rules.flydsl.migrations.counts import Count
from opschema_rules.flydsl.migrations.references import References
from opschema_rules.flydsl.model import FlyTree

MAX_STEPS = 400
"""Maximum number of expressions to follow for one descriptor and one path of calls."""

_INTEGERS = frozenset({"Int32", "Int64", "Index"})
_WIDE = frozenset({"Int64", "Index"})


class Unproved(Exception):  # noqa: N818 - an answer, not a fault
    """An unproved property: the place that shows it, and the reason."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(reason)
        self.place = place
        self.reason = reason


class NeedsCaller(Exception):  # noqa: N818 - a question
    """Raised when the arguments of a function are needed."""

    def __init__(self, function: Body) -> None:
        super().__init__()
        self.function = function


Entered = Mapping[Body, tuple[Body, Expr]]
"""The functions that a path of calls enters, each with the body and the call that enters it."""


def calls_of(references: References, function: Body) -> list[tuple[Body, Expr]]:
    """Return the calls of a function that is only ever called.

    Raises:
        Unproved: there is none, it is used otherwise, or it is a method.
    """
    assert function.function is not None
    name, place = function.function.name, function.at(function.function.span)
    if function.method is function:
        raise Unproved(place, f"calls of the method `{name}()` cannot be followed")
    calls: list[tuple[Body, Expr]] = []
    for found in references.of_function(function.file.path, function.function):
        if found.called is None:
            raise Unproved(found.place, f"the calls of `{name}()` from here on are not known")
        calls.append((found.body, found.called))
    if not calls:
        raise Unproved(place, f"nothing calls `{name}()`, so its arguments are not known")
    return calls


class CallPath:
    """Follows expressions along one path of calls; ``wide`` is set after a run-time number of 64 bits."""

    def __init__(self, tree: FlyTree, entered: Entered, parsed: dict[str, PythonTree]) -> None:
        self.tree = tree
        self.parsed = parsed
        self.bodies = tree.bodies
        self.names = tree.names
        self.entered = entered
        self.steps = MAX_STEPS
        self.wide = False

    def unknown(self, body: Body, expr: Expr) -> Unproved:
        """Return the error for an expression whose value is not known."""
        text = " ".join(body.file.text(expr).split())
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        return Unproved(body.at(expr), f"the value of `{shown}` is not known")

    def step(self, body: Body, expr: Expr) -> None:
        """Count a followed expression.

        Raises:
            Unproved: there are too many.
        """
        self.steps -= 1
        if self.steps < 0:
            raise self.unknown(body, expr)

    # Names

    def follow(self, body: Body, expr: Expr, *, enter: bool) -> tuple[Body, Expr] | str:
        """Return the body and the expression of a name's value; a unique key if only the variable is known.

        ``enter`` asks for what a function is given that no kernel or launcher is.
        """
        name = expr.text
        binder = body.binder(name) if "." not in name else None
        if self._is_inner(body, expr):
            raise self.unknown(body, expr)
        if binder is None:
            return self._of_module(body, expr)
        self._check_once(body, binder, expr)
        params = [item for item in binder.params if item.name == name]
        if params:
            return self._of_parameter(body, binder, expr, enter=enter)
        assigns = [item for item in binder.scope.assigns if item.target == name]
        if len(assigns) != 1 or not assigns[0].sure:
            raise self.unknown(body, expr)
        return (binder, assigns[0].value) if assigns[0].value is not None else key_of(binder, assigns[0].start)

    def _is_inner(self, body: Body, expr: Expr) -> bool:
        """Whether a lambda or a comprehension binds a name at the place of its use."""
        path, name = body.file.path, expr.text.partition(".")[0]
        if path not in self.parsed:
            self.parsed[path] = self.tree.project.tree(path)
        tree = self.parsed[path]
        for node in tree.names(name):
            if tree.span(node).start == expr.start:
                return any(_binds(tree, above, name) for above in tree.ancestors(node))
        return True

    def _of_module(self, body: Body, expr: Expr) -> tuple[Body, Expr] | str:
        found = self.bodies.resolve(body, expr.text)
        if not isinstance(found, ValueRef) or found.owner is not None or not found.assign.sure:
            raise self.unknown(body, expr)
        module = self.bodies.module(found.file)
        if _is_rebound(module, found.assign.target):
            raise self.unknown(body, expr)
        return (module, found.assign.value) if found.assign.value is not None else key_of(module, found.assign.start)

    def _of_parameter(self, body: Body, binder: Body, expr: Expr, *, enter: bool) -> tuple[Body, Expr] | str:
        param = next(item for item in binder.params if item.name == expr.text)
        if binder not in self.entered:
            if enter or self.tree.traced_of(binder) is not None:
                raise NeedsCaller(binder)
            return key_of(binder, param.start)
        caller, call = self.entered[binder]
        params = binder.params[1:] if binder.this and binder is binder.method else binder.params
        given = argument_for(call, params, expr.text)
        if given is not None:
            return caller, given
        if param.default is None or any(word in ("*", "**") for word in call.keywords):
            raise self.unknown(body, expr)
        return binder.parent or binder, param.default

    def _check_once(self, body: Body, binder: Body, expr: Expr) -> None:
        """Check that a name still has its first value at this place."""
        name, at = expr.text, expr.start
        is_param = any(item.name == name for item in binder.params)
        assigns = [item for item in binder.scope.assigns if item.target == name]
        again = assigns if is_param else assigns[1:]
        own = all(item.statement.start <= at < item.statement.end or item.statement.start > at for item in again)
        if _is_rebound(binder, name) or (again and (body is not binder or not own or _repeats(body, at))):
            raise self.unknown(body, expr)

    # Numbers

    def count(self, body: Body, expr: Expr) -> Count:
        """Return the value of an integer expression."""
        self.step(body, expr)
        match expr.kind:
            case "const" if type(expr.value) is int:
                return Count.of(expr.value)
            case "name":
                found = self.follow(body, expr, enter=False)
                return Count.named(found) if isinstance(found, str) else self._named(*found)
            case "binary":
                return self._computed(body, expr)
            case "call" if self._is_integer(body, expr):
                inner = self.count(body, expr.items[1])
                self.wide |= inner.value is None and self.names.called(body, expr) in _WIDE
                return inner
        raise self.unknown(body, expr)

    def _named(self, body: Body, expr: Expr) -> Count:
        """Return the value of a name; a value that is not integer arithmetic counts as an extent of its own."""
        if expr.kind in ("const", "name", "binary") or (expr.kind == "call" and self._is_integer(body, expr)):
            return self.count(body, expr)
        return Count.named(key_of(body, expr.start))

    def _is_integer(self, body: Body, call: Expr) -> bool:
        if len(call.items) != 2 or call.keywords[0]:
            return False
        return self.names.called(body, call) in _INTEGERS or self.bodies.external(body, call.callee) == "int"

    def _computed(self, body: Body, expr: Expr) -> Count:
        left, right = (self.count(body, item) for item in expr.items)
        match expr.text:
            case "*":
                return left * right
            case "+":
                return left + right
            case "-":
                return left - right
            case "//" if left.value is not None and right.value:
                return Count.of(left.value // right.value)
        raise self.unknown(body, expr)


def key_of(body: Body, at: int) -> str:
    """Return a unique key for the value."""
    return f"{body.file.path}:{at}"


def _repeats(body: Body, at: int) -> bool:
    """Whether the code at a place may run more than once per call of the function: in a loop."""
    arms = {span for item in body.scope.conditions for span in (item.body, item.orelse) if span is not None}
    around = [item.body for item in body.scope.loops] + [item for item in body.scope.guarded if item not in arms]
    return any(span.start <= at < span.end for span in around)


def _binds(tree: PythonTree, node: cst.CSTNode, name: str) -> bool:
    """Whether a lambda or a comprehension binds a name."""
    if isinstance(node, cst.Lambda):
        return any(item.name.value == name for item in all_parameters(node.params))
    clause = node.for_in if isinstance(node, cst.ListComp | cst.SetComp | cst.DictComp | cst.GeneratorExp) else None
    while clause is not None:
        if any(isinstance(item, cst.Name) and item.value == name for item in tree.walk(clause.target)):
            return True
        clause = clause.inner_for_in
    return False


def _is_rebound(binder: Body, name: str) -> bool:
    """Whether a variable is deleted, or written from functions inside by ``global`` or ``nonlocal``."""
    return any(name in scope.deleted for scope in binder.scope.walk())
