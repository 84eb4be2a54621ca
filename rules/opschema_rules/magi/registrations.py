"""Finds where functions are made ops: the decorator under any name, called at once or later, and functions that wrap it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from opschema_cli.source.bodies import MAX_HOPS, Bodies, Body
from opschema_cli.source.python import Expr, Param
from opschema_cli.source.resolution import External, FunctionRef, Unresolved, ValueRef
from opschema_cli.source.text import Place
from opschema_rules.magi.detection import MARK

PARAMETERS = (
    "name", "mutates_args", "infer_output_meta_fn", "setup_context_fn", "backward_fn", "is_compute_sensitive",
    "is_subgraph_boundary",
)  # fmt: skip
"""The decorator's parameters, in order."""

_REGISTRARS = frozenset({MARK, f"_{MARK}_impl"})


class Written(msgspec.Struct, frozen=True, eq=False):
    """An expression and the body that it is written in."""

    body: Body
    expr: Expr

    @property
    def place(self) -> Place:
        """Where it is written."""
        return self.body.at(self.expr)


class Arguments(msgspec.Struct, frozen=True, eq=False):
    """What the decorator is given. ``hidden`` is true when unpacking may give it more; ``rest`` is the one name unpacked."""

    given: dict[str, Written | Unresolved] = msgspec.field(default_factory=dict)
    hidden: bool = False
    rest: str = ""

    def get(self, name: str) -> Written | Unresolved | None:
        """An argument; None when it is not given."""
        if name not in self.given and self.hidden:
            return Unresolved("the arguments are unpacked")
        return self.given.get(name)


class Registration(msgspec.Struct, frozen=True, eq=False):
    """One function made an op: ``call`` is the decorator, or the call that is given the function, in the body ``outer``.

    ``handle`` is the name that the op gets there, empty when it gets none. ``called`` is false for the bare decorator.
    """

    outer: Body
    call: Expr
    function: Body
    arguments: Arguments
    handle: str
    called: bool = True

    @property
    def place(self) -> Place:
        """Where the decorator or the call is written."""
        return self.outer.at(self.call)


class Registrations:
    """The ops that a tree registers."""

    def __init__(self, bodies: Bodies) -> None:
        self.bodies = bodies

    def within(self, body: Body) -> Iterator[Registration]:
        """The registrations that are written directly in a body."""
        for inner in self.bodies.within(body):
            for decorator in inner.function.decorators if inner.function is not None else ():
                found = self._decorated(body, decorator, inner)
                if found is not None:
                    yield found
        for call in body.scope.calls:
            found = self._called(body, call)
            if found is not None:
                yield found

    def _decorated(self, outer: Body, decorator: Expr, function: Body) -> Registration | None:
        name = function.function.name if function.function is not None else ""
        arguments = self.decorates(outer, decorator, MAX_HOPS)
        if arguments is not None:
            return Registration(outer, decorator, function, arguments, name)
        if self.is_registrar(outer, decorator.text if decorator.kind == "name" else ""):
            return Registration(outer, decorator, function, Arguments(hidden=True), name, called=False)
        return None

    def _called(self, outer: Body, call: Expr) -> Registration | None:
        plain = call.positional()
        if len(plain) != 1 or len(call.items) != 2 or not plain[0].text or plain[0].kind != "name":
            return None
        arguments = self.decorates(outer, call.items[0], MAX_HOPS)
        function = self.bodies.called(outer, plain[0].text) if arguments is not None else None
        if arguments is None or function is None:
            return None
        handles = [
            item.target for item in outer.scope.assigns if item.value is not None and item.value.span == call.span
        ]
        return Registration(outer, call, function, arguments, handles[0] if len(handles) == 1 else "")

    def decorates(self, body: Body, expr: Expr, hops: int) -> Arguments | None:
        """What the decorator that an expression is was given; None when it makes no ops."""
        if hops <= 0:
            return None
        if expr.kind == "call":
            return self.arguments(body, expr, hops)
        if expr.kind != "name":
            return None
        found = self.bodies.resolve(body, expr.text)
        if isinstance(found, ValueRef) and found.assign.sure and found.assign.value is not None and found.owner is None:
            home = body.binder(expr.text) or self.bodies.module(found.file)
            return self.decorates(home, found.assign.value, hops - 1) if found.assign.value.kind == "call" else None
        wrapper = self.bodies.function(found) if isinstance(found, FunctionRef) else None
        return self._applied(wrapper, hops) if wrapper is not None and not self._is_own(wrapper) else None

    def _applied(self, wrapper: Body, hops: int) -> Arguments | None:
        """Of ``def wrapper(fn): return magi_register_custom_op(...)(fn)``, the arguments."""
        returned = _returned(wrapper)
        params = wrapper.params
        if returned is None or len(returned.items) != 2 or len(params) != 1 or returned.items[1].text != params[0].name:
            return None
        inner = self.decorates(wrapper, returned.items[0], hops - 1)
        return None if inner is None or _mentions(inner, wrapper, {params[0].name}) else inner

    def is_registrar(self, body: Body, dotted: str) -> bool:
        """Whether a name is MagiCompiler's decorator."""
        found = self.bodies.resolve(body, dotted) if dotted else None
        if isinstance(found, External):
            return found.name.partition(".")[0] == "magi_compiler" and found.name.rpartition(".")[2] in _REGISTRARS
        if isinstance(found, FunctionRef):
            wrapper = self.bodies.function(found)
            return wrapper is not None and self._is_own(wrapper)
        return isinstance(found, Unresolved) and self._guarded(body, dotted)

    def _guarded(self, body: Body, name: str) -> bool:
        """Whether one of the meanings of a name, in a guarded import, is the decorator."""
        imports = [item for scope in (*body.scopes, body.file.body) for item in scope.imports if item.name == name]
        return any(
            item.attr in _REGISTRARS and item.module.partition(".")[0] == "magi_compiler"
            for item in imports
            if item.guarded
        )

    def _is_own(self, body: Body) -> bool:
        """Whether a function is the decorator itself, in MagiCompiler's own tree."""
        module = self.bodies.program.module_name(body.file.path)
        named = body.function is not None and body.function.name in _REGISTRARS
        return named and module.partition(".")[0] == "magi_compiler"

    def arguments(self, body: Body, call: Expr, hops: int) -> Arguments | None:
        """What ``call`` gives the decorator, through wrappers and ``functools.partial``; None when it calls another function."""
        if hops <= 0 or not call.callee:
            return None
        if self.is_registrar(body, call.callee):
            return _bound(body, call)
        found = self.bodies.resolve(body, call.callee)
        if isinstance(found, FunctionRef):
            wrapper = self.bodies.function(found)
            return self._through(wrapper, body, call, hops) if wrapper is not None else None
        value = found.assign.value if isinstance(found, ValueRef) and found.assign.sure else None
        if isinstance(found, ValueRef) and value is not None and value.kind == "call":
            return self._partial(body.binder(call.callee) or self.bodies.module(found.file), value, body, call)
        return None

    def _partial(self, home: Body, value: Expr, body: Body, call: Expr) -> Arguments | None:
        first = value.positional()[:1]
        if self.bodies.external(home, value.callee) != "functools.partial" or not first:
            return None
        if not self.is_registrar(home, first[0].text) or call.positional():
            return None
        inner = Expr("call", value.start, value.end, "", None, value.items[1:], value.keywords[1:])
        before, after = _bound(home, inner), _bound(body, call)
        return Arguments({**before.given, **after.given}, before.hidden or after.hidden)

    def _through(self, wrapper: Body, body: Body, call: Expr, hops: int) -> Arguments | None:
        """What ``def wrapper(...): return magi_register_custom_op(...)`` hands on."""
        returned = _returned(wrapper)
        inner = self.arguments(wrapper, returned, hops - 1) if returned is not None else None
        if inner is None:
            return None
        passed = _passed(wrapper, body, call)
        if passed is None:
            return Arguments({}, hidden=True)
        handed, rest = passed
        given = {name: _handed(wrapper, value, handed) for name, value in inner.given.items()}
        if inner.rest:
            given.update({name: value for name, value in rest.items() if name in PARAMETERS})
        known = not inner.hidden or any(item.kind == "kwarg" and item.name == inner.rest for item in wrapper.params)
        return Arguments(given, not known)


