"""Calls of bound functions in Python, and how the arguments of each fit the bindings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.schema.cpp_inference import plain_type, split_arguments
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Span
from opschema_rules.bindings.accepted import Literally, of_python, refuses
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
        return self.call.items[0].text

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
        return self.guards.is_replaced(self.target) or self.guards.allows_failure(self.body, self.call.start)


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
    unpacks = {item.value.start: item for item in body.scope.unpacks}
    meanings: dict[str, Target | None] = {}
    for call in body.scope.calls:
        dotted = call.callee
        if dotted and dotted not in meanings:
            meanings[dotted] = guards.extensions.meaning(body, dotted)
        target = meanings.get(dotted)
        if target is not None and target.bindings:
            unpack = unpacks.get(call.start)
            unpack = unpack if unpack is not None and unpack.value.span == call.span else None
            count, starred = (len(unpack.targets), unpack.starred) if unpack else (0, False)
            yield BoundCall(body, call, target, guards, count, starred)


def _missing(guards: Guards, body: Body) -> Iterator[MissingName]:
    extensions = guards.extensions
    seen: dict[str, Target | None] = {}
    for use in body.scope.uses:
        if "." not in use.name:
            continue
        first = use.name.rpartition(".")[0]
        if first not in seen:
            seen[first] = extensions.meaning(body, first)
        target = seen[first]
        member = target.member(use.name.rpartition(".")[2]) if target is not None else None
        if member is not None and _is_absent(member) and not guards.allows_absence(body, use.start, member):
            span = Span(use.end - len(member.name), use.end)
            yield MissingName(body.at(span), member.name, member.modules)
    for member, expr in extensions.imported(body):
        if _is_absent(member) and not guards.allows_absence(body, expr.start, member):
            yield MissingName(body.at(expr), member.name, member.modules)


def _is_absent(target: Target) -> bool:
    name = target.name
    if not name or name.startswith("__") or not all(item.closed for item in target.modules):
        return False
    return not any(name in item.known for item in target.modules)


# Arguments


def _misfit(call: BoundCall, binding: Binding) -> Misfit | None:
    parameters = binding.parameters
    if parameters is None:
        return None
    given = call.call.positional()
    accepting = [item for item in parameters if item.kind in ("posonly", "normal")]
    if len(given) > len(accepting) and not any(item.kind == "vararg" for item in parameters):
        return Misfit("many", binding, given[len(accepting)], None, (), len(given))
    pairs = list(zip(accepting, given, strict=False))
    wrong = _take_keywords(call, binding, parameters, pairs)
    if wrong is not None:
        return wrong
    filled = {id(item) for item, _ in pairs}
    absent = [item for item in parameters if item.required and id(item) not in filled]
    if absent and not any(keyword in ("*", "**") for keyword, _ in call.call.args):
        return Misfit("few", binding, None, absent[0], _shown(parameters, absent), len(given))
    refused = ((parameter, value) for parameter, value in pairs if _is_refused(call, parameter, value))
    return next((Misfit("type", binding, value, parameter) for parameter, value in refused), None)


def _take_keywords(
    call: BoundCall, binding: Binding, parameters: Sequence[Parameter], pairs: list[tuple[Parameter, Expr]]
) -> Misfit | None:
    """Add the parameters that keywords fill to ``pairs``; the first keyword that fills none, or a filled one."""
    named = {item.name: item for item in parameters if item.kind in ("normal", "kwonly")}
    takes_any = any(item.kind == "kwarg" for item in parameters)
    for name, value in call.call.args:
        taken = named.get(name)
        if name in ("", "*", "**") or (taken is None and takes_any):
            continue
        if taken is None:
            return Misfit("keyword", binding, value, None, (name,))
        if any(item is taken for item, _ in pairs):
            return Misfit("twice", binding, value, taken, (name,))
        pairs.append((taken, value))
    return None


def _is_refused(call: BoundCall, parameter: Parameter, value: Expr) -> bool:
    literal: Literally | None = of_python(value, call.body.file.text(value))
    return literal is not None and refuses(parameter.type, literal)


def _shown(parameters: Sequence[Parameter], absent: Sequence[Parameter]) -> tuple[str, ...]:
    """The parameters for a message: one without a name by its place, and by its name in C++."""
    places = {id(item): index for index, item in enumerate(parameters, 1)}
    own = [f" (`{item.cpp_name}`)" if item.cpp_name else "" for item in absent]
    return tuple(item.name or f"argument {places[id(item)]}{name}" for item, name in zip(absent, own, strict=True))


_GENERIC = re.compile(r"(\w+)<(.*)>")


def returned(binding: Binding) -> int | None:
    """The number of values that a binding surely returns as one tuple; 0 for none, None where it is not known."""
    signature = binding.signature
    found = plain_type(signature.returns) if signature is not None else None
    if found == "void":
        return 0
    generic = _GENERIC.fullmatch(found or "")
    return len(split_arguments(generic[2])) if generic is not None and generic[1] in ("tuple", "pair") else None
