"""The bodies of a package's Python code, each with what encloses it, and what a name means inside one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial

import msgspec

from opschema_cli.source.program import ClassRef, External, FunctionRef, Program, Resolution
from opschema_cli.source.python import Class, Expr, Function, Param, PythonFile, Scope, Statement
from opschema_cli.source.text import Place, Span
from opschema_cli.source.word_index import MODULE, WordIndex, index_words

MAX_HOPS = 4
"""Longest chain of helpers that is followed."""


class Body(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The body of a module, of a class (``cls``) or of a function (``function``), and the one around it."""

    file: PythonFile
    function: Function | None = None
    cls: Class | None = None
    parent: Body | None = None

    __repr__ = object.__repr__

    @cached_property
    def scope(self) -> Scope:
        """What happens in it; of a function unpacked when it is asked for."""
        return (self.function or self.cls or self.file).body

    @property
    def statements(self) -> tuple[Statement, ...]:
        """A function's statements, unpacked when they are asked for; none of a module or class."""
        return self.function.statements if self.function is not None else ()

    @property
    def definition(self) -> Function | Class | None:
        """The function or class that this is the body of; None of a module."""
        return self.function or self.cls

    def outward(self) -> Iterator[Body]:
        """The body and all around it."""
        yield self
        if self.parent is not None:
            yield from self.parent.outward()

    @cached_property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes in which a function looks a name up before the module's; a class's is none of them."""
        return tuple(body.scope for body in self.outward() if body.function is not None)

    @cached_property
    def visible(self) -> frozenset[str]:
        """The names that a function and those around it bind, delete or declare."""
        outer = self.parent.visible if self.parent is not None else frozenset[str]()
        if self.function is None:
            return outer
        return outer.union(self.bound, self.scope.deleted, (item.name for item in self.scope.classes))

    @cached_property
    def method(self) -> Body | None:
        """The method that this is, or that is written around it."""
        return next(
            (body for body in self.outward() if body.function and body.parent is not None and body.parent.cls), None
        )

    @cached_property
    def owner(self) -> ClassRef | None:
        """The class whose body or method this is, or is written in."""
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
        """A function's parameters."""
        return self.function.params if self.function is not None else ()

    def at(self, target: Expr | Span) -> Place:
        """A place in the body's file."""
        return Place(self.file.path, target.span if isinstance(target, Expr) else target)

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names that the body itself gives a meaning."""
        names = {item.name for item in self.params} | {item.name for item in self.scope.functions}
        names |= {item.name for item in self.scope.imports}
        return frozenset(names | {item.target for item in self.scope.assigns})

    def binds(self, name: str) -> bool:
        """Whether the body itself gives ``name`` a meaning."""
        return name in self.bound

    def binder(self, name: str) -> Body | None:
        """The innermost function body that gives ``name`` its meaning; None when it is the module's."""
        return next((body for body in self.outward() if body.function is not None and body.binds(name)), None)

    def values(self, name: str) -> list[Expr] | None:
        """What the body assigns to ``name``; None when a parameter or a write says nothing of the value."""
        if any(item.name == name for item in self.params) or name in self.scope.deleted:
            return None
        found = [item.value for item in self.scope.assigns if item.target == name]
        known = [value for value in found if value is not None]
        return known if len(known) == len(found) else None

    def attribute_of(self, target: str) -> str:
        """The attribute of the class or its instance that an assignment to ``target`` writes; empty for other targets."""
        holder, _, name = target.rpartition(".")
        if self.function is None:
            return name if self.cls is not None and not holder else ""
        return name if holder and holder == self.this else ""


