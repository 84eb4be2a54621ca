"""Comparisons of values: identity, equality, order and membership."""

from __future__ import annotations

import operator
from collections.abc import Callable

from opschema_cli.evaluation.execution.dataclass_fields import compared_fields
from opschema_cli.evaluation.execution.dialect import NOT_KNOWN
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.operations import is_set_of_known, special_method
from opschema_cli.evaluation.execution.plain import (
    CONTAINERS,
    NUMBERS,
    Identical,
    asked,
    first_opaque,
    is_hashable,
    is_plain,
    is_plain_enum,
    performed,
)
from opschema_cli.evaluation.execution.values import BoundMethod, Fixed, Object, Opaque, Record
from opschema_cli.evaluation.values import ClassValue, EnumMember, ExternalName

_ORDER: dict[str, Callable[..., object]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ORDER_METHODS = {
    "<": ("__lt__", "__gt__"),
    "<=": ("__le__", "__ge__"),
    ">": ("__gt__", "__lt__"),
    ">=": ("__ge__", "__le__"),
}


def compared(machine: Machine, word: str, left: object, right: object) -> object:
    """Return the result of a comparison."""
    if word in ("is", "is-not"):
        found: object = is_same(machine, left, right)
    elif word in ("in", "not-in"):
        found = contains(machine, right, left)
    elif word in ("==", "!="):
        return _equality(machine, word, left, right)
    else:
        found = _ordered(machine, word, left, right)
    if isinstance(found, Opaque) and word not in ("is", "is-not"):
        found = machine.opaque(found.reason)
    return negated(machine, found) if word in ("is-not", "not-in") else found


def negated(machine: Machine, found: object) -> object:
    """Return the negation of a result that may be opaque."""
    return machine.negation(found) if isinstance(found, Opaque) else not found


def _equality(machine: Machine, word: str, left: object, right: object) -> object:
    """Return the result of ``==`` or ``!=``; for tensors, a tensor."""
    found = asked(machine, word, (left, right)) if not is_ordinary(left) or not is_ordinary(right) else NOT_KNOWN
    if found is not NOT_KNOWN:
        return found
    if word == "!=" and isinstance(left, Object):
        method = special_method(machine, left, "__ne__")
        if method is not None:
            return machine.call(method, (right,), {})
    same = equal(machine, left, right)
    if isinstance(same, Opaque):
        same = machine.opaque(same.reason)
    return same if word == "==" else negated(machine, same)


BUILTIN_TYPES = frozenset(
    {"int", "float", "bool", "str", "tuple", "list", "dict", "set", "frozenset", "bytes", "complex"}
)


def is_ordinary(value: object) -> bool:
    """Whether a value is one of Python's own."""
    return isinstance(value, (*NUMBERS, str, type(None), range, bytes, slice, *CONTAINERS))


def is_same(machine: Machine, left: object, right: object) -> bool | Opaque:
    """Return the result of ``left is right``."""
    if left is right and not isinstance(left, Opaque):
        return True
    opaque = first_opaque((left, right))
    if opaque is not None:
        return machine.derived(opaque, "is None") if left is None or right is None else machine.opaque(opaque.reason)
    if isinstance(left, ExternalName) and isinstance(right, ExternalName):
        if left == right:
            return True
        differ = {left.name, right.name} <= BUILTIN_TYPES
        return False if differ else machine.opaque("two names outside the workspace may be the same object")
    if isinstance(left, ClassValue | EnumMember) or isinstance(right, ClassValue | EnumMember):
        return left == right
    if isinstance(left, Identical) and isinstance(right, Identical):
        return left == right
    if (
        type(left) is type(right)
        and isinstance(left, int | float | str | tuple | bytes | range)
        and not isinstance(left, bool)
    ):
        return False if left != right else machine.opaque("equal constants may be one object")
    if isinstance(left, BoundMethod) or isinstance(right, BoundMethod):
        return False
    if isinstance(left, ExternalName) or isinstance(right, ExternalName):
        return machine.opaque("a name outside the workspace")
    return False


def equal(machine: Machine, left: object, right: object) -> bool | Opaque:
    """Return the result of ``left == right`` if it is a boolean."""
    machine.spend(1)
    opaque = first_opaque((left, right))
    if opaque is not None:
        return True if left is right and isinstance(left, Fixed) else opaque
    if left is right and not isinstance(left, float | complex | ExternalName):
        return True
    if isinstance(left, Object) or isinstance(right, Object):
        return _equal_objects(machine, left, right)
    if isinstance(left, CONTAINERS) and isinstance(right, CONTAINERS):
        return _equal_containers(machine, left, right)
    if isinstance(left, BoundMethod) and isinstance(right, BoundMethod):
        return left.this is right.this and left.function is right.function
    if is_ordinary(left) and is_ordinary(right):
        return left == right
    return _equal_others(machine, left, right)


def matches(machine: Machine, left: object, right: object) -> bool | Opaque:
    """Whether a container treats two values as the same: they are identical or equal."""
    return True if left is right and not isinstance(left, Opaque) else equal(machine, left, right)


def _equal_others(machine: Machine, left: object, right: object) -> bool | Opaque:
    if isinstance(left, ExternalName) and isinstance(right, ExternalName):
        return is_same(machine, left, right)
    found = asked(machine, "==", (left, right))
    if isinstance(found, bool | Opaque):
        return found
    if isinstance(left, EnumMember) or isinstance(right, EnumMember):
        return _equal_members(machine, left, right)
    known = [isinstance(item, Identical) or is_ordinary(item) for item in (left, right)]
    plain = not isinstance(left, ExternalName) and not isinstance(right, ExternalName)
    if all(known) and plain:
        return type(left) is type(right) and left == right
    return machine.opaque("values that may be equal")


def _equal_members(machine: Machine, left: object, right: object) -> bool | Opaque:
    """Return whether two values are equal; one of them is an enumeration member."""
    if isinstance(left, EnumMember) and isinstance(right, EnumMember) and left == right:
        return True
    for item in (left, right):
        if isinstance(item, EnumMember) and not is_plain_enum(machine, item):
            return machine.opaque("a member of an enumeration that may equal other values")
    if isinstance(left, EnumMember) and isinstance(right, EnumMember) and left.ref == right.ref:
        same = equal(machine, machine.attribute(left, "value"), machine.attribute(right, "value"))
        return machine.opaque("two names of one member") if same is not False else False
    known = all(isinstance(item, Identical) or is_ordinary(item) for item in (left, right))
    return False if known else machine.opaque("values that may be equal")


def _equal_objects(machine: Machine, left: object, right: object) -> bool | Opaque:
    for value, other in ((left, right), (right, left)):
        fields = compared_fields(machine, value.cls.ref) if isinstance(value, Object) else None
        if fields is not None and isinstance(value, Object):
            if not isinstance(other, Object) or other.cls != value.cls:
                continue
            machine.spend(20)  # like finding the fields does
            names = [item.name for item in fields]
            return _all(equal(machine, *(machine.attribute(item, name) for item in (value, other))) for name in names)
        method = special_method(machine, value, "__eq__")
        if isinstance(method, Opaque):
            return method
        if method is not None:
            found = machine.call(method, (other,), {})
            if found is not NotImplemented:
                return found if isinstance(found, Opaque) else machine.truth(found)
    known = all(isinstance(item, Object) or _is_known(machine, item) for item in (left, right))
    return left is right if known else machine.opaque("an object that may be equal")


def _is_known(machine: Machine, value: object) -> bool:
    """Whether comparing a value with others has a known result."""
    plain = isinstance(value, Identical) and (not isinstance(value, EnumMember) or is_plain_enum(machine, value))
    return plain or is_ordinary(value)


def _equal_containers(machine: Machine, left: object, right: object) -> bool | Opaque:
    for item in (left, right):
        if id(item) in machine.tainted:
            return machine.opaque("a container whose contents are not known")
    if isinstance(left, Record) or isinstance(right, Record):
        left, right = (tuple(item) if isinstance(item, Record) else item for item in (left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return _equal_dictionaries(machine, left, right)
    if isinstance(left, tuple | list) and type(left) is type(right):
        if len(left) != len(right):
            return False
        return _all(matches(machine, *pair) for pair in zip(left, right, strict=True))
    if isinstance(left, set | frozenset) and isinstance(right, set | frozenset):
        known = all(is_set_of_known(machine, item) for item in (left, right))
        return left == right if known else machine.opaque("sets whose elements are not known")
    if type(left) is not type(right) and isinstance(left, tuple | list | dict | set | frozenset):
        return False if isinstance(right, tuple | list | dict | set | frozenset) else machine.opaque("containers")
    return left == right if is_plain(machine, left) and is_plain(machine, right) else machine.opaque("containers")


def _equal_dictionaries(machine: Machine, left: dict[object, object], right: dict[object, object]) -> bool | Opaque:
    if any(isinstance(is_hashable(machine, key), Opaque) for key in (*left, *right)):
        return machine.opaque("dictionaries whose keys are not known")
    if left.keys() != right.keys():
        return False
    return _all(matches(machine, value, right[key]) for key, value in left.items())


def _all(answers: object) -> bool | Opaque:
    """Whether all answers are true; opaque answers only count if none is false."""
    opaque: Opaque | None = None
    for item in answers:  # type: ignore[attr-defined]
        if isinstance(item, Opaque):
            opaque = opaque or item
        elif not item:
            return False
    return opaque if opaque is not None else True


def _ordered(machine: Machine, word: str, left: object, right: object) -> object:
    opaque = first_opaque((left, right))
    if opaque is not None:
        return opaque
    if is_plain(machine, left) and is_plain(machine, right):
        return performed(machine, lambda: _ORDER[word](left, right))
    found = asked(machine, word, (left, right))
    if found is not NOT_KNOWN:
        return found
    for value, other, name in ((left, right, _ORDER_METHODS[word][0]), (right, left, _ORDER_METHODS[word][1])):
        method = special_method(machine, value, name)
        if method is not None and not isinstance(method, Opaque):
            result = machine.call(method, (other,), {})
            if result is not NotImplemented:
                return result
    return machine.opaque(f"`{word}` of values that are not known")


def contains(machine: Machine, holder: object, item: object) -> bool | Opaque:
    """Return the result of ``item in holder``."""
    if isinstance(holder, Opaque):
        return holder
    if id(holder) in machine.tainted:
        return machine.opaque("a container whose contents are not known")
    if isinstance(holder, str | bytes):
        return item if isinstance(item, Opaque) else performed(machine, lambda: item in holder)  # type: ignore[operator]
    if isinstance(holder, dict | set | frozenset):
        return contains_key(machine, holder, item)
    if isinstance(holder, Object):
        method = special_method(machine, holder, "__contains__")
        if method is not None:
            found = machine.call(method, (item,), {})
            return found if isinstance(found, Opaque) else machine.truth(found)
    if isinstance(holder, range) and isinstance(item, int):
        return item in holder
    told = asked(machine, "in", (holder, item))
    if isinstance(told, bool | Opaque):
        return told
    return _among(machine, machine.iterate(holder), item)


def _among(machine: Machine, elements: object, item: object) -> bool | Opaque:
    opaque: Opaque | None = None
    for element in elements:  # type: ignore[attr-defined]
        machine.spend(1)
        found = matches(machine, element, item)
        if isinstance(found, Opaque):
            opaque = opaque or found
        elif found:
            return True
    return opaque if opaque is not None else False


def contains_key(
    machine: Machine, holder: dict[object, object] | set[object] | frozenset[object], key: object
) -> bool | Opaque:
    """Whether a dictionary or set has a key."""
    hashable = is_hashable(machine, key)
    if isinstance(hashable, Opaque):
        return hashable if holder else False
    if not hashable:
        machine.throw("TypeError", f"unhashable type: '{type(key).__name__}'")
    return key in holder