def _returned(body: Body) -> Expr | None:
    """The call that a function does nothing but return."""
    returns = body.scope.returns
    return returns[0] if len(returns) == 1 and returns[0].kind == "call" and not body.scope.conditions else None


def _bound(body: Body, call: Expr) -> Arguments:
    given: dict[str, Written | Unresolved] = {}
    unpacked = [value.text for keyword, value in call.args if keyword in ("*", "**")]
    given.update((name, Written(body, value)) for name, value in zip(PARAMETERS, call.positional(), strict=False))
    given.update((keyword, Written(body, value)) for keyword, value in call.args if keyword not in ("", "*", "**"))
    return Arguments(given, bool(unpacked), unpacked[0] if len(unpacked) == 1 else "")


Handed = dict[str, "Written | Unresolved"]


def _passed(wrapper: Body, body: Body, call: Expr) -> tuple[Handed, Handed] | None:
    """What a call passes: by the wrapper's parameters, and what is left for its ``**``; None when unpacking hides it."""
    if "*" in call.keywords or "**" in call.keywords:
        return None
    named = {item.name: item for item in wrapper.params if item.by_name}
    places = [item for item in wrapper.params if item.kind in ("posonly", "normal")]
    handed: Handed = {item.name: Written(body, value) for item, value in zip(places, call.positional(), strict=False)}
    words = [(keyword, Written(body, value)) for keyword, value in call.args if keyword]
    handed.update((keyword, value) for keyword, value in words if keyword in named)
    for item in named.values():
        handed.setdefault(item.name, _of_default(wrapper, item))
    return handed, {keyword: value for keyword, value in words if keyword not in named}


def _of_default(wrapper: Body, item: Param) -> Written | Unresolved:
    if item.default is None or wrapper.parent is None:
        return Unresolved(f"`{item.name}` is not passed")
    return Written(wrapper.parent, item.default)


def _handed(wrapper: Body, value: Written | Unresolved, handed: Handed) -> Written | Unresolved:
    if isinstance(value, Unresolved) or value.body is not wrapper:
        return value
    if value.expr.kind == "name" and value.expr.text in handed:
        return handed[value.expr.text]
    inner = {item.name for item in wrapper.params} | {item.target for item in wrapper.scope.assigns}
    used = any(item.text.partition(".")[0] in inner for item in value.expr.walk() if item.kind == "name")
    return Unresolved("it is computed by a wrapper") if used or value.expr.kind == "other" else value


def _mentions(arguments: Arguments, wrapper: Body, names: set[str]) -> bool:
    given = [item for item in arguments.given.values() if isinstance(item, Written) and item.body is wrapper]
    return any(
        part.text.partition(".")[0] in names for item in given for part in item.expr.walk() if part.kind == "name"
    )
