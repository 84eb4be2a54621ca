"""Calls of bound functions in Python, and how the arguments of each fit the bindings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.schema.cpp_inference import plain_type, split_arguments
from opschema_cli.schema.cpp_literals import of_python, refuses
from opschema_cli.source.bodies import Body, params_for
from opschema_cli.source.call_misfits import misfits
from opschema_cli.source.python import Expr
from opschema_rules.bindings.guards import Guards
from opschema_rules.bindings.imports import Extensions, Target
from opschema_rules.bindings.model import Binding, Module, Parameter


class Misfit(msgspec.Struct, frozen=True):
    """The first thing that is wrong with a call of one binding: its kind, the argument it concerns, and the parameter."""

    kind: str
    binding: Binding
    expr: Expr | None = None
    parameter: Parameter | None = None
    names: tuple[str, ...] = ()
    count: int = 0


class BoundCall(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A call of a bound function; ``unpacked`` are the targets that its result is assigned to, 0 if it is not unpacked."""

    body: Body
    call: Expr
    target: Target
    guards: Guards
    unpacked: int = 0
    starred: bool = False

    @property
    def name(self) -> str:
        """The function, as the code writes it."""
        return " ".join(self.body.file.text(self.call.items[0]).split())

    @property
    def place(self) -> Place:
        """The function's name in the call."""
        return self.body.at(self.call.items[0])

    @cached_property
    def bindings(self) -> list[Binding]:
        """The bindings that it may call."""
        return self.target.bindings

    @cached_property
    def misfits(self) -> list[Misfit]:
        """What is wrong with it, for each binding; empty if it may fit one."""
        found = [_misfit(self, item) for item in self.bindings]
        wrong = [item for item in found if item is not None] if None not in found else []
        return wrong if wrong and not self.may_fail else []

    @property
    def may_fail(self) -> bool:
        """Whether the code allows for an error of it, or may call another function."""
        other = self.target.is_elsewhere or self.guards.is_replaced(self.target)
        return other or self.guards.allows_failure(self.body, self.call.start)


class MissingName(msgspec.Struct, frozen=True, eq=False):
    """A use of a name that no build of a module has."""

    place: Place
    name: str
    modules: tuple[Module, ...]


class Uses(msgspec.Struct, frozen=True):
    """What the Python of a tree uses of its extension modules."""

    calls: list[BoundCall]
    missing: list[MissingName]


def read_uses(extensions: Extensions) -> Uses:
    """The uses in all files that may use a module."""
    found, guards = Uses([], []), Guards(extensions)
    for file in extensions.bodies.files:
        for body in extensions.bodies.of(file):
            found.calls.extend(_calls(guards, body))
            found.missing.extend(_missing(guards, body))
    return found


def _calls(guards: Guards, body: Body) -> Iterator[BoundCall]:
    unpacks = {item.value.span: item for item in body.scope.unpacks}
    for target, call in guards.extensions.names.calls(body):
        if target.bindings:
            unpack = unpacks.get(call.span)
            count, starred = (len(unpack.targets), unpack.starred) if unpack else (0, False)
            yield BoundCall(body, call, target, guards, count, starred)


def _missing(guards: Guards, body: Body) -> Iterator[MissingName]:
    for target, span in guards.extensions.names.uses(body):
        named = bool(target.name) and not target.name.startswith("__")
        if named and target.is_absent and not guards.allows_absence(body, span.start, target):
            yield MissingName(body.at(span), target.name, target.modules)


# Arguments

_ORDER = ("surplus", "unknown", "position-only", "twice", "missing")


def _misfit(call: BoundCall, binding: Binding) -> Misfit | None:
    """The first thing that is wrong with a call."""
    parameters, params = binding.parameters, binding.params
    if parameters is None:
        return None
    found = sorted(misfits(call.call, params), key=lambda item: _ORDER.index(item.fault))
    if not found:
        own = dict(zip((item.name for item in params), parameters, strict=True))
        pairs = zip(call.call.items[1:], params_for(call.call, params), strict=True)
        taken = [(own[param.name], value) for value, param in pairs if param is not None and param.by_name]
        refused = (Misfit("type", binding, value, item) for item, value in taken if _is_refused(call, item, value))
        return next(refused, None)
    first = found[0]
    if first.fault == "missing":
        absent = [index for index, item in enumerate(params) if item.name in {one.name for one in found}]
        return Misfit("few", binding, None, parameters[absent[0]], tuple(_shown(parameters, at) for at in absent))
    kind = {"surplus": "many", "twice": "twice"}.get(first.fault, "keyword")
    count = len(call.call.positional())
    return Misfit(kind, binding, first.argument, None, (first.name,), count)


def _is_refused(call: BoundCall, parameter: Parameter, value: Expr) -> bool:
    literal = of_python(value, call.body.file.text(value))
    return literal is not None and refuses(parameter.type, literal)


def _shown(parameters: Sequence[Parameter], at: int) -> str:
    """A parameter for a message: one without a name by its place, and by its name in C++."""
    item = parameters[at]
    return item.name or f"argument {at + 1}" + (f" (`{item.cpp_name}`)" if item.cpp_name else "")


_GENERIC = re.compile(r"(\w+)<(.*)>")


def returned(binding: Binding) -> int | None:
    """The number of values that a binding surely returns as one tuple; 0 for none, None where it is not known."""
    signature = binding.signature
    found = plain_type(signature.returns) if signature is not None else None
    if found == "void":
        return 0
    generic = _GENERIC.fullmatch(found or "")
    return len(split_arguments(generic[2])) if generic is not None and generic[1] in ("tuple", "pair") else None
