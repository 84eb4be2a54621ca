"""Objects of classes of the workspace: making them, and reading and writing their attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opschema_cli.evaluation.execution.classes import (
    ABSENT,
    KNOWN_DECORATORS,
    bound_to_class,
    is_complete,
    is_field,
    kinds_of,
    member,
    outside_bases,
    setters_of,
)
from opschema_cli.evaluation.execution.dataclass_fields import initialised, is_dataclass
from opschema_cli.evaluation.execution.dialect import Call
from opschema_cli.evaluation.execution.error_names import ERRORS
from opschema_cli.evaluation.execution.machine import Machine, cached_by_class
from opschema_cli.evaluation.execution.names import is_frozen, lasting, module_scope
from opschema_cli.evaluation.execution.values import (
    BoundMethod,
    Closure,
    Environment,
    Native,
    Object,
    Opaque,
    PropertyValue,
    Record,
    SuperValue,
)
from opschema_cli.evaluation.values import ClassValue, EnumMember
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import ClassRef, External


def constructed(
    machine: Machine, cls: ClassValue, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    """Return the object that a call of a class creates."""
    if is_replaced(machine, cls):
        return machine.opaque(f"an object of `{cls.ref.name}`, which is decorated")
    new = member(machine, cls, "__new__")
    if isinstance(new, Closure) or (cls.ref.cls.metaclass is not None and not is_plain_type(machine, cls)):
        return machine.opaque(f"an object of `{cls.ref.name}`, which makes its objects in a way of its own")
    this = Object(cls, {}, is_complete(machine, cls.ref))
    generated = _generating(machine, cls)
    if generated is not None:
        initialised(machine, this, generated, positional, keywords)
        return this
    init = member(machine, cls, "__init__")
    if isinstance(init, Closure):
        machine.call(init, (this, *positional), keywords)
    elif isinstance(init, Opaque):
        if set(outside_bases(machine, cls)) <= ERRORS:
            this.attributes["args"] = tuple(positional)
            return this
        return _made_outside(machine, this)
    elif positional or keywords:
        machine.throw("TypeError", f"{cls.ref.name}() takes no arguments")
    return this


def held(machine: Machine, scope: Environment, expr: Expr) -> object:
    """Return the value of an expression assigned to a module's name. An object of a class with an ``__init__`` is not created:
    other code may have changed its attributes, so only its class is known.
    """
    if expr.callee:
        cls = machine.evaluate(scope, expr.items[0])
        if isinstance(cls, ClassValue) and _is_made_by_init(machine, cls) and not is_frozen(machine, cls.ref):
            return Object(cls, {}, complete=False, lasting=True)
    return lasting(machine, machine.evaluate(scope, expr))


def _is_made_by_init(machine: Machine, cls: ClassValue) -> bool:
    """Whether an ``__init__`` of the workspace initializes the objects of a class."""
    if machine.evaluator.members(cls.ref) or is_replaced(machine, cls) or not is_plain_type(machine, cls):
        return False
    if "typing.NamedTuple" in outside_bases(machine, cls) or isinstance(member(machine, cls, "__new__"), Closure):
        return False
    return isinstance(member(machine, cls, "__init__"), Closure)


def is_replaced(machine: Machine, cls: ClassValue) -> bool:
    """Whether a decorator may replace a class."""
    ref = cls.ref
    if not ref.cls.decorators:
        return False
    if ref.key not in machine.shared.decorated:
        machine.shared.decorated[ref.key] = True
        machine.shared.decorated[ref.key] = not all(_returns_class(machine, cls, item) for item in ref.cls.decorators)
    return machine.shared.decorated[ref.key]


def _returns_class(machine: Machine, cls: ClassValue, decorator: Expr) -> bool:
    found = machine.evaluator.program.resolve(cls.ref.file, decorator.callee or decorator.text)
    if isinstance(found, External):
        return found.name in KNOWN_DECORATORS or machine.evaluator.is_transparent(found.name)
    value = machine.evaluate(module_scope(machine, cls.ref.file), decorator)
    return machine.call(value, (cls,), {}) == cls


def is_plain_type(machine: Machine, cls: ClassValue) -> bool:
    """Whether the metaclass of a class creates its objects as ``type`` does."""
    return machine.evaluator.program.has_plain_metaclass(cls.ref)


def _generating(machine: Machine, cls: ClassValue, behind: ClassValue | None = None) -> ClassRef | None:
    """Return the dataclass whose generated ``__init__`` initializes the objects of a class; None if a written one does.

    ``behind`` begins the search behind a class in the order.
    """
    lineage = machine.evaluator.program.lineage(cls.ref)
    start = lineage.index(behind.ref) + 1 if behind is not None and behind.ref in lineage else 0
    for ref in lineage[start:]:
        if ref.cls.body.function("__init__") is not None:
            return None
        if is_dataclass(machine, ref):
            return ref
    return None


def _made_outside(machine: Machine, this: Object) -> object:
    """Return an object that a class outside the workspace initializes."""
    bases = outside_bases(machine, this.cls)
    if {"?"} & set(bases) or set(bases) & {"tuple", "int", "str", "float", "dict", "list", "typing.NamedTuple"}:
        return machine.opaque(f"an object of `{this.cls.ref.name}`")
    return this


# Reading


def object_attribute(machine: Machine, this: Object, name: str) -> object:
    """Return an attribute of an object."""
    if name == "__class__":
        return this.cls
    if _has_own_lookup(machine, this.cls.ref):
        return machine.opaque(f"the attribute `{name}`, which `__getattribute__` gives")
    if name == "__dict__":
        return this.attributes if this.complete else _unknown_attributes(machine, this)
    found = member(machine, this.cls, name)
    if this.lasting and name not in this.attributes and not isinstance(found, Closure):
        return machine.opaque(f"the attribute `{name}` of an object that a module holds")
    if isinstance(found, PropertyValue) or (isinstance(found, Closure) and "property" in kinds_of(machine, found)):
        return bound(machine, this, found, name)
    if name in this.attributes:
        return this.attributes[name]
    if found is ABSENT or isinstance(found, Opaque):
        return _fallback(machine, this, name, found)
    if not isinstance(found, Closure) and is_field(machine, this.cls, name) and not is_complete(machine, this.cls.ref):
        return machine.opaque(f"the attribute `{name}`, which a base of `{this.cls.ref.name}` may set")
    return bound(machine, this, found, name)


def _unknown_attributes(machine: Machine, this: Object) -> Opaque:
    """Return ``__dict__`` of an object that may have further attributes: code that reads it may write any of them."""
    machine.changes(this.attributes)
    found = machine.opaque("the attributes of an object")
    this.attributes.update(dict.fromkeys(this.attributes, found))
    return found


@cached_by_class
def _has_own_lookup(machine: Machine, ref: ClassRef) -> bool:
    """Whether a method of a class returns all attributes of its objects."""
    return isinstance(member(machine, ClassValue(ref), "__getattribute__"), Closure)


def is_managed(machine: Machine, this: Object, name: str) -> bool:
    """Whether a property or another descriptor of a class manages an attribute of its objects."""
    found = member(machine, this.cls, name)
    if isinstance(found, Closure):
        return "property" in kinds_of(machine, found)
    if isinstance(found, Object):
        return any(machine.special(found, method) is not None for method in ("__set__", "__delete__"))
    return isinstance(found, PropertyValue)


def bound(machine: Machine, this: Object | EnumMember | Record, found: object, name: str) -> object:
    """Return the value of a class member read from an object."""
    if isinstance(found, PropertyValue):
        return machine.call(found.getter, (this,), {})
    if isinstance(found, Object) and machine.special(found, "__get__") is not None:
        return machine.opaque(f"the attribute `{name}`, which a descriptor gives")
    if not isinstance(found, Closure):
        return found
    kinds = kinds_of(machine, found)
    if "cached" in kinds:
        value = machine.call(found, (this,), {})
        if isinstance(this, Object):
            this.attributes[name] = value
        return value
    if "property" in kinds:
        return machine.call(found, (this,), {})
    if "static" in kinds or found.static:
        return found
    if "class" in kinds:
        owner = ClassValue(this.ref) if isinstance(this, EnumMember) else this.cls
        return bound_to_class(machine, owner, found) if isinstance(owner, ClassValue) else found
    return BoundMethod(found, this)


def _fallback(machine: Machine, this: Object, name: str, found: object) -> object:
    hook = member(machine, this.cls, "__getattr__") if not name.startswith("__") else ABSENT
    if isinstance(hook, Closure) and found is ABSENT and this.complete:
        return machine.call(hook, (this, name), {})
    if isinstance(found, Opaque):
        return found
    if name == "__setattr__":
        return _attribute_writer(machine, this)
    if not this.complete or name.startswith("__"):
        return machine.opaque(f"the attribute `{name}` of an object of `{this.cls.ref.name}`")
    return machine.throw("AttributeError", f"'{this.cls.ref.name}' object has no attribute '{name}'")


def _attribute_writer(machine: Machine, this: Object) -> Native:
    """Return ``__setattr__`` of ``object`` for an object."""

    def write(call: Call) -> object:
        if len(call.positional) != 2 or not isinstance(call.positional[0], str):
            machine.stop("an attribute whose name is not known is set")
        this.attributes[call.positional[0]] = machine.written(call.positional[1])
        return None

    return Native("__setattr__", write)


def super_attribute(machine: Machine, value: SuperValue, name: str) -> object:
    """Return an attribute of ``super()``."""
    this = value.this
    cls = this if isinstance(this, ClassValue) else this.cls if isinstance(this, Object) else None
    if cls is None:
        return machine.opaque("`super()` of a value that is not known")
    found = member(machine, cls, name, value.owner)
    if name == "__init__" and isinstance(this, Object) and not isinstance(found, Closure):
        generated = _generating(machine, cls, behind=value.owner)
        if generated is not None:
            return Native(name, lambda call: initialised(machine, this, generated, call.positional, call.keywords))
    if found is ABSENT and name == "__setattr__" and isinstance(this, Object):
        return _attribute_writer(machine, this)
    if found is ABSENT:
        return machine.opaque(f"`super().{name}`")
    if isinstance(this, ClassValue):
        return bound_to_class(machine, cls, found)
    return bound(machine, this, found, name) if isinstance(this, Object) else found


# Writing


def set_attribute(machine: Machine, this: Object, name: str, value: object) -> None:
    """Assign to an attribute of an object, through a property or ``__setattr__`` if its class has one."""
    hook = member(machine, this.cls, "__setattr__")
    if isinstance(hook, Closure):
        machine.call(hook, (this, name, value), {})
        return
    setter = setters_of(machine, this.cls).get(name)
    if setter is not None:
        machine.call(Closure(setter), (this, value), {})
        return
    if is_managed(machine, this, name):
        _set_managed(machine, this, name, value)
        return
    if is_frozen(machine, this.cls.ref):
        machine.throw("dataclasses.FrozenInstanceError", f"cannot assign to field {name!r}")
    this.attributes[name] = value


def _set_managed(machine: Machine, this: Object, name: str, value: object) -> None:
    found = member(machine, this.cls, name)
    if isinstance(found, PropertyValue) and found.setter is not None:
        machine.call(found.setter, (this, value), {})
    elif isinstance(found, Object):
        this.complete = False  # the descriptor may write further attributes
        this.attributes.pop(name, None)
    else:
        machine.throw("AttributeError", f"can't set attribute {name!r}")
