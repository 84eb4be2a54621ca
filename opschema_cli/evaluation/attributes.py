"""Attributes of values."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch

from opschema_cli.evaluation.enums import member_named
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.lookup import decorated
from opschema_cli.evaluation.mutations import changed_attribute
from opschema_cli.evaluation.reaching import bindings
from opschema_cli.evaluation.values import (
    NO_CALL,
    UNKNOWN,
    Arguments,
    BoundArgument,
    ClassValue,
    EnumMember,
    ExternalName,
    Frame,
    Func,
    Instance,
    Items,
    ModuleValue,
    PackValue,
    Partial,
    Plain,
    Table,
    Text,
    Unknown,
    Value,
    ValueMethod,
    Values,
    distinct,
)
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import ClassRef, FunctionRef, ValueRef
from opschema_cli.source.python import Expr, Function

_NAMES = ("__name__", "__qualname__")


@singledispatch
def attribute_of(value: object, evaluator: Evaluator, name: str) -> Values:
    """Return the possible values of an attribute."""
    return UNKNOWN


@attribute_of.register(ExternalName)
def _of_outside(value: ExternalName, evaluator: Evaluator, name: str) -> Values:
    return (evaluator.external(f"{value.name}.{name}"),)


@attribute_of.register(Text)
@attribute_of.register(Items)
@attribute_of.register(Table)
def _of_container(value: Text | Items | Table, evaluator: Evaluator, name: str) -> Values:
    return (ValueMethod(value, name),)


@attribute_of.register(EnumMember)
def _of_member(value: EnumMember, evaluator: Evaluator, name: str) -> Values:
    if name in ("value", "_value_"):
        return evaluator.values(value.argument)
    if name in ("name", "_name_"):
        return (Text(frozenset({value.name})),)
    return _of_either(Instance(value.ref), evaluator, name, below=False)


@attribute_of.register(Func)
def _of_function(value: Func, evaluator: Evaluator, name: str) -> Values:
    function = value.shown.body.function
    return (Text(frozenset({function.name})),) if name in _NAMES and function is not None else UNKNOWN


@attribute_of.register(ModuleValue)
def _of_module(value: ModuleValue, evaluator: Evaluator, name: str) -> Values:
    program, file = evaluator.program, evaluator.program.load(value.path)
    if file is None:
        return UNKNOWN
    found = evaluator.lookup(evaluator.frames.module(file), name)
    if isinstance(found[0], Unknown | ExternalName) and value.path.endswith("__init__.py"):
        inner = program.module_path(f"{program.module_name(value.path)}.{name}")
        if inner is not None and not bindings(file.body, name):
            return (ModuleValue(inner),)
    return found


@attribute_of.register(ClassValue)
def _of_class(value: ClassValue, evaluator: Evaluator, name: str) -> Values:
    if name in _NAMES:
        return (Text(frozenset({value.ref.name})),) if not value.below else UNKNOWN
    found = member_named(evaluator, value.ref, name)
    return (found,) if found is not None else _of_either(value, evaluator, name, value.below)


@attribute_of.register(Instance)
def _of_instance(value: Instance, evaluator: Evaluator, name: str) -> Values:
    if name == "__class__":
        return (ClassValue(value.ref, value.frame is None and not value.fields),)
    field = next((given for own, given in value.fields if own == name), None)
    if field is not None:
        written = _written(evaluator, value.ref, name, below=False)
        return distinct([*evaluator.values(field), *written])
    found = _of_either(value, evaluator, name, value.frame is None)
    if found or value.frame is None:
        return found or _set_by_methods(evaluator, value.ref, name)
    return _set_by_init(evaluator, value.frame, name) or _forwarded(evaluator, value, value.frame, name)


# Classes and their objects


def _of_either(value: ClassValue | Instance, evaluator: Evaluator, name: str, below: bool) -> Values:
    """Return the values that the class, or code outside it, assigns to the attribute; empty if there are none."""
    written, own = _written(evaluator, value.ref, name, below), _member(evaluator, value, name)
    if not written:
        return own
    return distinct([*written, *(item for item in own if item != Plain(None) and not isinstance(item, Unknown))])


def _written(evaluator: Evaluator, ref: ClassRef, name: str, below: bool) -> Values:
    """Return the values that code outside a class, or outside a subclass of it, assigns to the attribute."""
    program = evaluator.program
    refs = evaluator.bodies.family(ref) if below else program.lineage(ref)
    given = [item for owner in refs for item in evaluator.written.get((owner.key, name), ())]
    return distinct(_merged(value for item in given for value in evaluator.values(item)))


def _merged(values: Iterable[Value]) -> list[Value]:
    """Merge values of one origin, and put them after the others."""
    others: list[Value] = []
    made: list[PackValue] = []
    for value in values:
        if isinstance(value, PackValue):
            _merge_into(made, value)
        else:
            others.append(value)
    return [*others, *made]


def _merge_into(made: list[PackValue], value: PackValue) -> None:
    for index, first in enumerate(made):
        one = first.merged(value)
        if one is not None:
            made[index] = one
            return
    made.append(value)


def _member(evaluator: Evaluator, value: ClassValue | Instance, name: str) -> Values:
    """Return the values that the class defines for the attribute; empty if there are none."""
    member = evaluator.program.member(value.ref, name)
    if isinstance(member, FunctionRef):
        body = evaluator.bodies.function(member)
        return _method(evaluator, value, body) if body is not None else UNKNOWN
    if isinstance(member, ValueRef) and member.assign.value is not None:
        frame = _frame_of(evaluator, member)
        return tuple(changed_attribute(frame, name, item) for item in evaluator.evaluate(frame, member.assign.value))
    return () if member is None and isinstance(value, Instance) else UNKNOWN


def _frame_of(evaluator: Evaluator, member: ValueRef) -> Frame:
    """Return the frame that contains a class attribute's definition."""
    module = evaluator.frames.module(member.file)
    body = evaluator.bodies.cls(member.owner) if member.owner is not None else None
    return evaluator.frames.of_class(body, module) if body is not None else module


