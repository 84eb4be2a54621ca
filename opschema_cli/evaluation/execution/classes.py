"""Classes of the workspace: their attributes in resolution order, and what is known of the classes they inherit from."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.changes import changes_in
from opschema_cli.evaluation.enums import member_named
from opschema_cli.evaluation.execution.machine import FoundMember, Machine, cached_by_class
from opschema_cli.evaluation.execution.names import decorated, lasting
from opschema_cli.evaluation.execution.values import (
    BoundMethod,
    Closure,
    Environment,
    Names,
    Opaque,
)
from opschema_cli.evaluation.values import ClassValue, ExternalName
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Class, Expr
from opschema_cli.source.resolution import HARMLESS_BASES, ClassRef, External, FunctionRef, Unresolved, ValueRef

ABSENT = object()
"""The result for an attribute that no class has."""

KNOWN_DECORATORS = frozenset(
    {"dataclasses.dataclass", "typing.final", "functools.total_ordering", "typing.runtime_checkable", "enum.unique"}
)


_NAMESPACES = frozenset({"exec", "locals", "vars"})
"""Functions with which a class body may bind any name."""


def order(machine: Machine, cls: ClassValue) -> list[ClassRef | External] | Unresolved:
    """Return the method resolution order of a class."""
    return machine.evaluator.program.mro(cls.ref)


@cached_by_class
def is_complete(machine: Machine, ref: ClassRef) -> bool:
    """Whether all attributes of a class are known: it has no base outside the workspace, and no decorator adds attributes."""
    found = machine.evaluator.program.mro(ref)
    if isinstance(found, Unresolved):
        return False
    outside = [item.name for item in found if isinstance(item, External)]
    inside = [item for item in found if isinstance(item, ClassRef)]
    program = machine.evaluator.program
    plain = all(program.has_plain_metaclass(item) and not _decorated(machine, item) for item in inside)
    plain = plain and not any(call.callee in _NAMESPACES for item in inside for call in item.cls.body.calls)
    return plain and not set(outside) - HARMLESS_BASES


def _decorated(machine: Machine, ref: ClassRef) -> bool:
    """Whether a decorator of a class is unknown."""
    names = (machine.evaluator.program.resolve(ref.file, item.callee or item.text) for item in ref.cls.decorators)
    return any(not isinstance(item, External) or item.name not in KNOWN_DECORATORS for item in names)


def outside_bases(machine: Machine, cls: ClassValue) -> list[str]:
    """Return the names of the external classes that a class inherits from."""
    found = order(machine, cls)
    return [item.name for item in found if isinstance(item, External)] if not isinstance(found, Unresolved) else ["?"]


# Members


def member(machine: Machine, cls: ClassValue, name: str, behind: ClassValue | None = None) -> object:
    """Return an attribute of a class as defined in its body: a function is a :class:`Closure`, a property a marked one.

    ``behind`` begins the search behind a class in the order, as ``super`` does. :data:`ABSENT` when no class has it; opaque
    when a class outside the workspace may have it.
    """
    key = (cls.ref.key, name, behind.ref.key if behind is not None else None)
    known = machine.shared.members.get(key)
    if known is None:
        known = machine.shared.members[key] = _found_member(machine, cls, name, behind)
    if machine.class_attributes:
        for ref in known.searched:
            if (ref.key, name) in machine.class_attributes:
                return machine.class_attributes[ref.key, name]
    if known.reason:
        return machine.opaque(known.reason)
    return _value(machine, known.searched[-1], known.found, name) if known.found is not None else ABSENT


def _found_member(machine: Machine, cls: ClassValue, name: str, behind: ClassValue | None) -> FoundMember:
    """Return where the tree defines an attribute of a class."""
    program = machine.evaluator.program
    searched: list[ClassRef] = []
    found: FunctionRef | ValueRef | ClassRef | None = None
    for ref in _searched(machine, cls, behind):
        if isinstance(ref, Opaque):
            return FoundMember(tuple(searched), None, ref.reason)
        searched.append(ref)
        own = program.own_member(ref, name)
        if isinstance(own, Unresolved):
            return FoundMember(tuple(searched), None, own.reason)
        if isinstance(own, ValueRef) and isinstance(program.mro(ref), Unresolved):
            return FoundMember(
                tuple(searched), None, f"a base of `{ref.name}`, which is not known, may change `{name}`"
            )
        if isinstance(own, ValueRef) and _is_written(ref, name):
            return FoundMember(tuple(searched), None, f"functions change `{ref.name}.{name}`")
        if own is None and ref.cls.body.named.get(name):
            found = _nested(ref, name)
            if found is None:
                return FoundMember(tuple(searched), None, f"`{ref.name}.{name}` is not followed")
            break
        if own is not None and not _is_sure(own):
            return FoundMember(tuple(searched), None, f"`{ref.name}.{name}` is bound under a condition")
        if own is not None:
            found = own
            break
    reason = program.patches.patched(cls.ref, name, searched)
    return FoundMember(tuple(searched), found, reason.reason if reason is not None else "")


def is_field(machine: Machine, cls: ClassValue, name: str) -> bool:
    """Whether a class gives an attribute a default and an annotation, as records do."""
    known = machine.shared.members.get((cls.ref.key, name, None))
    found = known.found if known is not None else None
    annotation = found.assign.annotation if isinstance(found, ValueRef) else None
    return annotation is not None and "ClassVar" not in annotation.text + "".join(
        item.text for item in annotation.items
    )


def _is_written(ref: ClassRef, name: str) -> bool:
    """Whether a function in a class's file assigns to an attribute of the class."""
    if any(f"{ref.name}.{name}" in item.written for item in ref.file.body.functions):
        return True
    methods = [item for item in ref.cls.body.functions if item.params]
    return any(
        f"{ref.name}.{name}" in item.written
        or ("classmethod" in item.decorator_names and f"{item.params[0].name}.{name}" in item.written)
        for item in methods
    )