class Bodies:
    """All bodies of a program's package, found through the words in them; ``index`` gives those of a file if they are kept."""

    def __init__(
        self, program: Program, paths: Iterable[str], index: Callable[[PythonFile], WordIndex] | None = None
    ) -> None:
        self.program = program
        self._index = index
        self._indexes: dict[str, WordIndex] = {}
        self._order: dict[Body, tuple[int, ...]] = {}
        self._placed: dict[Body, tuple[list[Span], list[Body]]] = {}
        self.paths = list(paths)
        self._modules: dict[str, Body] = {}
        self._within: dict[Body, list[Body]] = {}
        self._lambdas: dict[int, Body] = {}
        self._calls: dict[Body, list[tuple[Body, Expr]]] = {}
        self._defining: dict[int, Body | None] = {}
        self._meanings: dict[tuple[str, str], Resolution] = {}

    @cached_property
    def files(self) -> list[PythonFile]:
        """The package's files that parse."""
        return [file for file in map(self.program.load, self.paths) if file is not None]

    def of(self, file: PythonFile, wanted: Callable[[Function], bool] = lambda function: True) -> list[Body]:
        """Every body of a file, outermost first, but those of functions that are not ``wanted`` and what is written in them:
        these are not unpacked.
        """
        return list(self.inside(self.module(file), wanted))

    def inside(self, body: Body, wanted: Callable[[Function], bool] = lambda function: True) -> Iterator[Body]:
        """The same of a body: itself, and those written in it."""
        yield body
        for item in self.within(body):
            if item.function is None or wanted(item.function):
                yield from self.inside(item, wanted)

    def module(self, file: PythonFile) -> Body:
        """The body of a file's module."""
        found = self._modules.get(file.path)
        if found is None:
            found = self._modules[file.path] = Body(file)
        return found

    def _around(self, body: Body, offset: int) -> Body | None:
        """The body written directly in a body in whose definition a place lies."""
        placed = self._placed.get(body)
        if placed is None:
            inner = [(item.definition.outer, item) for item in self.within(body) if item.definition is not None]
            inner.sort(key=_outer)
            placed = self._placed[body] = [span for span, _ in inner], [item for _, item in inner]
        spans, bodies = placed
        at = bisect_right(spans, offset, key=_start) - 1
        return bodies[at] if at >= 0 and offset < spans[at].end else None

    def within(self, body: Body) -> list[Body]:
        """The bodies written directly in a body."""
        found = self._within.get(body)
        if found is None:
            functions = [Body(body.file, item, None, body) for item in body.scope.functions]
            found = [*functions, *(Body(body.file, None, item, body) for item in body.scope.classes)]
            self._within[body] = found
            outer = self._order.get(body, ())
            self._order.update((item, (*outer, number)) for number, item in enumerate(found))
        return found

    def functions_within(self, body: Body, name: str) -> list[Body]:
        """The functions of one name that are written directly in a body."""
        return [item for item in self.within(body) if item.function is not None and item.function.name == name]

    def at(self, file: PythonFile, offset: int) -> Body:
        """The innermost body that what is written there belongs to: a function's head belongs to what encloses it."""
        found = self.module(file)
        while (
            inner := next((item for item in self.within(found) if _is_in(item.definition, offset)), None)
        ) is not None:
            found = inner
        return found

    def files_holding(self, *words: str) -> Iterator[PythonFile]:
        """The files whose text holds one of the words."""
        return (file for file in self.files if any(word in file.source.text for word in words))

    def holding(self, *words: str) -> Iterator[Body]:
        """Every body of these files."""
        for file in self.files_holding(*words):
            yield from self.of(file)

    def near(self, *words: str) -> Iterator[Body]:
        """Every body whose own text, or that of what is written in it, holds one of the words."""
        for file in self.files_holding(*words):
            yield from self.of(file, partial(_holds, file.source.text, words))

    def function(self, ref: FunctionRef) -> Body | None:
        """The body of a function."""
        return self._defined(ref.file, ref.function)

    def cls(self, ref: ClassRef) -> Body | None:
        """The body of a class."""
        return self._defined(ref.file, ref.cls)

    def _defined(self, file: PythonFile, definition: Function | Class) -> Body | None:
        """The body of a definition, found through those around it."""
        key = id(definition)  # which its file keeps alive
        if key not in self._defining:
            body: Body | None = self.module(file)
            while body is not None and body.definition is not definition:
                body = self._around(body, definition.start)
            self._defining[key] = body
        return self._defining[key]

    def of_lambda(self, body: Body, expr: Expr) -> Body | None:
        """The body of a lambda that is written in another body; None for what is none."""
        found = next((item for item in body.scope.lambdas if item.span == expr.span), None)
        if found is None:
            return None
        return self._lambdas.setdefault(id(found), Body(body.file, found, None, body))

    # Names

    def resolve(self, body: Body, dotted: str) -> Resolution:
        """Meaning of a dotted name inside a body."""
        if dotted.partition(".")[0] in body.visible or self.program.patches.collecting:
            return self.program.resolve(body.file, dotted, body.scopes)
        key = (body.file.path, dotted)
        found = self._meanings.get(key)
        if found is None:
            found = self._meanings[key] = self.program.resolve(body.file, dotted)
        return found

    def external(self, body: Body, dotted: str) -> str:
        """The full name of what lies outside the workspace; empty for anything else."""
        found = self.resolve(body, dotted) if dotted else None
        return found.name if isinstance(found, External) else ""

    def called(self, body: Body, callee: str) -> Body | None:
        """The body of the function or method of the package that ``callee`` names; None when not known."""
        first, _, rest = callee.partition(".")
        if rest and "." not in rest and first == body.this and body.owner is not None:
            member = self.program.member(body.owner, rest)
            return self.function(member) if isinstance(member, FunctionRef) else None
        found = self.resolve(body, callee) if callee else None
        return self.function(found) if isinstance(found, FunctionRef) else None

    def calls_of(self, target: Body) -> list[tuple[Body, Expr]]:
        """Every call that names the function ``target``, and the body it stands in."""
        if target not in self._calls:
            name = target.function.name if target.function is not None else ""
            bodies = (body for file in self._naming(name) for body in self.calling(file, [name])) if name else ()
            calls = ((body, call) for body in bodies for call in body.scope.calls if _ends_in(call.callee, name))
            self._calls[target] = [(body, call) for body, call in calls if self.called(body, call.callee) is target]
        return self._calls[target]

    def words(self, file: PythonFile) -> WordIndex:
        """The words of a file's calls and decorators."""
        found = self._indexes.get(file.path)
        if found is None:
            found = self._indexes[file.path] = (self._index or index_words)(file)
        return found

    def _naming(self, name: str) -> Iterable[PythonFile]:
        """The files that may call a function of that name; without an index of all, those whose text holds it."""
        if self._index is not None:
            return self._by_word.get(name, ())
        return (file for file in self.files if name in file.source.text)

    @cached_property
    def _by_word(self) -> dict[str, list[PythonFile]]:
        found: dict[str, list[PythonFile]] = {}
        for file in self.files:
            for word in self.words(file).calls:
                found.setdefault(word, []).append(file)
        return found

    def calling(self, file: PythonFile, words: Iterable[str]) -> list[Body]:
        """The bodies of a file that call functions by one of these last words, in the order of :meth:`of`."""
        calls = self.words(file).calls
        return self._starting(file, {start for word in words for start in calls.get(word, ())})

    def decorated(self, file: PythonFile, words: Iterable[str]) -> list[Body]:
        """The functions of a file with a decorator of one of these last words, in the order of :meth:`of`."""
        decorators = self.words(file).decorators
        return self._starting(file, {start for word in words for start in decorators.get(word, ())})

    def _starting(self, file: PythonFile, starts: Iterable[int]) -> list[Body]:
        """The bodies whose definitions are written there; nothing around or beside them is decoded that need not be."""
        found: list[Body] = []
        for start in starts:
            body: Body | None = self.module(file)
            while body is not None and start != MODULE and (body.definition is None or body.definition.start != start):
                body = self._around(body, start)
            if body is not None:
                found.append(body)
        return self.sorted(found)

    def sorted(self, bodies: Iterable[Body]) -> list[Body]:
        """Bodies of one file in the order of :meth:`of`."""
        return sorted(bodies, key=lambda item: self._order.get(item, ()))

    # Classes

    @cached_property
    def classes(self) -> list[ClassRef]:
        """Every top-level class."""
        return [ClassRef(file, cls) for file in self.files for cls in file.body.classes]

    @cached_property
    def _below(self) -> dict[ClassRef, list[ClassRef]]:
        found: dict[ClassRef, list[ClassRef]] = {}
        for ref in self.classes:
            for ancestor in self.program.lineage(ref):
                found.setdefault(ancestor, []).append(ref)
        return found

    def family(self, ref: ClassRef) -> list[ClassRef]:
        """A class, its ancestors and its descendants: whose methods an instance may run."""
        return list(dict.fromkeys([ref, *self.program.lineage(ref), *self._below.get(ref, ())]))

    def classes_named(self, body: Body, name: str, at: int, hops: int = MAX_HOPS) -> Iterator[ClassRef]:
        """The classes that ``name`` may stand for in a body: itself, what a loop runs over, what callers pass."""
        binder = body.binder(name)
        if binder is None:
            yield from self.program.patches.classes_named(body.file, name, at)
        elif any(item.name == name for item in binder.params):
            if binder is binder.method and name == binder.this and binder.owner is not None:
                yield binder.owner
            elif hops > 0:
                yield from self._passed(binder, name, hops - 1)
        elif hops > 0:
            for loop in binder.scope.loops:
                elements = self.program.patches.elements(body.file, loop.iterable) if name in loop.targets else []
                for item in (part for element in elements for part in element.walk() if part.kind == "name"):
                    yield from self.classes_named(binder, item.text, at, hops - 1)

    def _passed(self, target: Body, name: str, hops: int) -> Iterator[ClassRef]:
        """The classes that the callers of a function pass as its parameter ``name``, and those it decorates."""
        for body, call in self.calls_of(target):
            value = argument_for(call, target.params, name)
            if value is not None and value.kind == "name":
                yield from self.classes_named(body, value.text, call.start, hops)
        if target.params[0].name == name:
            for ref in self.classes:
                named = (self.program.resolve(ref.file, item.text) for item in ref.cls.decorators if item.text)
                if any(isinstance(item, FunctionRef) and item.function is target.function for item in named):
                    yield ref


