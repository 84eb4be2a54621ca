"""Names of modules: functions and classes of the workspace, imports, constants, and names of other packages."""

from __future__ import annotations

from collections.abc import Iterable

from opschema_cli.evaluation.changes import changes_in
from opschema_cli.evaluation.execution.conversion import converted, external
from opschema_cli.evaluation.execution.copies import Copier
from opschema_cli.evaluation.execution.machine import Machine, cached_by_class
from opschema_cli.evaluation.execution.plain import is_scalar
from opschema_cli.evaluation.execution.values import Closure, DtypeValue, Environment, Names, Object, Opaque, Running
from opschema_cli.evaluation.values import ClassValue, EnumMember, ExternalName, ModuleValue
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Assign, Import, PythonFile
from opschema_cli.source.resolution import (
    ClassRef,
    External,
    FunctionRef,
    Missing,
    ModuleRef,
    Resolution,
    ValueRef,
)

_COMPUTING = Opaque("a name of a module refers to itself")


def module_name(machine: Machine, file: PythonFile, name: str) -> object:
    """Return the value of a module's name after all modules have run."""
    key = (file.path, name)
    if key in machine.globals:
        return machine.globals[key]
    constants = machine.shared.constants
    if key in constants:
        return constants[key]
    if key in machine.shared.containers:
        machine.globals[key] = found = Copier().copy(machine.shared.containers[key])
        return found
    machine.globals[key] = _COMPUTING
    decided = machine.decisions
    machine.naming += 1
    try:
        machine.globals[key] = found = _found(machine, file, name)
    finally:
        machine.naming -= 1
    if machine.decisions > decided:
        return found
    if is_constant(found):
        constants[key] = found
    elif _is_undisturbed(machine):
        _share(machine, key, found)
    return found


def _share(machine: Machine, key: tuple[str, str], value: object) -> None:
    """Keep the value of a module's name for other executions, unless something else holds a mutable part of it."""
    if isinstance(value, Opaque):
        machine.shared.constants[key] = value
    elif isinstance(value, list | dict | set | tuple) and key not in machine.shared.examined:
        machine.shared.examined.add(key)
        own: dict[int, object] = {}
        others: dict[int, object] = {}
        are_known = _note_parts(value, own)
        held = (item for name, item in machine.globals.items() if name != key)
        for item in (*held, *machine.class_values.values()):
            _note_parts(item, others)
        if are_known and own.keys().isdisjoint(others):
            machine.shared.containers[key] = Copier().copy(value)


def _note_parts(value: object, found: dict[int, object]) -> bool:
    """Record the mutable parts of a value. Return whether these are only containers and workspace objects."""
    if is_constant(value) or isinstance(value, Opaque) or id(value) in found:
        return True
    parts: Iterable[object]
    match value:
        case dict():
            parts = (*value, *value.values())
        case list() | set() | tuple():
            parts = value
        case Object():
            parts = value.attributes.values()
        case _:
            return False
    found[id(value)] = value
    are_known = True
    for item in parts:
        are_known = _note_parts(item, found) and are_known
    return are_known


def _is_undisturbed(machine: Machine) -> bool:
    """Whether the running code does not depend on its context: a ``try``, a loop, a branch, or another name of a module."""
    return not (machine.naming or machine.guarded or machine.unsure or machine.joins)


def is_constant(value: object) -> bool:
    """Whether a value is immutable."""
    if isinstance(value, tuple):
        return all(map(is_constant, value))
    return is_scalar(value) or isinstance(value, ClassValue | ModuleValue | EnumMember | ExternalName | DtypeValue)


def _found(machine: Machine, file: PythonFile, name: str) -> object:
    if name in file.rebound:
        return machine.opaque(f"functions change the global `{name}`")
    if name == "__name__":
        return machine.evaluator.program.module_name(file.path)
    known, key = machine.shared.resolved, (file.path, name)
    if key not in known:
        known[key] = machine.evaluator.program.resolve(file, name)
    return resolved(machine, known[key], file, name)


def resolved(machine: Machine, found: Resolution, file: PythonFile, name: str) -> object:
    """Return the value that a name of a file resolves to."""
    match found:
        case ClassRef():
            return ClassValue(found)
        case FunctionRef():
            return function_value(machine, found)
        case ModuleRef():
            return ModuleValue(found.path)
        case External():
            return external(machine, found.name)
        case ValueRef():
            return _assigned(machine, found, file, name)
        case Missing():
            return machine.opaque(f"`{found.name}` is not defined")
    return evaluated(machine, file, name)