def _nested(ref: ClassRef, name: str) -> ClassRef | None:
    """Return the nested class that a class's body defines under a name."""
    found = ref.cls.body.named.get(name, [])
    inner = [item for item in found if isinstance(item, Class) and not item.decorators]
    return ClassRef(ref.file, inner[0]) if len(found) == len(inner) == 1 else None


def _is_sure(found: FunctionRef | ValueRef) -> bool:
    return found.function.sure if isinstance(found, FunctionRef) else found.assign.sure


def _searched(machine: Machine, cls: ClassValue, behind: ClassValue | None) -> Iterator[ClassRef | Opaque]:
    found = order(machine, cls)
    if isinstance(found, Unresolved):
        if behind is None:
            yield cls.ref
        yield machine.opaque(found.reason)
        return
    skipping = behind is not None
    for item in found:
        if isinstance(item, External):
            if item.name not in HARMLESS_BASES and not skipping:
                yield machine.opaque(f"an attribute of `{item.name}`")
        elif not skipping:
            yield item
        if behind is not None and item == behind.ref:
            skipping = False


def _value(machine: Machine, owner: ClassRef, found: FunctionRef | ValueRef | ClassRef, name: str) -> object:
    """Return the value of a class attribute, the same object for all reads."""
    if isinstance(found, ClassRef):
        return ClassValue(found)
    key = (owner.key, name)
    if key not in machine.class_values:
        value = _assigned(machine, owner, found) if isinstance(found, ValueRef) else method_value(machine, found, owner)
        machine.class_values[key] = value
    return machine.class_values[key]


def _assigned(machine: Machine, owner: ClassRef, found: ValueRef) -> object:
    """Return the value of an assigned class attribute."""
    if found.assign.value is None:
        return machine.opaque(f"`{owner.name}.{found.assign.target}` is not known")
    value = machine.evaluate(class_scope(machine, found.owner or owner, found), found.assign.value)
    if isinstance(value, list | dict | set) and is_changed(owner, found.assign.target):
        return machine.opaque(f"code changes `{owner.name}.{found.assign.target}`")
    return lasting(machine, value)


def is_changed(owner: ClassRef, name: str) -> bool:
    """Whether a class's file changes a container in one of its attributes."""
    return name in changes_in(owner.file).attributes


def class_scope(machine: Machine, owner: ClassRef, found: ValueRef | None = None) -> Environment:
    """Return a scope for the expressions of a class body: other names of the body, then those of the module."""
    bodies = machine.evaluator.bodies
    inside = found is None or any(item is found.assign for item in owner.cls.body.assigns)
    body = bodies.cls(owner) if inside else None
    names = frozenset(owner.cls.body.named) if body is not None else frozenset[str]()
    return Environment(body or bodies.module(found.file if found is not None else owner.file), {}, Names(names))


def in_class(machine: Machine, scope: Environment, name: str) -> object:
    """Return the value of a name read in a class body."""
    owner = scope.body.owner
    if owner is None:
        return machine.opaque(f"`{name}` is not bound")
    found = member(machine, ClassValue(owner), name)
    return machine.opaque(f"`{name}` is not bound") if found is ABSENT else found


# Methods


def method_value(machine: Machine, found: FunctionRef, owner: ClassRef) -> object:
    """Return a method as defined in its class, with its decorators applied; a property stays a function."""
    body = machine.evaluator.bodies.function(found)
    if body is None:
        return machine.opaque(f"`{owner.name}.{found.function.name}` is not found")
    function, plain = found.function, machine.shared.plain_methods
    if body not in plain:
        plain[body] = all(kind_of(machine, found, item) for item in function.decorators)
    if plain[body]:
        return Closure(body)
    return decorated(machine, class_scope(machine, owner), Closure(body))


_KINDS = {
    "property": "property",
    "functools.cached_property": "cached",
    "staticmethod": "static",
    "classmethod": "class",
    "abc.abstractmethod": "plain",
    "typing.override": "plain",
    "typing_extensions.override": "plain",
    "typing.final": "plain",
}


