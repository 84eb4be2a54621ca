"""Calls of bound functions in Python, and how the arguments of each fit the bindings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec

from opschema_cli.extension_modules.uses import MissingName, missing_names, module_calls
from opschema_cli.schema.cpp_literals import of_python, refuses
from opschema_cli.source.bodies import params_for
from opschema_cli.source.call_misfits import misfits
from opschema_cli.source.python import Expr
from opschema_rules.bindings.imports import Extensions, Guards, ModuleCall, bindings_of
from opschema_rules.bindings.model import Binding, Parameter


class Misfit(msgspec.Struct, frozen=True):
    """The first thing that is wrong with a call of one binding: its kind, the argument it concerns, and the parameter."""

    kind: str
    binding: Binding
    expr: Expr | None = None
    parameter: Parameter | None = None
    names: tuple[str, ...] = ()
    count: int = 0


class BoundCall(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A call of a bound function."""

    use: ModuleCall

    @cached_property
    def bindings(self) -> list[Binding]:
        """The bindings that it may call."""
        return bindings_of(self.use.target)

    @cached_property
    def misfits(self) -> list[Misfit]:
        """The mismatches with each binding; empty if it may match one."""
        found = [_misfit(self.use, item) for item in self.bindings]
        wrong = [item for item in found if item is not None] if None not in found else []
        return wrong if wrong and not self.use.may_fail else []


class Uses(msgspec.Struct, frozen=True):
    """The uses of a tree's extension modules in its Python code."""

    calls: list[BoundCall]
    missing: list[MissingName]


def read_uses(extensions: Extensions) -> Uses:
    """The uses in all files that may use a module."""
    guards = Guards(extensions)
    bodies = [body for file in extensions.bodies.files for body in extensions.bodies.of(file)]
    calls = [BoundCall(use) for body in bodies for use in module_calls(guards, body)]
    missing = [item for body in bodies for item in missing_names(guards, body)]
    return Uses([item for item in calls if item.bindings], missing)


# Arguments

_ORDER = ("surplus", "unknown", "position-only", "twice", "missing")


def _misfit(use: ModuleCall, binding: Binding) -> Misfit | None:
    """The first thing that is wrong with a call."""
    parameters, params = binding.parameters, binding.params
    if parameters is None:
        return None
    found = sorted(misfits(use.call, params), key=lambda item: _ORDER.index(item.fault))
    if not found:
        own = dict(zip((item.name for item in params), parameters, strict=True))
        pairs = zip(use.call.items[1:], params_for(use.call, params), strict=True)
        taken = [(own[param.name], value) for value, param in pairs if param is not None and param.by_name]
        refused = (Misfit("type", binding, value, item) for item, value in taken if _is_refused(use, item, value))
        return next(refused, None)
    first = found[0]
    if first.fault == "missing":
        absent = [index for index, item in enumerate(params) if item.name in {one.name for one in found}]
        return Misfit("few", binding, None, parameters[absent[0]], tuple(_shown(parameters, at) for at in absent))
    kind = {"surplus": "many", "twice": "twice"}.get(first.fault, "keyword")
    count = len(use.call.positional())
    return Misfit(kind, binding, first.argument, None, (first.name,), count)


def _is_refused(use: ModuleCall, parameter: Parameter, value: Expr) -> bool:
    literal = of_python(value, use.text(value))
    return literal is not None and refuses(parameter.type, literal)


def _shown(parameters: Sequence[Parameter], at: int) -> str:
    """A parameter for a message: one without a name by its position, and by its name in C++."""
    item = parameters[at]
    return item.name or f"argument {at + 1}" + (f" (`{item.cpp_name}`)" if item.cpp_name else "")
