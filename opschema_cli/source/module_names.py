"""Resolves dotted names in Python code to values of modules that are not Python files, such as extensions.

Names are followed through imports, re-exports, assignments, attributes of ``self``, ``importlib.import_module``, ``sys.modules``,
and functions that load a module or return a function of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from opschema_cli.source.bodies import Bodies, Body, arguments_for
from opschema_cli.source.program import FunctionRef, Missing, ModuleRef, Resolution, Unresolved, ValueRef
from opschema_cli.source.python import Assign, Expr, Function, Import, PythonFile
from opschema_cli.source.text import Span

MAX_HOPS = 10
"""Maximum length of a chain of assigned names to follow."""

_IMPORTS = ("import_module", "__import__")


class Named(Protocol):
    """A module, or a value in it."""

    def member(self: T, name: str) -> T | None:
        """Return the meaning of a name in it."""


T = TypeVar("T", bound=Named)


class ModuleNames(Generic[T]):
    """The meanings of names in the bodies of a tree; ``at`` maps the paths that stand for modules in its program to these, and
    ``made`` returns the module that a call creates.
    """

    def __init__(self, bodies: Bodies, at: Mapping[str, T], made: Callable[[Body, Expr], T | None]) -> None:
        self.bodies = bodies
        self.program = bodies.program
        self._at = at
        self._made = made
        self._results: dict[tuple[str, int], T | None] = {}
        self._firsts: dict[tuple[Body, str, int], T | str | None] = {}
        self._attributes: dict[tuple[Body, str, int], T | None] = {}
        self._fulls: dict[tuple[str, int], T | None] = {}
        self._written: dict[Body, dict[str, list[tuple[Body, Expr | None]]]] = {}

    def meaning(self, body: Body, dotted: str, hops: int = MAX_HOPS) -> T | None:
        """Return the meaning of a dotted name in a body; None if it is unknown or not from such a module."""
        first, _, rest = dotted.partition(".")
        if first == body.this and body.owner is not None and rest:
            attribute, _, rest = rest.partition(".")
            return _inner(self._attribute(body, f"{first}.{attribute}", hops), filter(None, rest.split(".")))
        found = self._first(body, first, hops)
        if isinstance(found, str):
            return self.full_meaning(".".join(filter(None, (found, rest))), hops)
        return _inner(found, filter(None, rest.split(".")))

    def full_meaning(self, dotted: str, hops: int = MAX_HOPS) -> T | None:
        """Return the meaning of a full dotted name."""
        key = (dotted, hops)
        if key not in self._fulls:
            self._fulls[key] = self._full(dotted, hops)
        return self._fulls[key]

    def _full(self, dotted: str, hops: int) -> T | None:
        parts = dotted.split(".")
        for count in range(len(parts), 0, -1):
            path = self.program.module_path(".".join(parts[:count]))
            if path is None:
                continue
            rest = parts[count:]
            target = self._at.get(path)
            if target is None and rest:
                target = self._passed_on(path, rest.pop(0), hops)
            return _inner(target, rest)
        return None

    def value(self, body: Body, value: Expr, hops: int = MAX_HOPS) -> T | None:
        """Return the meaning of an expression's value."""
        if value.kind == "name":
            return self.meaning(body, value.text, hops)
        if value.kind == "attribute":
            return _inner(self.value(body, value.items[0], hops), [value.text])
        if value.kind == "subscript" and value.items[0].text == "sys.modules":
            return self.full_meaning(_text(value.items[1], {}), hops)
        if value.kind != "call" or hops <= 0:
            return None
        loaded = self._loaded(body, value, {}, hops)
        return loaded if loaded is not None else self._made(body, value) or self._result(body, value, hops)

    def imported(self, body: Body) -> Iterator[tuple[T, Expr]]:
        """Yield the meanings of the names that a body imports from modules (``from _C import f``)."""
        for item in body.scope.imports:
            full = self.program.imported_name(body.file, item) if item.attr and item.attr != "*" else None
            target = self.full_meaning(full) if full is not None else None
            if target is not None:
                yield target, Expr("name", item.start, item.end, item.attr)

    # Uses

    def calls(self, body: Body) -> Iterator[tuple[T, Expr]]:
        """Yield the calls of known values in a body, each with the meaning of its callee."""
        seen: dict[str, T | None] = {}
        for call in body.scope.calls:
            dotted = call.callee
            if dotted and dotted not in seen:
                seen[dotted] = self.meaning(body, dotted)
            target = seen[dotted] if dotted else self.value(body, call.items[0])
            if target is not None:
                yield target, call

    def uses(self, body: Body) -> Iterator[tuple[T, Span]]:
        """Yield the names in modules that a body uses, with the places of the last words: attributes, imports, and strings."""
        seen: dict[str, T | None] = {}
        for use in body.scope.uses:
            first, _, last = use.name.rpartition(".")
            if first and first not in seen:
                seen[first] = self.meaning(body, first)
            target = _inner(seen.get(first), [last])
            if target is not None:
                yield target, Span(use.end - len(last), use.end)
        for call in body.scope.calls:
            function = call.items[0]
            target = self.value(body, function) if function.kind == "attribute" else None
            if target is not None:
                yield target, Span(function.end - len(function.text), function.end)
        yield from ((target, expr.span) for target, expr in (*self.imported(body), *self.named_by_strings(body)))

    def named_by_strings(self, body: Body) -> Iterator[tuple[T, Expr]]:
        """Yield the strings that functions such as lazy loaders resolve to names in modules, each with its meaning."""
        for call in body.scope.calls:
            words = [item for item in call.positional() if isinstance(item.value, str)] if call.callee else []
            target = self._result(body, call, MAX_HOPS) if len(words) == 1 else None
            if target is not None:
                yield target, words[0]

    # Names

    def _first(self, body: Body, name: str, hops: int) -> T | str | None:
        """Return the module or full dotted name that a name refers to; None if it is also bound to anything else."""
        rebound = name in body.file.rebound
        holder = (body.binder(name) if not rebound else None) or self.bodies.module(body.file)
        key = (holder, name, hops)
        if key not in self._firsts:
            scopes = [item for item in self.bodies.of(body.file) if name in item.scope.deleted] if rebound else []
            is_param = not rebound and any(item.name == name for item in holder.params)
            self._firsts[key] = self._bound_to([holder, *scopes], name, hops) if not is_param else None
        return self._firsts[key]

    def _bound_to(self, scopes: Iterable[Body], name: str, hops: int) -> T | str | None:
        found: list[T | str | None] = []
        for scope in scopes:
            named = scope.scope.named.get(name, ())
            imports = [item for item in named if isinstance(item, Import)]
            assigned = [item.value for item in named if isinstance(item, Assign)]
            found += [self.program.imported_name(scope.file, item) for item in imports]
            found += self._values(scope, assigned, hops)
            if len(named) > len(imports) + len(assigned):
                return None
        return found[0] if found and all(item == found[0] for item in found) else None

    def _attribute(self, body: Body, dotted: str, hops: int) -> T | None:
        """Return the meaning of ``self.x``, if all methods of the class that assign it agree."""
        owner = body.owner
        cls = self.bodies.cls(owner) if owner is not None else None
        if cls is None:
            return None
        key = (cls, dotted, hops)
        if key not in self._attributes:
            written = self._written_in(cls).get(dotted, ())
            self._attributes[key] = _same(made for item, value in written for made in self._values(item, [value], hops))
        return self._attributes[key]

    def _written_in(self, cls: Body) -> dict[str, list[tuple[Body, Expr | None]]]:
        """Return the values that the code of a class assigns to attributes, by target as written."""
        if cls not in self._written:
            found: dict[str, list[tuple[Body, Expr | None]]] = {}
            for body in self.bodies.inside(cls):
                for item in body.scope.assigns:
                    if "." in item.target:
                        found.setdefault(item.target, []).append((body, item.value))
            self._written[cls] = found
        return self._written[cls]

    def _values(self, body: Body, values: Iterable[Expr | None], hops: int) -> Iterator[T | None]:
        for value in values:
            if value is None:
                yield None
            elif value.kind != "const" or value.value is not None:
                yield self.value(body, value, hops - 1) if hops > 0 else None

    def _passed_on(self, path: str, name: str, hops: int) -> T | None:
        """Return the meaning of a name that a Python file re-exports."""
        found: Resolution = self.program.module_member(path, name)
        if isinstance(found, ModuleRef):
            return self._at.get(found.path)
        if isinstance(found, Missing) and found.module in self._at:
            return _inner(self._at[found.module], [found.name])
        if isinstance(found, FunctionRef):
            return _inner(self._at.get(found.file.path), [found.function.name])
        if isinstance(found, ValueRef):
            value = found.assign.value
            return self.value(self.bodies.module(found.file), value, hops - 1) if value is not None else None
        file = self.program.load(path) if isinstance(found, Unresolved | Missing) and hops > 0 else None
        if file is None:
            return None
        if name in file.body.named:
            return self.meaning(self.bodies.module(file), name, hops - 1)
        return self._lazy(file, name)

    def _lazy(self, file: PythonFile, name: str) -> T | None:
        """Return the module that a file's ``__getattr__`` returns for a name, if the call that creates it names both in strings."""
        found: list[T | None] = []
        for call in file.body.calls:
            words = [item.value for item in call.items[1:] if item.kind == "const" and isinstance(item.value, str)]
            if name in words and "__getattr__" in file.body.names():
                modules = [path for word in words if (path := self.program.module_path(word)) in self._at]
                found += [self._at[path] for path in modules if path is not None]
        return _same(found)

    # Functions

    def _loaded(self, body: Body, call: Expr, arguments: Mapping[str, Expr], hops: int) -> T | None:
        """Return the results of ``import_module("m")`` and ``getattr(m, "name")``, given the ``arguments`` of the enclosing
        function.
        """
        given = call.positional()
        last = call.items[0].member
        if last in _IMPORTS and given:
            return self.full_meaning(_text(given[0], arguments), hops - 1)
        if last == "getattr" and len(given) == 2 and (name := _text(given[1], arguments)).isidentifier():
            owner = self.value(body, given[0], hops - 1)
            return owner.member(name) if owner is not None else None
        return None

    def _result(self, body: Body, call: Expr, hops: int) -> T | None:
        """Return the result of a function of the tree; if several are defined under conditions, the result of one of them."""
        key = (body.file.path, call.start)
        if key not in self._results:
            self._results[key] = None  # during the search
            found = []
            for function in self._definitions(body, call.callee):
                arguments = _kept(function, arguments_for(call, function.params))
                values = [self._returned(function, item, arguments, hops - 1) for item in function.scope.returns]
                found += values if None not in values else []
            self._results[key] = _same(found)
        return self._results[key]

    def _returned(self, body: Body, value: Expr, arguments: Mapping[str, Expr], hops: int) -> T | None:
        """Return the meaning of a returned expression: a module, or an inner function that calls a function of a module."""
        if value.kind == "call":
            return self._loaded(body, value, arguments, hops) if hops > 0 else None
        if value.kind != "name" or hops <= 0:
            return None
        inner = body.scope.function(value.text)
        if inner is not None:
            return self._wrapped(body, inner, arguments, hops)
        values = [item.value for item in body.scope.assigns if item.target == value.text and item.value is not None]
        made = [self._loaded(body, item, arguments, hops) for item in values if item.kind == "call"]
        return _same(made) if made and len(made) == len(values) else self.meaning(body, value.text, hops)

    def _wrapped(self, body: Body, function: Function, arguments: Mapping[str, Expr], hops: int) -> T | None:
        """Return the function of a module that a function calls with all of its own arguments."""
        inner = self.bodies.defined(body.file, function)
        if inner is None or not _passes_on(inner) or not _is_plain(inner):
            return None
        called = inner.scope.returns[0].items[0]
        if called.kind != "call":
            return self.value(inner, called, hops)
        return self._loaded(inner, called, _kept(inner, arguments), hops)

    def _definitions(self, body: Body, dotted: str) -> list[Body]:
        """Return the functions that a name may refer to; there are several if they are defined under conditions. Methods may be
        overridden.
        """
        if not dotted or dotted.partition(".")[0] == body.this:
            return []
        called = self.bodies.called(body, dotted)
        if called is not None:
            return [called] if _is_plain(called) else []
        holder, _, name = dotted.rpartition(".")
        owner = self.bodies.resolve(body, holder) if holder else None
        passed = self.bodies.imported_from(body, dotted) if not holder else None
        path, name = (owner.path, name) if isinstance(owner, ModuleRef) else passed or ("", "")
        file = self.program.load(path) if path else None
        named = file.body.named.get(name, ()) if file is not None else ()
        found = [self.bodies.defined(file, item) for item in named if isinstance(item, Function) and file is not None]
        return [item for item in found if item is not None and _is_plain(item)]


