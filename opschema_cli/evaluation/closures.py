"""Closures: the free variables of functions, exactly as Python has them, and the variables that they capture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from opschema_cli.evaluation.statements import all_statements, bound_by, targets
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Class, Expr, Function, PythonFile, Scope, Statement, Use

FreeNames: TypeAlias = dict[int, list[str]]
"""The free variables of the functions of one file, by the offsets of the functions' names; those without any are left out."""


class Cell(msgspec.Struct, frozen=True):
    """A variable of the function ``binder`` that functions inside it capture."""

    binder: Body
    name: str

    @property
    def is_parameter(self) -> bool:
        """Whether callers give its value."""
        return any(item.name == self.name for item in self.binder.params)


class Capture(msgspec.Struct, frozen=True):
    """A cell and one function that captures it."""

    cell: Cell
    body: Body


class Closures:
    """The closures of a program; ``free`` gives the free variables of a file's functions."""

    def __init__(self, bodies: Bodies, free: Callable[[PythonFile], FreeNames]) -> None:
        self.bodies = bodies
        self._free = free

    def cells(self, body: Body) -> list[Cell]:
        """The variables that a function captures itself, each with the function that binds it."""
        around = body.parent
        if around is None or body.function is None:
            return []
        names = self._free(body.file).get(body.function.start, ())
        bound = [(name, around.binder(name)) for name in names]
        return [Cell(binder, name) for name, binder in bound if binder is not None]

    def captured(self, body: Body) -> list[Capture]:
        """The variables that a function captures, and in turn those that the captured functions capture."""
        found: list[Capture] = []
        reached, waiting = {body}, [body]
        while waiting:
            current = waiting.pop()
            for cell in self.cells(current):
                found.append(Capture(cell, current))
                inner = self.function_of(cell)
                if inner is not None and inner not in reached:
                    reached.add(inner)
                    waiting.append(inner)
        return found

    def function_of(self, cell: Cell) -> Body | None:
        """The function in a cell, where one ``def`` is all that gives it a value."""
        functions = self.bodies.functions_within(cell.binder, cell.name)
        others = any(item.target == cell.name for item in cell.binder.scope.assigns) or cell.is_parameter
        return functions[0] if len(functions) == 1 and not others else None

    def reads(self, capture: Capture) -> Iterator[tuple[Body, Use]]:
        """The reads of a captured variable in a function and in those written inside it, in the order of the text."""
        name = capture.cell.name
        for body in self.bodies.inside(capture.body):
            for use in body.scope.uses:
                if use.name.partition(".")[0] == name and body.binder(name) is capture.cell.binder:
                    yield body, use


class _Names(msgspec.Struct):
    """The names of one function; of ``read`` those are left out that a comprehension or lambda in it binds."""

    bound: set[str] = msgspec.field(default_factory=set)
    read: set[str] = msgspec.field(default_factory=set)
    shared: set[str] = msgspec.field(default_factory=set)
    """Declared ``nonlocal``."""
    top: set[str] = msgspec.field(default_factory=set)
    """Declared ``global``."""

    @property
    def own(self) -> set[str]:
        """Its local variables."""
        return self.bound - self.shared - self.top

    @property
    def outer(self) -> set[str]:
        """The names that it looks up outside, but not in the module at once."""
        return (self.read - self.bound - self.top) | self.shared


def free_names(file: PythonFile) -> FreeNames:
    """The free variables of each function of a file. A function at the top without another one in it is not unpacked."""
    found: FreeNames = {}
    text = file.source.text
    for function in file.body.functions:
        if text.find("def", function.end, function.outer.end) >= 0:
            _of_function(function, frozenset(), found)
    for cls in file.body.classes:
        _of_class(cls, frozenset(), found)
    return found


def _of_nested(scope: Scope, visible: frozenset[str], found: FreeNames) -> set[str]:
    """The names that the functions and classes in a scope look up around it; ``visible`` are variables of functions there."""
    outer: set[str] = set()
    for function in scope.functions:
        outer |= _of_function(function, visible, found)
    for cls in scope.classes:
        outer |= _of_class(cls, visible, found)
    return outer


def _of_function(function: Function, visible: frozenset[str], found: FreeNames) -> set[str]:
    body = function.peek_body()
    names = _names(function, body)
    inner = _of_nested(body, (visible | names.own) - names.top, found)
    names.read |= inner
    free = names.outer & visible
    if free:
        found[function.start] = sorted(free)
    return names.outer


def _of_class(cls: Class, visible: frozenset[str], found: FreeNames) -> set[str]:
    """Functions in a class do not see the names that its body binds."""
    inner = _of_nested(cls.body, visible, found)
    body = cls.body
    read = {use.name.partition(".")[0] for use in body.uses}
    return inner | (read - body.named.keys())


def _names(function: Function, body: Scope) -> _Names:
    names = _Names({item.name for item in function.params})
    _statements(names, function, body)
    for inner in body.functions:
        parts = [*(part for item in inner.params for part in (item.annotation, item.default)), inner.returns]
        _read_all(names, (*inner.decorators, *filter(None, parts)))
    for cls in body.classes:
        _read_all(names, (*cls.bases, *cls.decorators, *filter(None, [cls.metaclass])))
    for item in body.lambdas:
        _read_all(names, (param.default for param in item.params if param.default is not None))
    return names


def _statements(names: _Names, function: Function, body: Scope) -> None:
    for item in all_statements(function.peek_statements()):
        if item.kind in ("import", "def", "class", "except"):
            names.bound.update(item.names)
        elif item.kind == "case":
            names.bound.update(item.names)
            names.read |= _in_pattern(body, item)
        elif item.kind == "global":
            names.top.update(item.names)
        elif item.kind == "nonlocal":
            names.shared.update(item.names)
        for target in targets(item):
            names.bound.update(bound_by(target))
        _read_all(names, item.exprs)


def _in_pattern(body: Scope, case: Statement) -> set[str]:
    """The names that the pattern of a case reads."""
    inside = [*(item.start for item in case.exprs), *(item.start for block in case.blocks for item in block)]
    end = min(inside, default=case.end)
    uses = (use for use in body.uses if case.start <= use.start < end)
    return {use.name.partition(".")[0] for use in uses}


def _read_all(names: _Names, exprs: Iterable[Expr], hidden: frozenset[str] = frozenset(), *, own: bool = True) -> None:
    """Add the names that expressions read and bind; ``hidden`` are variables of comprehensions and lambdas around them."""
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
    """The first iterable is looked up around the comprehension, all else in it."""
    clauses = [item for item in expr.items if item.kind == "for"]
    inner = hidden | {name for clause in clauses for name in bound_by(clause.items[0])}
    _read_all(names, clauses[0].items[1:2], hidden, own=own)
    parts = [item for item in expr.items if item.kind != "for"]
    parts += [part for clause in clauses for part in (clause.items if clause is not clauses[0] else clause.items[2:])]
    _read_all(names, [*parts, clauses[0].items[0]], inner, own=own)


def _walrus_names(expr: Expr) -> Iterator[str]:
    """The variables of a lambda that its body binds."""
    if expr.kind == "walrus":
        yield expr.items[0].text
    for item in expr.items if expr.kind != "lambda" else ():
        yield from _walrus_names(item)