def evaluated(machine: Machine, file: PythonFile, name: str) -> object:
    """Return the value of a module's name according to the evaluator."""
    evaluator = machine.evaluator
    return converted(machine, evaluator.lookup(evaluator.frames.module(file), name))


def _assigned(machine: Machine, found: ValueRef, file: PythonFile, name: str) -> object:
    """Return the value of an assigned name; a single assignment is executed."""
    where, assign = found.file, found.assign
    if (where.path, assign.target) != (file.path, name) and "." not in assign.target:
        return machine.module_name(where, assign.target)
    known = evaluated(machine, where, assign.target)
    if isinstance(known, list | dict | set):
        return lasting(machine, known)
    if not isinstance(known, Opaque) or assign.value is None or not assign.sure or _is_changed(machine, where, assign):
        return known
    return machine.held(module_scope(machine, where), assign.value)


def lasting(machine: Machine, value: object) -> object:
    """Return a value that a module or class holds; changes made by other code are unknown."""
    if isinstance(value, Object) and not is_frozen(machine, value.cls.ref):
        return Object(value.cls, {}, False, True)
    if isinstance(value, Running):
        return machine.opaque("an iterator that other code may have advanced")
    if isinstance(value, list | dict | set) and not value:
        return machine.opaque("a container that is filled later")
    if isinstance(value, tuple):
        return tuple(lasting(machine, item) for item in value)
    if isinstance(value, list):
        value[:] = [lasting(machine, item) for item in value]
    elif isinstance(value, dict):
        value.update([(key, lasting(machine, item)) for key, item in value.items()])
    return value


@cached_by_class
def is_frozen(machine: Machine, ref: ClassRef) -> bool:
    """Whether a class is a frozen dataclass."""
    resolve = machine.evaluator.program.resolve
    frozen = (item for item in ref.cls.decorators if getattr(item.keyword("frozen"), "value", None) is True)
    return any(resolve(ref.file, item.callee) == External("dataclasses.dataclass") for item in frozen)


def _is_changed(machine: Machine, file: PythonFile, assign: Assign) -> bool:
    """Whether code changes the container held by a module's name."""
    changes = changes_in(file)
    several = len([item for item in file.assigns.get(assign.target, ()) if item.value is not None]) != 1
    name = assign.target
    return several or name in changes.by_methods or name in changes.inner or changes.by_items[name] > 0


def module_scope(machine: Machine, file: PythonFile) -> Environment:
    """Return a scope for the expressions of a module."""
    return Environment(machine.evaluator.bodies.module(file), {}, Names())


# Functions


def function_value(machine: Machine, found: FunctionRef) -> object:
    """Return a function of a module with its decorators applied."""
    body = machine.evaluator.bodies.function(found)
    if body is None:
        return machine.opaque(f"`{found.function.name}` is not found")
    if not found.function.decorators:
        return Closure(body)
    return decorated(machine, module_scope(machine, found.file), Closure(body))


def decorated(machine: Machine, scope: Environment, function: Closure) -> object:
    """Return a function with its decorators applied; they are evaluated in ``scope``."""
    value: object = function
    definition = function.body.function
    for decorator in reversed(definition.decorators if definition is not None else ()):
        machine.at(scope.body, decorator)
        value = machine.call(machine.evaluate(scope, decorator), (value,), {})
    return value


# Imports


def imported(machine: Machine, body: Body, item: Import) -> object:
    """Return the value that an import binds."""
    program = machine.evaluator.program
    module = program.absolute_module(body.file, item)
    if module is None:
        return machine.opaque("the import leaves its package")
    if not item.attr:
        first = module.partition(".")[0]
        return _module(machine, first if item.name == first else module)
    path, inner = program.module_path(module), program.module_path(f"{module}.{item.attr}")
    if path is not None and (path != body.file.path or inner is None):
        return member_of_module(machine, path, item.attr)
    return _module(machine, f"{module}.{item.attr}")


def _module(machine: Machine, dotted: str) -> object:
    program = machine.evaluator.program
    path = program.module_path(dotted)
    if path is not None:
        return ModuleValue(path)
    return machine.opaque(f"no file for `{dotted}`") if program.is_local(dotted) else external(machine, dotted)


def member_of_module(machine: Machine, path: str, name: str) -> object:
    """Return an attribute of a workspace module."""
    program = machine.evaluator.program
    file = program.load(path)
    if file is None:
        return machine.opaque(f"{path} does not parse")
    if (path, name) in machine.globals:
        return machine.globals[path, name]
    found = program.module_member(path, name)
    if isinstance(found, ModuleRef):
        return ModuleValue(found.path)
    return machine.module_name(file, name)