def _method(evaluator: Evaluator, value: ClassValue | Instance, body: Body) -> Values:
    """Bind a method to the class or object that it is read from."""
    frame, function = evaluator.frames.assumed(body.parent or body), body.function
    names = function.decorator_names if function is not None else []
    replaced = _replacements(evaluator, frame, function)
    if replaced or "staticmethod" in names or (isinstance(value, ClassValue) and "classmethod" not in names):
        return replaced or (Func(body, frame),)
    this = ClassValue(value.ref) if "classmethod" in names else value
    # A property is entered once for each object: as if from where the object was made.
    reader = value.frame or frame if isinstance(value, Instance) else frame
    bound = Partial(Func(body, frame), Arguments(reader, NO_CALL, (BoundArgument(frame, None, (this,)),)))
    is_property = function is not None and function.is_property
    return distinct(evaluator.apply(bound.target, bound.arguments)) if is_property else (bound,)


def _replacements(evaluator: Evaluator, frame: Frame, function: Function | None) -> Values:
    """Return the values with which decorators replace a method; empty for any other method."""
    found = decorated(evaluator, frame, function) if function is not None and function.decorators else ()
    return found if any(isinstance(item, PackValue) and item.replaces_methods for item in found) else ()


# Attributes of objects


def _set_by_init(evaluator: Evaluator, frame: Frame, name: str) -> Values:
    """Return the values that a call of ``__init__`` assigns to the attribute; empty if there are none."""
    return distinct(value for expr in _set_in(frame.body, name) for value in _valued(evaluator, frame, name, expr))


def _set_by_methods(evaluator: Evaluator, ref: ClassRef, name: str) -> Values:
    """Return the values that methods of a class, its bases or its subclasses assign to an object with an unknown construction."""
    owners = [item for item in evaluator.bodies.family(ref) if name in evaluator.program.instance_writes(item)]
    classes = filter(None, map(evaluator.bodies.cls, owners))
    inside = ((cls, body) for cls in classes for body in evaluator.bodies.inside(cls) if body.function is not None)
    found = ((body, expr) for cls, body in inside if body.owner == cls.owner for expr in _set_in(body, name))
    return (
        distinct(v for body, expr in found for v in _valued(evaluator, evaluator.frames.assumed(body), name, expr))
        or UNKNOWN
    )


def _set_in(body: Body, name: str) -> list[Expr | None]:
    """Return the values that a method assigns to an attribute of its object."""
    return [item.value for item in body.scope.assigns if body.this and item.target == f"{body.this}.{name}"]


def _valued(evaluator: Evaluator, frame: Frame, name: str, expr: Expr | None) -> Values:
    found = evaluator.evaluate(frame, expr) if expr is not None else UNKNOWN
    return tuple(changed_attribute(frame, name, value) for value in found)


def _forwarded(evaluator: Evaluator, value: Instance, frame: Frame, name: str) -> Values:
    """Return the attribute of the pack's value that an object forwards to, as an object with ``__getattr__`` does."""
    if not isinstance(evaluator.program.member(value.ref, "__getattr__"), FunctionRef):
        return UNKNOWN
    held = [item for given in frame.bindings.values() for item in evaluator.values(given)]
    known = [item for item in held if isinstance(item, PackValue)]
    return distinct(found for item in known for found in evaluator.attribute(item, name)) or UNKNOWN
