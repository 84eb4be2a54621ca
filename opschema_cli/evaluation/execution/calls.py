"""Calls: of functions and classes of the workspace, of methods of values, and of names outside the workspace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from opschema_cli.evaluation.execution.binding import bound_parameters
from opschema_cli.evaluation.execution.builtins import BUILTINS
from opschema_cli.evaluation.execution.classes import member
from opschema_cli.evaluation.execution.comparisons import equal
from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call, ExternalFunction
from opschema_cli.evaluation.execution.exceptions import class_name, is_error_name, made_error
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.methods import call_method
from opschema_cli.evaluation.execution.objects import constructed
from opschema_cli.evaluation.execution.records import made_record, of_class
from opschema_cli.evaluation.execution.signals import Thrown, UnknownElementsError
from opschema_cli.evaluation.execution.standard import STANDARD, transparent
from opschema_cli.evaluation.execution.statements import Result
from opschema_cli.evaluation.execution.values import (
    BoundMethod,
    Closure,
    Environment,
    Native,
    Object,
    Opaque,
    PartialCall,
    Record,
    RecordClass,
    Running,
    ValueMethod,
)
from opschema_cli.evaluation.values import ClassValue, EnumMember, ExternalName
from opschema_cli.source.bodies import Body


def called(machine: Machine, function: object, positional: Sequence[object], keywords: Mapping[str, object]) -> object:
    """Call a value, and return the result."""
    machine.spend(1)
    match function:
        case Closure():
            return _closure(machine, function, positional, keywords)
        case BoundMethod():
            return machine.call(function.function, (function.this, *positional), keywords)
        case ExternalName():
            return _outside(machine, function, positional, keywords)
        case ClassValue():
            return _class(machine, function, positional, keywords)
        case ValueMethod():
            return _method(machine, function, positional, keywords)
        case Native():
            return function.function(Call(machine, tuple(positional), keywords))
        case PartialCall():
            words = {**function.keywords, **keywords}
            return machine.call(function.function, (*function.positional, *positional), words)
        case RecordClass():
            return made_record(machine, function, positional, keywords)
        case Object():
            return _object(machine, function, positional, keywords)
    return unknown_call(machine, function, (*positional, *keywords.values()))


def unknown_call(machine: Machine, function: object, arguments: Iterable[object]) -> Opaque:
    """Return the result of calling an unknown function, which may change the containers it gets, and may raise."""
    if function is None:
        machine.throw("TypeError", "'NoneType' object is not callable")
    if isinstance(function, int | float | str | list | tuple | dict) and not isinstance(function, Record):
        machine.throw("TypeError", f"'{type(function).__name__}' object is not callable")
    taint_all(machine, arguments)
    reason = function.reason if isinstance(function, Opaque) else f"the result of `{name_of(function)}`"
    machine.may_raise(reason)
    return machine.opaque(reason)


def name_of(function: object) -> str:
    """Return a word for the called function."""
    return function.name if isinstance(function, ExternalName) else f"a {type(function).__name__}"


def taint_all(machine: Machine, values: Iterable[object]) -> None:
    """Record that unknown code has received these values."""
    for value in values:
        machine.spend(1)
        if isinstance(value, list | dict | set) and id(value) not in machine.tainted:
            machine.taint(value)
            taint_all(machine, value.values() if isinstance(value, dict) else value)
        elif isinstance(value, tuple):
            taint_all(machine, value)
        elif isinstance(value, Object):
            value.complete = False  # it may have further attributes from here on
        elif isinstance(value, Closure) and value.around is not None:
            taint_all(
                machine, [item for item in value.around.variables.values() if isinstance(item, list | dict | set)]
            )


def _method(
    machine: Machine, method: ValueMethod, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    try:
        return call_method(machine, method.this, method.name, positional, keywords)
    except UnknownElementsError as unknown:
        taint_all(machine, [method.this])
        return machine.opaque(unknown.reason)


# Functions of the workspace


def _closure(
    machine: Machine, function: Closure, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    body = function.body
    by_dialect = _by_dialect(machine, body)
    if by_dialect is not None:
        found = by_dialect(Call(machine, tuple(positional), keywords))
        if found is not NOT_KNOWN:
            return found
    if body.function is None or not body.statements:
        is_empty = body.function is not None and not machine.names_of(body).asynchronous
        return None if is_empty else machine.opaque("a function without a body")
    names = machine.names_of(body)
    if names.asynchronous:
        return unknown_call(machine, machine.opaque("an asynchronous function"), (*positional, *keywords.values()))
    variables = bound_parameters(machine, function, positional, keywords)
    scope = Environment(body, variables, names, function.around)
    if names.yields:
        return Running(_generated(machine, scope))
    return _result(machine, scope)


def _generated(machine: Machine, scope: Environment) -> Iterator[object]:
    """Yield the values of a generator."""
    try:
        yield from machine.run(scope, scope.body.statements)
    except Thrown as thrown:
        if class_name(thrown.error) == "StopIteration":
            machine.throw("RuntimeError", "generator raised StopIteration")
        raise


def _result(machine: Machine, scope: Environment) -> object:
    machine.enter()
    try:
        steps = machine.run(scope, scope.body.statements)
        next(steps)
    except StopIteration as ended:
        return ended.value.value if isinstance(ended.value, Result) else None
    finally:
        machine.depth -= 1
    return machine.stop("a `yield` inside an expression")


def _by_dialect(machine: Machine, body: Body) -> ExternalFunction | None:
    """Return the dialect function that computes calls of a workspace function."""
    known = machine.shared.by_dialect
    if body not in known:
        dialects = [item for item in machine.dialects if item.reads_own]
        name = _full_name(machine, body) if dialects else ""
        known[body] = next((found for item in dialects if name and (found := item.functions(name)) is not None), None)
    return known[body]


def _full_name(machine: Machine, body: Body) -> str:
    """Return the full name of a module-level function or method; empty for any other function."""
    owner = body.owner
    if owner is None or body.function is None or body.parent is None or body.parent.definition is not owner.cls:
        return machine.evaluator.qualified_name(body)
    return f"{machine.evaluator.program.module_name(body.file.path)}.{owner.name}.{body.function.name}"


def _class(machine: Machine, cls: ClassValue, positional: Sequence[object], keywords: Mapping[str, object]) -> object:
    members = machine.evaluator.members(cls.ref)
    if members:
        return _member_with(machine, cls, members, positional)
    record = of_class(machine, cls, positional, keywords)
    return record if record is not NOT_KNOWN else constructed(machine, cls, positional, keywords)


def _member_with(
    machine: Machine, cls: ClassValue, members: Sequence[EnumMember], positional: Sequence[object]
) -> object:
    """Return the enumeration member with a value."""
    if len(positional) != 1:
        return machine.opaque(f"a call of `{cls.ref.name}`")
    for item in members:
        found = item == positional[0] or equal(machine, machine.attribute(item, "value"), positional[0])
        if isinstance(found, Opaque):
            return found
        if found:
            return item
    if isinstance(member(machine, cls, "_missing_"), Closure):
        return machine.opaque(f"a call of `{cls.ref.name}`")
    return machine.throw("ValueError")


def _object(machine: Machine, this: Object, positional: Sequence[object], keywords: Mapping[str, object]) -> object:
    method = machine.special(this, "__call__")
    if method is None and this.complete:
        machine.throw("TypeError", f"'{this.cls.ref.name}' object is not callable")
    if method is None or isinstance(method, Opaque):
        lost = machine.opaque(f"a call of an object of `{this.cls.ref.name}`")
        return unknown_call(machine, lost, (*positional, *keywords.values()))
    return machine.call(method, positional, keywords)


# Names outside the workspace

_NEVER_RAISE = frozenset({"isinstance", "callable", "hasattr", "bool", "str", "repr", "id", "type", "print"})
_ENDING = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})


def _readers(machine: Machine, name: str) -> tuple[ExternalFunction, ...]:
    """Return the dialect functions that compute calls of an external name."""
    found = machine.shared.readers.get(name)
    if found is None:
        asked = (dialect.functions(name) for dialect in machine.dialects)
        found = machine.shared.readers[name] = tuple(read for read in asked if read is not None)
    return found


def _outside(
    machine: Machine, function: ExternalName, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    for read in _readers(machine, function.name):
        found = read(Call(machine, tuple(positional), keywords))
        if found is not NOT_KNOWN:
            return found
    computed = BUILTINS.get(function.name) or STANDARD.get(function.name)
    if computed is not None:
        try:
            found = computed(machine, list(positional), dict(keywords))
        except UnknownElementsError as unknown:
            found = machine.opaque(unknown.reason)
        if isinstance(found, Opaque) and function.name not in _NEVER_RAISE:
            machine.may_raise(found.reason)
        return found if found is not NOT_KNOWN else unknown_call(machine, function, (*positional, *keywords.values()))
    if function.name in _ENDING:
        machine.throw("SystemExit")
    if machine.evaluator.is_transparent(function.name):
        return transparent(machine, list(positional), dict(keywords))
    if is_error_name(function.name):
        return made_error(machine, function.name, positional)
    return unknown_call(machine, function, (*positional, *keywords.values()))
