"""The calls of a function that depend on its arguments: through their own arguments, or because they run under a condition.

A function that registers the same whatever it is given matters to other files only where a module calls it. Where it is not
sure, a call depends on the function's parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

from opschema_cli.source.python import Class, Expr, Function, Param, Scope
from opschema_cli.source.text import Span

_RETURN = re.compile(r"\breturn\b")


class _Equation(msgspec.Struct, frozen=True):
    """Names that depend on a function's arguments if one of ``names`` does."""

    targets: frozenset[str]
    names: frozenset[str]


class _Part(msgspec.Struct, frozen=True):
    """A call or decorator of a function, with the names in it."""

    expr: Expr
    names: frozenset[str]


def dependent_calls(function: Function, text: str, body_of: Callable[[Function], Scope]) -> Iterator[Expr]:
    """The calls and decorators of a function, and of those that are written in it, that depend on its parameters. ``text`` is that
    of the file.
    """
    return _Function(function, text, body_of).dependent()


class _Function:
    def __init__(self, function: Function, text: str, body_of: Callable[[Function], Scope]) -> None:
        self.text = text
        self.end = function.outer.end
        self.body_of = body_of
        self.given = {item.name for item in function.params}
        self.equations: list[_Equation] = []
        self.parts: list[_Part] = []
        self.scopes = list(self._read(body_of(function)))

    def dependent(self) -> Iterator[Expr]:
        self._follow()
        regions = [span for scope in self.scopes for span in self._regions(scope)]
        for part in self.parts:
            start = part.expr.start
            if not self.given.isdisjoint(part.names) or any(span.start <= start < span.end for span in regions):
                yield part.expr

    def _read(self, scope: Scope) -> Iterator[Scope]:
        """Record the contents of a scope and its nested scopes."""
        yield scope
        self.parts += [_Part(call, _names([call])) for call in scope.calls]
        for item in scope.assigns:
            target = frozenset({_first(item.target)})
            if item.value is None:  # of a `with` and the like
                self.given |= target
            else:
                self.equations.append(_Equation(target, _names([item.value])))
        for loop in scope.loops:
            self.equations.append(_Equation(frozenset(map(_first, loop.targets)), _names([loop.iterable])))
        for unpack in scope.unpacks:
            self.equations.append(_Equation(frozenset(map(_first, unpack.targets)), _names([unpack.value])))
        for function in (*scope.functions, *scope.lambdas):
            self.given.update(param.name for param in function.params)
        for function in scope.functions:
            inner = self.body_of(function)
            self._define(function, [*_of_params(function.params)], inner)
            yield from self._read(inner)
        for cls in scope.classes:
            self._define(cls, cls.bases, cls.body)
            yield from self._read(cls.body)

    def _define(self, item: Function | Class, head: Iterable[Expr], body: Scope) -> None:
        """Record an inner definition: it depends on the names in it that it does not bind itself."""
        names = _names([*head, *item.decorators]) | self._free(body)
        own = {param.name for param in item.params} if isinstance(item, Function) else set[str]()
        self.equations.append(_Equation(frozenset({item.name}), names - own))
        for decorator in item.decorators:
            self.parts.append(_Part(decorator, _names([decorator]) | {item.name}))

    def _free(self, scope: Scope) -> frozenset[str]:
        """The names that a scope does not bind itself."""
        values = [item.value for item in scope.assigns if item.value is not None]
        tests = [item.expr for item in scope.conditions]
        inner = [self._free(self.body_of(item)) - {param.name for param in item.params} for item in scope.functions]
        inner += [self._free(item.body) for item in scope.classes]
        bound = {item.target for item in scope.assigns} | {item.name for item in scope.functions}
        bound.update(item.name for item in scope.classes)
        return _names([*scope.calls, *scope.returns, *values, *tests]).union(*inner) - bound

    def _follow(self) -> None:
        """Find the names that depend on the parameters."""
        size = -1
        while size != (size := len(self.given)):
            for item in self.equations:
                if not self.given.isdisjoint(item.names):
                    self.given |= item.targets

    def _regions(self, scope: Scope) -> Iterator[Span]:
        """Yield the code that only runs if an argument says so."""
        for item in scope.conditions:
            if item.kind == "if" and not self.given.isdisjoint(_names([item.expr])):
                branches = [item.body, *([item.orelse] if item.orelse is not None else [])]
                yield from branches
                if any(_RETURN.search(self.text, branch.start, branch.end) for branch in branches):
                    yield Span(item.expr.start, self.end)
        for loop in scope.loops:
            if not self.given.isdisjoint(_names([loop.iterable])):
                yield loop.body


def _of_params(params: Iterable[Param]) -> Iterator[Expr]:
    return (part for item in params for part in (item.annotation, item.default) if part is not None)


def _names(exprs: Iterable[Expr]) -> frozenset[str]:
    """The first words of all names in some expressions."""
    return frozenset(_first(part.text) for expr in exprs for part in expr.walk() if part.kind == "name")


def _first(dotted: str) -> str:
    return dotted.partition(".")[0]