def kind_of(machine: Machine, found: FunctionRef, decorator: Expr) -> str:
    """Return the kind of method that a decorator makes; empty for any other decorator."""
    if decorator.kind != "name":
        return ""
    resolved = machine.evaluator.program.resolve(found.file, decorator.text)
    return _KINDS.get(resolved.name, "") if isinstance(resolved, External) else ""


def kinds_of(machine: Machine, function: Closure) -> frozenset[str]:
    """Return the kinds of method that the decorators of a function make."""
    body, definition = function.body, function.body.function
    if definition is None or not definition.decorators or function.around is not None:
        return frozenset()
    if body not in machine.shared.kinds:
        ref = FunctionRef(body.file, definition)
        machine.shared.kinds[body] = frozenset(kind_of(machine, ref, item) for item in definition.decorators)
    return machine.shared.kinds[body]


def setters_of(machine: Machine, cls: ClassValue) -> dict[str, Body]:
    """Return the setters of a class's properties, by name."""
    key = cls.ref.key
    if key not in machine.shared.setters:
        found: dict[str, Body] = {}
        for ref in reversed(machine.evaluator.program.lineage(cls.ref)):
            found = {name: body for name, body in found.items() if not ref.cls.body.named.get(name)}
            found.update(_own_setters(machine, ref))
        machine.shared.setters[key] = found
    return machine.shared.setters[key]


def _own_setters(machine: Machine, ref: ClassRef) -> Iterator[tuple[str, Body]]:
    for item in ref.cls.body.functions:
        body = machine.evaluator.bodies.function(FunctionRef(ref.file, item, ref)) if item.decorators else None
        if body is not None and f"{item.name}.setter" in item.decorator_names:
            yield item.name, body


# Reading from a class


def class_attribute(machine: Machine, cls: ClassValue, name: str) -> object:
    """Return an attribute that is read from a class."""
    ref = cls.ref
    if name in ("__name__", "__qualname__") and not cls.below:
        return ref.name
    if name == "__module__":
        return machine.evaluator.program.module_name(ref.file.path)
    if name == "__mro__":
        return _mro(machine, cls)
    of_enum = member_named(machine.evaluator, ref, name)
    if of_enum is not None:
        return of_enum
    found = member(machine, cls, name)
    if found is ABSENT:
        return _missing(machine, cls, name)
    return bound_to_class(machine, cls, found)


_ABOVE_ALL = "object"
_WITHOUT_BASES = frozenset({_ABOVE_ALL, "abc.ABC", "typing.Generic"})
"""Classes outside the workspace whose only base is ``object``."""


def _mro(machine: Machine, cls: ClassValue) -> object:
    found = order(machine, cls)
    if isinstance(found, Unresolved) or any(
        isinstance(item, External) and item.name not in _WITHOUT_BASES for item in found
    ):
        return machine.opaque("the order of classes outside the workspace")
    inside = [item for item in found if isinstance(item, ClassRef)]
    if not is_complete(machine, cls.ref) or any(map(_has_type_parameters, inside)):
        return machine.opaque("a metaclass, a decorator or type parameters may add classes")
    below = (item for item in found if not isinstance(item, External) or item.name != _ABOVE_ALL)
    made = (ExternalName(item.name) if isinstance(item, External) else ClassValue(item) for item in below)
    return (*made, ExternalName(_ABOVE_ALL))


def _has_type_parameters(ref: ClassRef) -> bool:
    """Whether a class is declared as ``class C[T]``, which adds ``typing.Generic`` to its bases."""
    return ref.file.source.text[ref.cls.end : ref.cls.end + 8].lstrip().startswith("[")


def bound_to_class(machine: Machine, cls: ClassValue, found: object) -> object:
    """Return the value of a member read from a class."""
    if isinstance(found, Closure):
        kinds = kinds_of(machine, found)
        if "class" in kinds or is_implicit_class_method(found):
            return BoundMethod(found, cls)
        if kinds & {"property", "cached"}:
            return machine.opaque("a property that is read from its class")
    return found


def is_implicit_class_method(function: Closure) -> bool:
    """Whether Python turns a method into a class method because of its name."""
    definition = function.body.function
    return definition is not None and definition.name in ("__init_subclass__", "__class_getitem__")


def _missing(machine: Machine, cls: ClassValue, name: str) -> object:
    if name.startswith("__") or name == "mro" or not is_complete(machine, cls.ref):  # each class has a method `mro`
        return machine.opaque(f"`{cls.ref.name}.{name}` is not known")
    return machine.throw("AttributeError", f"type object '{cls.ref.name}' has no attribute '{name}'")


def is_subclass(machine: Machine, cls: ClassValue, other: object) -> bool | Opaque:
    """Whether a class is another one or inherits from it."""
    found = order(machine, cls)
    if isinstance(found, Unresolved):
        return True if other == cls else machine.opaque(found.reason)
    if isinstance(other, ClassValue):
        return other.ref in found
    name = getattr(other, "name", "")
    outside = {item.name for item in found if isinstance(item, External)}
    if name == "object" or name in outside:
        return True
    return machine.opaque("a class outside the workspace") if outside - HARMLESS_BASES else False
