"""The free variables of functions, exactly as Python defines them, from one file alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec

from opschema_cli.evaluation.statements import all_statements, bound_by, targets
from opschema_cli.source.python import Class, Expr, Function, PythonFile, Scope, Statement

FreeNames: TypeAlias = dict[int, list[str]]
"""The free variables of the functions of one file, by the offset of the function's name; functions without any are left out."""


class _Names(msgspec.Struct):
    """The names of one function; ``read`` excludes names bound by a comprehension or lambda in it."""

    bound: set[str] = msgspec.field(default_factory=set)
    read: set[str] = msgspec.field(default_factory=set)
    shared: set[str] = msgspec.field(default_factory=set)
    """Names declared ``nonlocal``."""
    top: set[str] = msgspec.field(default_factory=set)
    """Names declared ``global``."""

    @property
    def own(self) -> set[str]:
        """Its local variables."""
        return self.bound - self.shared - self.top

    @property
    def outer(self) -> set[str]:
        """The names that it looks up in enclosing functions."""
        return (self.read - self.bound - self.top) | self.shared


def free_names(file: PythonFile) -> FreeNames:
    """Return the free variables of each function of a file. Top-level functions are only unpacked if they contain others."""
    found = _Found(file.source.text)
    found.nested(file.body, frozenset())
    return found.free


class _Found:
    """Collects the free variables of a text. ``visible`` are the variables of enclosing functions."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.free: FreeNames = {}

    def nested(self, scope: Scope, visible: frozenset[str]) -> set[str]:
        """Return the names that the functions and classes in a scope look up outside it, if any are ``visible``."""
        outer: set[str] = set()
        for function in scope.functions:
            if visible or self._text.find("def", function.end, function.outer.end) >= 0:
                outer |= self._function(function, visible)
        for cls in scope.classes:
            outer |= self._class(cls, visible)
        return outer

    def _function(self, function: Function, visible: frozenset[str]) -> set[str]:
        body = function.peek_body()
        names = _names(function)
        if visible or self._text.find(":=", function.end, function.outer.end) >= 0:
            _read_in(names, function, body)
        names.read |= self.nested(body, (visible | names.own) - names.top)
        free = names.outer & visible
        if free:
            self.free[function.start] = sorted(free)
        return names.outer

    def _class(self, cls: Class, visible: frozenset[str]) -> set[str]:
        """Return the names of a class; functions in it do not see the names that its body binds."""
        body = cls.body
        inner = self.nested(body, visible)
        if not visible:
            return inner
        read = {use.name.partition(".")[0] for use in body.uses}
        return inner | (read - body.named.keys())


def _names(function: Function) -> _Names:
    """Return the names that the statements of a function bind and declare."""
    names = _Names({item.name for item in function.params})
    for item in all_statements(function.peek_statements()):
        if item.kind in ("import", "def", "class", "except", "case"):
            names.bound.update(item.names)
        elif item.kind == "global":
            names.top.update(item.names)
        elif item.kind == "nonlocal":
            names.shared.update(item.names)
        for target in targets(item):
            names.bound.update(bound_by(target))
    return names


def _read_in(names: _Names, function: Function, body: Scope) -> None:
    """Add the names that the expressions of a function read and bind."""
    for item in all_statements(function.peek_statements()):
        if item.kind == "case":
            names.read |= _in_pattern(body, item)
        _read_all(names, item.exprs)
    for inner in body.functions:
        parts = [*(part for param in inner.params for part in (param.annotation, param.default)), inner.returns]
        _read_all(names, (*inner.decorators, *filter(None, parts)))
    for cls in body.classes:
        _read_all(names, (*cls.bases, *cls.decorators, *filter(None, [cls.metaclass])))
    for made in body.lambdas:
        _read_all(names, (param.default for param in made.params if param.default is not None))


def _in_pattern(body: Scope, case: Statement) -> set[str]:
    """Return the names that the pattern of a ``case`` reads."""
    inside = [*(item.start for item in case.exprs), *(item.start for block in case.blocks for item in block)]
    end = min(inside, default=case.end)
    uses = (use for use in body.uses if case.start <= use.start < end)
    return {use.name.partition(".")[0] for use in uses}


def _read_all(names: _Names, exprs: Iterable[Expr], hidden: frozenset[str] = frozenset(), *, own: bool = True) -> None:
    """Add the names that expressions read and bind; ``hidden`` are variables of enclosing comprehensions and lambdas."""
    waiting = list(exprs)
    while waiting:
        expr = waiting.pop()
        if expr.kind == "name":
            first = expr.text.partition(".")[0]
            if first not in hidden:
                names.read.add(first)
        elif expr.kind in _COMPREHENSIONS:
            _comprehension(names, expr, hidden, own=own)
        elif expr.kind == "lambda":
            *params, body = expr.items
            inside = {item.text for item in params} | set(_walrus_names(body))
            _read_all(names, [body], hidden | inside, own=False)
        else:
            if expr.kind == "walrus" and own:
                names.bound.add(expr.items[0].text)
            waiting += expr.items


_COMPREHENSIONS = frozenset({"listcomp", "setcomp", "dictcomp", "generator"})


def _comprehension(names: _Names, expr: Expr, hidden: frozenset[str], *, own: bool) -> None:
    """Add the names of a comprehension; the first iterable is looked up outside it, everything else inside."""
    clauses = [item for item in expr.items if item.kind == "for"]
    inner = hidden | {name for clause in clauses for name in bound_by(clause.items[0])}
    _read_all(names, clauses[0].items[1:2], hidden, own=own)
    parts = [item for item in expr.items if item.kind != "for"]
    parts += [part for clause in clauses for part in (clause.items if clause is not clauses[0] else clause.items[2:])]
    _read_all(names, [*parts, clauses[0].items[0]], inner, own=own)


def _walrus_names(expr: Expr) -> Iterator[str]:
    """Yield the variables that the body of a lambda binds."""
    if expr.kind == "walrus":
        yield expr.items[0].text
    for item in expr.items if expr.kind != "lambda" else ():
        yield from _walrus_names(item)