def _holds(text: str, words: Iterable[str], function: Function) -> bool:
    start, end = function.outer
    return any(text.find(word, start, end) >= 0 for word in words)


def _ends_in(dotted: str, word: str) -> bool:
    return dotted.rpartition(".")[2] == word


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


def param_for(call: Expr, index: int, params: Sequence[Param]) -> Param | None:
    """The parameter that takes the argument ``call.items[index]``; None when unpacking hides it."""
    return params_for(call, params)[index - 1]


def params_for(call: Expr, params: Sequence[Param]) -> list[Param | None]:
    """The parameter that takes each argument of a call; None for one that unpacking hides."""
    by_name: dict[str, Param] = {}
    for item in params:
        if item.kind in ("normal", "kwonly"):
            by_name.setdefault(item.name, item)
    plain = [item for item in params if item.kind in ("posonly", "normal")]
    found: list[Param | None] = []
    place, hidden = 0, False
    for keyword in call.keywords:
        hidden = hidden or keyword == "*"
        taken = by_name.get(keyword) if keyword else plain[place] if place < len(plain) else None
        found.append(None if hidden else taken)
        place += not keyword
    return found


def argument_for(call: Expr, params: Sequence[Param], name: str) -> Expr | None:
    """The argument that a call passes as the parameter ``name``; None when it passes none or hides it."""
    return arguments_for(call, params).get(name)


def arguments_for(call: Expr, params: Sequence[Param]) -> dict[str, Expr]:
    """The arguments of a call by the names of the parameters that take them, but those that unpacking hides; of several for one
    parameter the first.
    """
    found: dict[str, Expr] = {}
    for param, item in zip(params_for(call, params), call.items[1:], strict=True):
        if param is not None:
            found.setdefault(param.name, item)
    return found
