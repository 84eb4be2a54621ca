"""Finds the calls of traced functions: by their names, of what a factory returns, and through ``flyc.compile``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Span
from opschema_cli.source.word_index import WordIndex, aliased
from opschema_rules.flydsl.model import Call, Traced
from opschema_rules.flydsl.names import Names

COMPILE = "flydsl.compiler.compile"
"""Takes a traced function and its arguments."""

_CACHES = frozenset({"functools.cache", "functools.lru_cache"})
"""Decorators of a factory that leave what it returns as it is."""


class Calls:
    """The calls of some traced functions."""

    def __init__(self, names: Names, traced: Iterable[Traced]) -> None:
        self.names = names
        self.bodies = names.bodies
        self._traced = {id(item.body): item for item in traced}
        self._launching: dict[Body, _Launches] = {}
        self.holders: set[str] = set()
        """The factories, and the names that hold what they return."""
        self._held: dict[tuple[int, str], Traced] = {}
        for item in self._traced.values():
            for body, name in _holders(names, item):
                self._held[id(body), name] = item
                self.holders.add(name or (body.function.name if body.function is not None else ""))

    def of(self, traced: Traced) -> Iterator[Call]:
        """The calls of one of them by its name."""
        for body, expr in self.bodies.calls_of(traced.body):
            yield Call(traced, body, expr, self._launches(body, expr))

    def within(self, body: Body) -> Iterator[Call]:
        """The calls in a body of what factories return, and those of ``flyc.compile``."""
        for call in body.scope.calls:
            made = self._made(body, call.items[0])
            if made is not None:
                yield Call(made, body, call, self._launches(body, call))
            elif self._is_compile(body, call):
                target, *given = call.args
                function = self._made(body, target[1]) or self._named(body, target[1])
                if given and not target[0] and function is not None:
                    expr = Expr("call", call.start, call.end, items=call.items[1:], keywords=call.keywords[1:])
                    yield Call(function, body, expr)

    def _launches(self, body: Body, call: Expr) -> tuple[Expr, ...]:
        if body not in self._launching:
            self._launching[body] = _Launches(body)
        return self._launching[body].of(call)

    def _is_compile(self, body: Body, call: Expr) -> bool:
        callee = call.items[0].items[0] if call.items[0].kind == "subscript" else call.items[0]
        return bool(call.args) and callee.text.endswith("compile") and self.names.full(body, callee.text) == COMPILE

    def _named(self, body: Body, expr: Expr) -> Traced | None:
        found = self.bodies.called(body, expr.text) if expr.kind == "name" else None
        return self._traced.get(id(found))

    def _made(self, body: Body, expr: Expr) -> Traced | None:
        """The result of a factory that an expression stands for: a name that holds it, or the factory's call."""
        if expr.kind == "call":
            factory = self.bodies.called(body, expr.callee)
            return self._held.get((id(factory), "")) if factory is not None else None
        if expr.kind != "name" or "." in expr.text:
            return None
        binder = body.binder(expr.text) or self.bodies.module(body.file)
        return self._held.get((id(binder), expr.text))


class _Launches:
    """The calls of ``.launch`` in a body, by what they are called on."""

    def __init__(self, body: Body) -> None:
        self._held: dict[Span, list[str]] = {}
        for item in body.scope.assigns:
            if item.value is not None and item.value.kind == "call":
                self._held.setdefault(item.value.span, []).append(item.target)
        self._calls = body.scope.calls
        self._on: dict[Span | str, list[int]] = {}
        for number, call in enumerate(self._calls):
            callee = call.items[0]
            if callee.kind == "attribute" and callee.text == "launch":
                self._on.setdefault(callee.items[0].span, []).append(number)
            elif call.callee.endswith(".launch"):
                self._on.setdefault(call.callee.removesuffix(".launch"), []).append(number)

    def of(self, expr: Expr) -> tuple[Expr, ...]:
        """The calls on the result of a call, at once or through the names that hold it, in the order of the text."""
        keys = {expr.span, *self._held.get(expr.span, ())}
        return tuple(self._calls[at] for at in sorted({at for key in keys for at in self._on.get(key, ())}))


def _holders(names: Names, traced: Traced) -> Iterator[tuple[Body, str]]:
    """The factory that returns a traced function, with an empty name, and the names that bodies give what it returns."""
    factory = traced.body.parent
    if factory is None or not _makes(names, factory, traced):
        return
    yield factory, ""
    for body, made in names.bodies.calls_of(factory):
        for item in body.scope.assigns if body.cls is None else ():
            held = item.value is not None and item.value.span == made.span and "." not in item.target
            if held and body.values(item.target) == [item.value]:
                yield body, item.target


def _makes(names: Names, body: Body, traced: Traced) -> bool:
    """Whether a function returns the one traced function of that name that it defines, and nothing else."""
    function, returned = body.function, body.scope.returns
    if function is None or body.parent is None or traced.decorator not in traced.function.decorators:
        return False
    around = body.parent
    plain = all(names.bodies.external(around, name) in _CACHES for name in function.decorator_names)
    alone = len(names.bodies.functions_within(body, traced.name)) == 1 and body.values(traced.name) == []
    named = all(item.kind == "name" and item.text == traced.name for item in returned)
    return plain and alone and bool(returned) and named


def find_calls(names: Names, bodies: Bodies, traced: list[Traced], indexes: Iterable[WordIndex]) -> None:
    """Give each traced function its calls."""
    calls = Calls(names, traced)
    for item in traced:
        item.calls.extend(calls.of(item))
    words = aliased({COMPILE.rpartition(".")[2], *calls.holders}, indexes)
    for file in bodies.files:
        for body in bodies.calling(file, words):
            for call in calls.within(body):
                call.target.calls.append(call)
