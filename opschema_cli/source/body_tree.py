"""Bodies of Python code: those of modules, classes and functions, each with the enclosing one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator
from functools import cached_property

import msgspec

from opschema_cli.source.python import Assign, Class, Expr, Function, Param, PythonFile, Scope, Statement
from opschema_cli.source.resolution import ClassRef
from opschema_cli.source.text import Place, Span
from opschema_cli.source.word_index import MODULE

FEW = 200
"""Maximum number of names of outer functions to copy for each inner one; a lookup in one set is faster than in two."""


class _OwnAndOuter(Container[str]):
    """The names of a function and of the enclosing ones; all nested functions share its names."""

    __slots__ = ("outer", "own")

    def __init__(self, own: frozenset[str], outer: Container[str]) -> None:
        self.own, self.outer = own, outer

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self.outer


class Body(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The body of a module, of a class (``cls``) or of a function (``function``), and the enclosing body."""

    file: PythonFile
    function: Function | None = None
    cls: Class | None = None
    parent: Body | None = None

    __repr__ = object.__repr__

    @cached_property
    def scope(self) -> Scope:
        """The facts about its code; those of a function are unpacked on first use."""
        return (self.function or self.cls or self.file).body

    @property
    def statements(self) -> tuple[Statement, ...]:
        """A function's statements, unpacked on first use; empty for a module or class."""
        return self.function.statements if self.function is not None else ()

    @property
    def definition(self) -> Function | Class | None:
        """The function or class with this body; None for a module."""
        return self.function or self.cls

    def outward(self) -> Iterator[Body]:
        """Yield the body and all enclosing ones."""
        body: Body | None = self
        while body is not None:
            yield body
            body = body.parent

    @cached_property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes in which a function looks up a name before the module's; those of classes are not among them."""
        return tuple(body.scope for body in self.outward() if body.function is not None)

    @cached_property
    def visible(self) -> Container[str]:
        """The names that a function and the enclosing ones bind, delete or declare."""
        outer = self.parent.visible if self.parent is not None else frozenset[str]()
        if self.function is None:
            return outer
        own = self.bound.union(self.scope.deleted, (item.name for item in self.scope.classes))
        return own | outer if isinstance(outer, frozenset) and len(outer) <= FEW else _OwnAndOuter(own, outer)

    @cached_property
    def method(self) -> Body | None:
        """The innermost method that this body is or is nested in."""
        return next(
            (body for body in self.outward() if body.function and body.parent is not None and body.parent.cls), None
        )

    @cached_property
    def owner(self) -> ClassRef | None:
        """The class whose body or method this is or is nested in."""
        found = next((body.cls for body in self.outward() if body.cls is not None), None)
        return ClassRef(self.file, found) if found is not None else None

    @cached_property
    def this(self) -> str:
        """The method's name for its instance or class; empty outside methods."""
        function = self.method.function if self.method is not None else None
        if function is None or not function.params or "staticmethod" in function.decorator_names:
            return ""
        return function.params[0].name

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters of a function."""
        return self.function.params if self.function is not None else ()

    def at(self, target: Expr | Span) -> Place:
        """Return a place in the body's file."""
        return Place(self.file.path, target.span if isinstance(target, Expr) else target)

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names that the body itself binds."""
        names = {item.name for item in self.params} | {item.name for item in self.scope.functions}
        names |= {item.name for item in self.scope.imports}
        return frozenset(names | {item.target for item in self.scope.assigns})

    def binds(self, name: str) -> bool:
        """Whether the body itself binds ``name``."""
        return name in self.bound

    def binder(self, name: str) -> Body | None:
        """Return the innermost function body that binds ``name``; None if the module binds it."""
        return next((body for body in self.outward() if body.function is not None and body.binds(name)), None)

    def values(self, name: str) -> list[Expr] | None:
        """Return the expressions that the body assigns to ``name``; None if a parameter or a write makes the value unknown."""
        if any(item.name == name for item in self.params) or name in self.scope.deleted:
            return None
        found = [item.value for item in self.scope.named.get(name, ()) if isinstance(item, Assign)]
        known = [value for value in found if value is not None]
        return known if len(known) == len(found) else None

    def attribute_of(self, target: str) -> str:
        """Return the attribute of the class or its instance that an assignment to ``target`` writes; empty for other targets."""
        holder, _, name = target.rpartition(".")
        if self.function is None:
            return name if self.cls is not None and not holder else ""
        return name if holder and holder == self.this else ""


class BodyTree:
    """The bodies of files. A function is decoded when the bodies in it are requested."""

    def __init__(self) -> None:
        self._modules: dict[str, Body] = {}
        self._within: dict[Body, list[Body]] = {}
        self._order: dict[Body, tuple[int, ...]] = {}
        self._placed: dict[Body, tuple[list[Span], list[Body]]] = {}
        self._defining: dict[int, Body | None] = {}
        self._starting: dict[tuple[str, int], Body | None] = {}

    def share_bodies(self, other: BodyTree) -> None:
        """Share the bodies with another object: those of a file only depend on that file."""
        self._modules, self._within, self._order = other._modules, other._within, other._order
        self._placed, self._defining, self._starting = other._placed, other._defining, other._starting

    def forget(self) -> None:
        """Drop all bodies and their unpacked contents; other objects may still refer to them."""
        for body in (*self._modules.values(), *(item for found in self._within.values() for item in found)):
            vars(body).clear()
            if body.function is not None:
                vars(body.function).clear()
        for known in (self._modules, self._within, self._order, self._placed, self._defining, self._starting):
            known.clear()

    def of(self, file: PythonFile, wanted: Callable[[Function], bool] = lambda function: True) -> list[Body]:
        """Return every body of a file, outermost first, except those of functions that are not ``wanted`` and their nested ones:
        these are not unpacked.
        """
        return list(self.inside(self.module(file), wanted))

    def inside(self, body: Body, wanted: Callable[[Function], bool] = lambda function: True) -> Iterator[Body]:
        """Return a body and its nested ones, in the same order."""
        yield body
        for item in self.within(body):
            if item.function is None or wanted(item.function):
                yield from self.inside(item, wanted)

    def module(self, file: PythonFile) -> Body:
        """Return the body of a file's module."""
        found = self._modules.get(file.path)
        if found is None:
            found = self._modules[file.path] = Body(file)
        return found

    def _around(self, body: Body, offset: int) -> Body | None:
        """Return the direct child of a body whose definition contains a place."""
        placed = self._placed.get(body)
        if placed is None:
            inner = [(item.definition.outer, item) for item in self.within(body) if item.definition is not None]
            inner.sort(key=_outer)
            placed = self._placed[body] = [span for span, _ in inner], [item for _, item in inner]
        spans, bodies = placed
        at = bisect_right(spans, offset, key=_start) - 1
        return bodies[at] if at >= 0 and offset < spans[at].end else None

    def within(self, body: Body) -> list[Body]:
        """Return the direct children of a body."""
        found = self._within.get(body)
        if found is None:
            functions = [Body(body.file, item, None, body) for item in body.scope.functions]
            found = [*functions, *(Body(body.file, None, item, body) for item in body.scope.classes)]
            self._within[body] = found
            outer = self._order.get(body, ())
            self._order.update((item, (*outer, number)) for number, item in enumerate(found))
        return found

    def functions_within(self, body: Body, name: str) -> list[Body]:
        """Return the functions of one name that are direct children of a body."""
        return [item for item in self.within(body) if item.function is not None and item.function.name == name]

    def at(self, file: PythonFile, offset: int) -> Body:
        """Return the innermost body that contains the code at a place; a function's header belongs to the enclosing body."""
        found = self.module(file)
        while (inner := self._around(found, offset)) is not None and _is_in(inner.definition, offset):
            found = inner
        return found

    def defined(self, file: PythonFile, definition: Function | Class) -> Body | None:
        """Return the body of a definition, found through the enclosing ones."""
        key = id(definition)  # which its file keeps alive
        if key not in self._defining:
            body: Body | None = self.module(file)
            while body is not None and body.definition is not definition:
                body = self._around(body, definition.start)
            self._defining[key] = body
        return self._defining[key]

    def starting(self, file: PythonFile, starts: Iterable[int]) -> list[Body]:
        """Return the bodies whose definitions begin at these places; nothing is decoded without need."""
        return self.sorted(body for start in starts if (body := self._starts_at(file, start)) is not None)

    def _starts_at(self, file: PythonFile, start: int) -> Body | None:
        key = (file.path, start)
        if key not in self._starting:
            body: Body | None = self.module(file)
            while body is not None and start != MODULE and (body.definition is None or body.definition.start != start):
                body = self._around(body, start)
            self._starting[key] = body
        return self._starting[key]

    def sorted(self, bodies: Iterable[Body]) -> list[Body]:
        """Sort bodies of one file in the order of :meth:`of`."""
        return sorted(bodies, key=lambda item: self._order.get(item, ()))


def _start(span: Span) -> int:
    return span.start


def _outer(pair: tuple[Span, Body]) -> Span:
    return pair[0]


def _is_in(definition: Function | Class | None, offset: int) -> bool:
    return definition is not None and _head_end(definition) <= offset < definition.outer.end


def _head_end(definition: Function | Class) -> int:
    if isinstance(definition, Class):
        return max([definition.end, *(item.end for item in definition.bases)])
    ends = [item.full_end for item in definition.params]
    return max([definition.end, *ends, *([definition.returns.end] if definition.returns is not None else [])])