_CACHES = frozenset({"cache", "lru_cache", "wraps", "staticmethod"})


def _is_plain(body: Body) -> bool:
    """Whether no decorator of a function may replace its result."""
    function = body.function
    return function is not None and all(name.rpartition(".")[2] in _CACHES for name in function.decorator_names)


def _kept(body: Body, arguments: Mapping[str, Expr]) -> dict[str, Expr]:
    """Return the arguments that a function does not reassign."""
    return {name: value for name, value in arguments.items() if name not in body.scope.named}


def _passes_on(body: Body) -> bool:
    """Whether a function returns one call that gets exactly its own arguments (``f(*args, **kwargs)``)."""
    returns, params = body.scope.returns, [(item.kind, item.name) for item in body.params]
    if len(returns) != 1 or returns[0].kind != "call" or returns[0].keywords != ("*", "**"):
        return False
    words = [item.text for item in returns[0].items[1:]]
    uses = [use.name.partition(".")[0] for use in body.scope.uses]
    once = all(uses.count(word) == 1 and word not in body.scope.named for word in words)
    return once and params == list(zip(("vararg", "kwarg"), words, strict=True))


def _inner(found: T | None, names: Iterable[str]) -> T | None:
    for name in names:
        found = found.member(name) if found is not None else None
    return found


def _same(found: Iterable[T | None]) -> T | None:
    """Return the common meaning; None if one is unknown or two differ."""
    different: list[T | None] = []
    for item in found:
        if item not in different:
            different.append(item)
    return different[0] if len(different) == 1 else None


def _text(expr: Expr, arguments: Mapping[str, Expr]) -> str:
    """Return a string with the arguments of a call in place of parameters; empty if it is not known."""
    if expr.kind == "name" and expr.text in arguments:
        return _text(arguments[expr.text], {})
    if expr.kind in ("binary", "fstring") and expr.text in ("", "+"):
        parts = [_text(item.items[0] if item.kind == "field" else item, arguments) for item in expr.items]
        return "".join(parts) if all(parts) else ""
    return expr.value if expr.kind == "const" and isinstance(expr.value, str) else ""
