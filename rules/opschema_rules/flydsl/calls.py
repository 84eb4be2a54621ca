"""Finds the calls of traced functions: by their names, of what a factory returns, and through ``flyc.compile``."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Span
from opschema_rules.flydsl.model import Call, FlyTree, Traced

COMPILE = "flydsl.compiler.compile"
"""Takes a traced function and its arguments."""

_COMPILE = COMPILE.rpartition(".")[2]

_TRACERS = ("jit", "kernel")

_CACHES = frozenset({"functools.cache", "functools.lru_cache"})
"""Decorators of a factory that leave what it returns as it is."""


class Calls:
    """The calls of the traced functions of a tree."""

    def __init__(self, tree: FlyTree) -> None:
        self.tree = tree
        self.bodies = tree.bodies
        self._compilers = tree.words.aliased(_TRACERS)
        self._launching: dict[Body, _Launches] = {}
        self._within: dict[Body, list[Call]] = {}
        self._makers: dict[Body, Traced | None] = {}

    def of(self, traced: Traced) -> list[Call]:
        """The calls of a traced function: those by its name, then those through other names."""
        found = [
            Call(traced, body, expr, self._launches(body, expr)) for body, expr in self.bodies.calls_of(traced.body)
        ]
        words, compilers = self.tree.words.aliased(self._holders(traced)), self.tree.words.aliased([_COMPILE])
        for path in self._files(traced, compilers):
            file = self.bodies.program.load(path)
            for body in self.bodies.calling(file, words | compilers) if file is not None else ():
                found += (call for call in self.within(body) if call.target is traced)
        return found

    def _files(self, traced: Traced, compilers: frozenset[str]) -> list[str]:
        """The files that may have a traced function compiled, or call the factory that makes it and then what holds it."""
        words, home = self.tree.words, traced.body.file.path
        found = {path for word in words.aliased([traced.name]) for path in words.passing(word, home, compilers)}
        factory = traced.body.parent.function if traced.body.parent is not None else None
        for word in words.aliased([factory.name]) if factory is not None else ():
            found.update(words.calling(word, home))
        return words.in_order(found)

    def called_in(self, body: Body) -> Iterator[Traced]:
        """The traced functions that a body calls, by their names or through other names."""
        for call in body.scope.calls:
            callee = call.items[0]
            found = self._named(body, callee) or self._made(body, callee)
            if found is not None:
                yield found

    def within(self, body: Body) -> list[Call]:
        """The calls in a body of what factories return, and those of ``flyc.compile``."""
        if body not in self._within:
            self._within[body] = list(self._find_within(body))
        return self._within[body]

    def _find_within(self, body: Body) -> Iterator[Call]:
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
        named = bool(call.args) and callee.text.endswith("compile")
        return named and self.tree.names.full(body, callee.text) == COMPILE

    def _named(self, body: Body, expr: Expr) -> Traced | None:
        if expr.kind != "name" or self._is_never_traced(body, expr.text):
            return None
        return self.tree.traced_of(self.bodies.called(body, expr.text))

    def _is_never_traced(self, body: Body, dotted: str) -> bool:
        """Whether a name surely stands for a function that nothing traces, by what is noted of its file alone."""
        wrapping = self.tree.names.wrapping(body, dotted)
        if wrapping is None or not wrapping.isdisjoint(self._compilers):
            return False
        name = self.tree.names.meaning(body, dotted).name.rpartition(".")[2]
        return not self.tree.words.is_passed(name, self._compilers)

    def _made(self, body: Body, expr: Expr) -> Traced | None:
        """The result of a factory that an expression stands for: a name that holds it, or the factory's call."""
        if expr.kind == "call":
            factory = self.bodies.called(body, expr.callee)
            return self._made_by(factory) if factory is not None else None
        if expr.kind != "name" or "." in expr.text:
            return None
        binder = body.binder(expr.text) or self.bodies.module(body.file)
        values = binder.values(expr.text) if binder.cls is None else None
        if values is None or len(values) != 1 or values[0].kind != "call":
            return None
        factory = self.bodies.called(binder, values[0].callee)
        return self._made_by(factory) if factory is not None else None

    def _made_by(self, factory: Body) -> Traced | None:
        """The traced function that a factory makes."""
        if factory not in self._makers:
            inside = (self.tree.traced_of(item) for item in self.bodies.within(factory)) if factory.function else ()
            found = (item for item in inside if item is not None and self._makes(factory, item))
            self._makers[factory] = next(found, None)
        return self._makers[factory]

    def _holders(self, traced: Traced) -> set[str]:
        """The factory that returns a traced function, and the names that bodies give what it returns."""
        factory = traced.body.parent
        if factory is None or factory.function is None or self._made_by(factory) is not traced:
            return set()
        held = {factory.function.name}
        for body, made in self.bodies.calls_of(factory):
            for item in body.scope.assigns if body.cls is None else ():
                if item.value is not None and item.value.span == made.span and "." not in item.target:
                    held.add(item.target)
        return held

    def _makes(self, body: Body, traced: Traced) -> bool:
        """Whether a function returns the one traced function of that name that it defines, and nothing else."""
        function, returned = body.function, body.scope.returns
        if function is None or body.parent is None or traced.decorator not in traced.function.decorators:
            return False
        around = body.parent
        plain = all(self.tree.names.external(around, name) in _CACHES for name in function.decorator_names)
        alone = len(self.bodies.functions_within(body, traced.name)) == 1 and body.values(traced.name) == []
        named = all(item.kind == "name" and item.text == traced.name for item in returned)
        return plain and alone and bool(returned) and named


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
