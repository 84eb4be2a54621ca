"""Arguments of calls, and their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opschema_cli.evaluation.execution.classes import class_scope
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.methods import mapping_of
from opschema_cli.evaluation.execution.names import module_scope
from opschema_cli.evaluation.execution.signals import UnknownElementsError
from opschema_cli.evaluation.execution.values import Closure, Environment, Opaque, ParameterNames
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Param


def arguments_of(machine: Machine, scope: Environment, call: Expr) -> tuple[list[object], dict[str, object]] | Opaque:
    """Return the arguments of a call in source order; opaque if their number is not known."""
    positional: list[object] = []
    keywords: dict[str, object] = {}
    lost: Opaque | None = None
    evaluate = machine.evaluate
    exprs = iter(call.items)
    next(exprs)  # the callee
    for word, expr in zip(call.keywords, exprs, strict=True):
        value = evaluate(scope, expr)
        if not word:
            positional.append(value)
        elif word not in ("*", "**"):
            _add(machine, keywords, word, value)
        elif isinstance(value, Opaque) or id(value) in machine.tainted:
            lost = lost or machine.opaque("the arguments of a call are not known")
        elif word == "*":
            try:
                positional.extend(machine.iterate(value))
            except UnknownElementsError as unknown:
                lost = machine.opaque(unknown.reason)
        else:
            lost = _unpack(machine, keywords, value) or lost
    return lost if lost is not None else (positional, keywords)


def _unpack(machine: Machine, keywords: dict[str, object], value: object) -> Opaque | None:
    found = mapping_of(machine, value)
    if isinstance(found, Opaque):
        return found
    for key, item in found.items():
        if not isinstance(key, str):
            machine.throw("TypeError", "keywords must be strings")
        _add(machine, keywords, key, item)
    return None


def _add(machine: Machine, keywords: dict[str, object], word: str, value: object) -> None:
    if word in keywords:
        machine.throw("TypeError")
    keywords[word] = value


def bound_parameters(
    machine: Machine, function: Closure, positional: Sequence[object], keywords: Mapping[str, object]
) -> dict[str, object]:
    """Bind the parameters of a function by name."""
    params = machine.names_of(function.body).params
    found: dict[str, object] = dict(zip(params.placed, positional, strict=False))
    others = _by_name(machine, params, keywords, found)
    if params.rest:
        found[params.rest] = tuple(positional[len(params.placed) :])
    elif len(positional) > len(params.placed):
        machine.throw("TypeError")
    if params.words:
        found[params.words] = others
    elif others:
        machine.throw("TypeError", f"{_title(function.body)} got an unexpected keyword argument '{next(iter(others))}'")
    if len(found) < len(function.body.params):
        _require(machine, function, found)
        for item in function.body.params:
            if item.name not in found:
                found[item.name] = default_of(machine, function, item)
    return found


def _require(machine: Machine, function: Closure, found: Mapping[str, object]) -> None:
    """Raise if a parameter without a default has no value."""
    required = [item for item in function.body.params if item.default is None and item.name not in function.defaults]
    missing = [item for item in required if item.name not in found]
    placed = [item for item in missing if item.kind != "kwonly"]
    kind, listed = ("positional", placed) if placed else ("keyword-only", missing)
    if listed:
        names = [f"'{item.name}'" for item in listed]
        last = f"{',' if len(names) > 2 else ''} and {names[-1]}" if len(names) > 1 else names[-1]
        plural = "s" if len(names) > 1 else ""
        text = f"missing {len(names)} required {kind} argument{plural}: {', '.join(names[:-1])}{last}"
        machine.throw("TypeError", f"{_title(function.body)} {text}")


def _title(body: Body) -> str:
    """Return the name of a function as in Python's error messages."""
    own = body.function.name if body.function is not None else ""
    around, name = body.parent, f"{own or '<lambda>'}()"
    while around is not None:
        if around.function is not None:
            name = f"{around.function.name}.<locals>.{name}"
        elif around.cls is not None:
            name = f"{around.cls.name}.{name}"
        around = around.parent
    return name


def _by_name(
    machine: Machine, params: ParameterNames, keywords: Mapping[str, object], found: dict[str, object]
) -> dict[str, object]:
    """Bind keyword arguments. Return those for `**words`."""
    others: dict[str, object] = {}
    for name, value in keywords.items():
        if name not in params.named:
            others[name] = value
        elif name in found:
            machine.throw("TypeError")
        else:
            found[name] = value
    return others


def default_of(machine: Machine, function: Closure, param: Param) -> object:
    """Return the default of a parameter, the same object for each call."""
    if param.name not in function.defaults:
        if param.default is None:
            machine.throw("TypeError")
        function.defaults[param.name] = machine.evaluate(defining_scope(machine, function.body), param.default)
    return function.defaults[param.name]


def defining_scope(machine: Machine, body: Body) -> Environment:
    """Return the scope around the definition of a module's or class's function."""
    around = body.parent
    if around is not None and around.cls is not None and around.owner is not None:
        return class_scope(machine, around.owner)
    return module_scope(machine, body.file)
