"""Resolves expressions to the functions that factories return or that ``flyc.jit(function)`` makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from opschema_cli.source.bodies import Body
from opschema_cli.source.program import ValueRef
from opschema_cli.source.python import Expr
from opschema_cli.source.word_index import called_word
from opschema_rules.flydsl.body_index import index_of
from opschema_rules.flydsl.model import FlyTree, Traced

TRACERS = ("jit", "kernel")

Made: TypeAlias = "Traced | Body"
"""A traced function, or a plain one by its body."""

MOST_MADE = 8
"""Maximum number of functions that a factory may return to be followed."""

_WHOLE = -1
"""The place of a result that is returned alone, and not in a tuple."""

_CACHES = frozenset({"functools.cache", "functools.lru_cache"})
"""Decorators of a factory that return its result unchanged."""


class MadeFunctions:
    """The functions that factories of a tree return."""

    def __init__(self, tree: FlyTree) -> None:
        self.tree = tree
        self.bodies = tree.bodies
        self.compilers = tree.words.aliased(TRACERS)
        self._returned: dict[Body, dict[int, tuple[Made, ...]]] = {}
        self._functions: dict[Body, dict[str, list[Body]]] = {}

    def of(self, body: Body, expr: Expr) -> tuple[Made, ...]:
        """Return the functions that an expression may be: the result of a factory, or a name that holds it. It is known to be one
        of these; empty if that is not known.
        """
        if expr.kind == "call":
            return self._by(body, expr)
        if expr.kind != "name":
            return ()
        if "." in expr.text or body.binder(expr.text) is None:
            found = self._imported(body, expr.text)
            if found or "." in expr.text:
                return found
        binder = body.binder(expr.text) or self.bodies.module(body.file)
        last = index_of(body).value_before(expr.text, expr.start) if binder is body else None
        if last is not None and last.kind == "call":
            return self._by(body, last)
        if expr.text in binder.file.rebound:
            return ()
        once = len(binder.scope.named.get(expr.text, ())) == 1 and binder.cls is None
        values = binder.values(expr.text) if once else None
        if values is not None and len(values) == 1 and values[0].kind == "call":
            return self._by(binder, values[0])
        unpacked = [item for item in binder.scope.unpacks if expr.text in item.targets and not item.starred]
        written = [item for item in binder.scope.assigns if item.target == expr.text]
        if len(written) == len(unpacked) == 1 and unpacked[0].value.kind == "call" and binder.binds(expr.text):
            return self._by(binder, unpacked[0].value, unpacked[0].targets.index(expr.text))
        return ()

    def holders(self, made: Made, factory: Body | None) -> set[str]:
        """Return the factories that return a function of the first one, and the variables that hold their results."""
        found, waiting, seen = set[str](), [factory], set[Body]()
        while waiting:
            body = waiting.pop()
            if body is None or body in seen or body.function is None or not self._returns(body, made):
                continue
            seen.add(body)
            found.add(body.function.name)
            for caller, call in self.bodies.calls_of(body):
                found.update(_names_of(caller, call))
                waiting.append(caller)
        return found

    def _returns(self, factory: Body, made: Made) -> bool:
        return any(made is item for items in self.returned(factory).values() for item in items)

    def returned(self, factory: Body) -> dict[int, tuple[Made, ...]]:
        """Return the functions that a factory may return, by place in a tuple. Each place is known to hold one of its functions."""
        if factory not in self._returned:
            self._returned[factory] = {}  # of factories that call each other
            self._returned[factory] = self._find_returned(factory)
        return self._returned[factory]

    def _find_returned(self, factory: Body) -> dict[int, tuple[Made, ...]]:
        function, around, returns = factory.function, factory.parent, factory.scope.returns
        if function is None or around is None or not returns:
            return {}
        if any(self.tree.names.external(around, name) not in _CACHES for name in function.decorator_names):
            return {}
        found = [self._places(factory, item) for item in returns]
        sure = set(found[0]).intersection(*found[1:])
        made = {at: tuple(dict.fromkeys(item for places in found for item in places[at])) for at in sure}
        return {at: items for at, items in made.items() if len(items) <= MOST_MADE}

    def _places(self, factory: Body, returned: Expr) -> dict[int, tuple[Made, ...]]:
        """Return the functions that a returned expression of a factory may be, by place in a tuple."""
        if returned.kind == "call":
            called = self.bodies.called(factory, returned.callee)
            return self.returned(called) if called is not None else {}
        parts: Sequence[Expr] = returned.elements or () if returned.kind == "tuple" else ()
        found = {_WHOLE: self._named(factory, returned)}
        found |= {at: self._named(factory, item) for at, item in enumerate(parts)}
        return {at: made for at, made in found.items() if made}

    def _named(self, factory: Body, expr: Expr) -> tuple[Made, ...]:
        """Return the functions that a name in a factory may refer to: those it defines under the name, or those assigned to it."""
        if expr.kind != "name" or not factory.binds(expr.text):
            return ()
        functions = self._functions_of(factory).get(expr.text, [])
        if not functions:
            return self.of(factory, expr)
        made = [self._defined(item) for item in functions] if factory.values(expr.text) == [] else [None]
        return tuple(item for item in made if item is not None) if None not in made else ()

    def _functions_of(self, factory: Body) -> dict[str, list[Body]]:
        """The functions that a factory defines, by their names."""
        if factory not in self._functions:
            found = self._functions[factory] = {}
            for item in self.bodies.within(factory):
                if item.function is not None:
                    found.setdefault(item.function.name, []).append(item)
        return self._functions[factory]

    def _defined(self, body: Body) -> Made | None:
        """Return the function that a definition makes; None if that is not known."""
        traced, decorators = self.tree.traced_of(body), body.function.decorators if body.function is not None else ()
        if not decorators:
            return body
        return traced if traced is not None and traced.decorator in decorators else None

    def _imported(self, body: Body, dotted: str) -> tuple[Made, ...]:
        """Return the functions that a name defined by another module may refer to."""
        if self.bodies.imported_from(body, dotted) is None:
            return ()
        found = self.bodies.resolve(body, dotted)
        if not isinstance(found, ValueRef) or found.owner is not None or found.assign.value is None:
            return ()
        value = found.assign.value
        return self._by(self.bodies.module(found.file), value) if value.kind == "call" else ()

    def _by(self, body: Body, call: Expr, at: int = _WHOLE) -> tuple[Made, ...]:
        """Return the functions that a call may make: one that it traces, or those that a factory returns, at a place of a tuple."""
        factory = self.bodies.called(body, call.callee)
        if factory is not None:
            return self.returned(factory).get(at, ())
        named = called_word(call.items[0]) in self.compilers and at == _WHOLE
        applied = self.tree.finder.applied_in(body) if named else ()
        return tuple(item for item in applied if item.decorator.span == call.span)[:1]


def _names_of(body: Body, call: Expr) -> Iterator[str]:
    """Yield the variables of a body that are assigned the result of a call."""
    index = index_of(body)
    yield from index.targets.get(call.span, ()) if body.cls is None else ()
    unpacked = index.unpacked.get(call.span)
    yield from (name for name in unpacked.targets if name and "." not in name) if unpacked is not None else ()
