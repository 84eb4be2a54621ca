"""Finds the calls of traced functions: by names, of what a factory returns, through ``flyc.compile``, and helpers that call it."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.source.bodies import Body
from opschema_cli.source.program import ValueRef
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Span
from opschema_cli.source.word_index import called_word
from opschema_rules.flydsl.forwarding import COMPILE, forwarding_call
from opschema_rules.flydsl.model import Call, FlyTree, Traced
from opschema_rules.flydsl.rebinding import may_be_another

_TRACERS = ("jit", "kernel")

_WHOLE = -1
"""The place of what is returned by itself, and not in a tuple."""

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
        self._makers: dict[Body, dict[int, Traced]] = {}

    def of(self, traced: Traced) -> list[Call]:
        """The calls of a traced function: those by its name, then those through other names."""
        found = [
            Call(traced, body, expr, self._launches(body, expr)) for body, expr in self.bodies.calls_of(traced.body)
        ]
        held = self._holders(traced) | self._applied_names(traced)
        words, compilers = self.tree.words.aliased(held), self.tree.words.compiling()
        for path in self._files(traced, compilers, words):
            file = self.bodies.program.load(path)
            for body in self.bodies.calling(file, words | compilers) if file is not None else ():
                found += (call for call in self.within(body) if call.target is traced)
        return found

    def _files(self, traced: Traced, compilers: frozenset[str], held: frozenset[str]) -> list[str]:
        """The files that may have a traced function compiled, or call the factory that makes it, or what holds it."""
        words, home = self.tree.words, traced.body.file.path
        passed = compilers if traced.decorator in traced.function.decorators else compilers | self._compilers
        found = {path for word in words.aliased([traced.name]) for path in words.passing(word, home, passed)}
        for word in held:
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
            elif self._is_compile(body, call) or self._is_forwarded(body, call):
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
        full = self.tree.names.full(body, callee.text) if named else ""
        return full.startswith("flydsl.compiler.") and full.rpartition(".")[2] == COMPILE

    def _is_forwarded(self, body: Body, call: Expr) -> bool:
        """Whether a call is of a helper that has its first argument compiled with all others."""
        name = called_word(call.items[0])
        if name not in self.tree.words.compiling() or may_be_another(self.tree, body, call.items[0]):
            return False
        helper = self.bodies.called(body, call.callee)
        inner = forwarding_call(helper.function) if helper is not None and helper.function is not None else None
        return helper is not None and inner is not None and self._is_compile(helper, inner)

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
        """The traced function that an expression stands for: the result of a factory or of ``flyc.jit(function)``, or a name that
        holds one.
        """
        if expr.kind == "call":
            return self._made_by(body, expr)
        if expr.kind != "name":
            return None
        if "." in expr.text or body.binder(expr.text) is None:
            found = self._imported(body, expr.text)
            if found is not None or "." in expr.text:
                return found
        binder = body.binder(expr.text) or self.bodies.module(body.file)
        values = binder.values(expr.text) if binder.cls is None else None
        if values is not None and len(values) == 1 and values[0].kind == "call":
            return self._made_by(binder, values[0])
        unpacked = [item for item in binder.scope.unpacks if expr.text in item.targets and not item.starred]
        written = [item for item in binder.scope.assigns if item.target == expr.text]
        if len(written) == len(unpacked) == 1 and unpacked[0].value.kind == "call" and binder.binds(expr.text):
            return self._made_by(binder, unpacked[0].value, unpacked[0].targets.index(expr.text))
        return None

    def _imported(self, body: Body, dotted: str) -> Traced | None:
        """The function that another module gives a name."""
        if self.bodies.imported_from(body, dotted) is None:
            return None
        found = self.bodies.resolve(body, dotted)
        if not isinstance(found, ValueRef) or found.owner is not None or found.assign.value is None:
            return None
        value = found.assign.value
        return self._made_by(self.bodies.module(found.file), value) if value.kind == "call" else None

    def _made_by(self, body: Body, call: Expr, at: int = _WHOLE) -> Traced | None:
        """The traced function that a call makes: one that it traces, or one that a factory returns, at a place of a tuple."""
        factory = self.bodies.called(body, call.callee)
        if factory is not None:
            return self._returned(factory).get(at)
        named = called_word(call.items[0]) in self._compilers and at == _WHOLE
        return (
            next((item for item in self.tree.finder.applied_in(body) if item.decorator.span == call.span), None)
            if named
            else None
        )

    def _returned(self, factory: Body) -> dict[int, Traced]:
        """The traced functions that a factory returns, by their places in a tuple."""
        if factory not in self._makers:
            inside = (self.tree.traced_of(item) for item in self.bodies.within(factory)) if factory.function else ()
            places = ((item, self._place(factory, item)) for item in inside if item is not None)
            self._makers[factory] = {at: item for item, at in places if at is not None}
        return self._makers[factory]

    def _holders(self, traced: Traced) -> set[str]:
        """The factory that returns a traced function, and the last words of what bodies call what it returns."""
        factory = traced.factory
        if factory is None or factory.function is None or traced not in self._returned(factory).values():
            return set()
        held = {factory.function.name}
        for body, made in self.bodies.calls_of(factory):
            values = ((item.target, item.value) for item in body.scope.assigns if body.cls is None)
            held.update(
                name.rpartition(".")[2] for name, value in values if value is not None and value.span == made.span
            )
            unpacked = (item for item in body.scope.unpacks if item.value.span == made.span)
            held.update(name for item in unpacked for name in item.targets if name and "." not in name)
        return held

    def _applied_names(self, traced: Traced) -> set[str]:
        """The names that are given what ``flyc.jit(function)`` makes."""
        if traced.decorator in traced.function.decorators:
            return set()
        words, found = self.tree.words, set[str]()
        homes = (words.passing(word, traced.body.file.path, self._compilers) for word in words.aliased([traced.name]))
        for path in words.in_order(path for paths in homes for path in paths):
            file = self.bodies.program.load(path)
            for body in self.bodies.calling(file, self._compilers) if file is not None else ():
                found.update(item.target for item in body.scope.assigns if _is_at(item.value, traced.decorator))
        return {name.rpartition(".")[2] for name in found}

    def _place(self, body: Body, traced: Traced) -> int | None:
        """The place at which a function returns the one traced function of that name that it defines; None if that is not sure."""
        function, returned = body.function, body.scope.returns
        if function is None or body.parent is None or traced.decorator not in traced.function.decorators:
            return None
        around = body.parent
        plain = all(self.tree.names.external(around, name) in _CACHES for name in function.decorator_names)
        alone = len(self.bodies.functions_within(body, traced.name)) == 1 and body.values(traced.name) == []
        places = {_place_in(item, traced.name) for item in returned} if plain and alone else {None}
        return places.pop() if len(places) == 1 else None


def _is_at(expr: Expr | None, other: Expr) -> bool:
    return expr is not None and expr.span == other.span


def _place_in(returned: Expr, name: str) -> int | None:
    """The place of a name in what is returned: the whole of it, or one of a tuple."""
    if returned.kind == "name" and returned.text == name:
        return _WHOLE
    found = [at for at, item in enumerate(returned.elements or ()) if item.kind == "name" and item.text == name]
    return found[0] if returned.kind == "tuple" and len(found) == 1 else None


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
