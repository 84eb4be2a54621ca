"""Operators on values: arithmetic, comparisons, membership."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sized

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN
from opschema_cli.evaluation.execution.formats import percent_formatted
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.plain import (
    CONTAINERS,
    MUTABLE,
    NUMBERS,
    Identical,
    asked,
    first_opaque,
    is_hashable,
    is_plain,
    performed,
)
from opschema_cli.evaluation.execution.values import BoundMethod, Object, Opaque
from opschema_cli.evaluation.limits import MAX_BITS, MAX_CHARACTERS, MAX_ELEMENTS
from opschema_cli.evaluation.values import ClassValue, EnumMember, ExternalName

_BINARY: dict[str, Callable[..., object]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift, "@": operator.matmul,
}  # fmt: skip
_ORDER: dict[str, Callable[..., object]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_UNARY: dict[str, Callable[..., object]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}
_METHODS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "&": "and",
    "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift", "@": "matmul",
}  # fmt: skip
_ORDER_METHODS = {
    "<": ("__lt__", "__gt__"),
    "<=": ("__le__", "__ge__"),
    ">": ("__gt__", "__lt__"),
    ">=": ("__ge__", "__le__"),
}


# Arithmetic


def unary(machine: Machine, word: str, value: object) -> object:
    """``-value``, ``+value`` or ``~value``."""
    if isinstance(value, Opaque):
        return machine.opaque(value.reason)
    if isinstance(value, NUMBERS):
        return performed(machine, lambda: _UNARY[word](value))
    found = asked(machine, f"unary {word}", (value,))
    return found if found is not NOT_KNOWN else machine.opaque(f"`{word}` of a value that is not known")


def binary(machine: Machine, word: str, left: object, right: object) -> object:
    """The result of an arithmetic operator."""
    if isinstance(left, NUMBERS) and isinstance(right, NUMBERS):
        return _arithmetic(machine, word, left, right)
    opaque = first_opaque((left, right))
    if opaque is not None and not (word == "%" and isinstance(left, str)):
        return opaque
    found = asked(machine, word, (left, right))
    if found is not NOT_KNOWN:
        return found
    if isinstance(left, Object) or isinstance(right, Object):
        return _by_method(machine, word, left, right)
    return _of_others(machine, word, left, right)


def _arithmetic(machine: Machine, word: str, left: object, right: object) -> object:
    if word in ("*", "**", "<<") and isinstance(left, int) and isinstance(right, int):
        bits = {
            "*": left.bit_length() + right.bit_length(),
            "**": left.bit_length() * max(right, 0),
            "<<": left.bit_length() + max(right, 0),
        }[word]
        if bits > MAX_BITS:
            return machine.opaque("a large number")
    return performed(machine, lambda: _BINARY[word](left, right))


def _of_others(machine: Machine, word: str, left: object, right: object) -> object:
    """The result for containers and strings."""
    if word == "%" and isinstance(left, str):
        return percent_formatted(machine, left, right)
    known = [isinstance(item, (*CONTAINERS, *NUMBERS, str, bytes, type(None), range)) for item in (left, right)]
    if not all(known):
        return machine.opaque(f"`{word}` of values that are not known")
    size, is_text = _size(word, left, right), isinstance(left, str) or isinstance(right, str)
    if size > (MAX_CHARACTERS if is_text else MAX_ELEMENTS):
        machine.stop("a large container")
    machine.spend(size // (100 if is_text else 4))
    if word in ("|", "&", "-", "^") and not all(_is_set_of_known(machine, item) for item in (left, right)):
        return machine.opaque(f"`{word}` of sets whose elements are not known")
    return performed(machine, lambda: _BINARY[word](left, right))


def _is_set_of_known(machine: Machine, value: object) -> bool:
    elements = value if isinstance(value, set | frozenset | dict) else ()
    return not any(isinstance(is_hashable(machine, item), Opaque) for item in elements)


def _size(word: str, left: object, right: object) -> int:
    """The number of elements that an operator makes at most."""
    sizes = [len(item) if isinstance(item, Sized) else 1 for item in (left, right)]
    if word == "*":
        count = right if isinstance(right, int) else left
        return max(sizes) * max(count, 0) if isinstance(count, int) else 0
    return sum(sizes)


def _by_method(machine: Machine, word: str, left: object, right: object) -> object:
    """The result of a method such as ``__add__``."""
    for value, other, prefix in ((left, right, "__"), (right, left, "__r")):
        method = special_method(machine, value, f"{prefix}{_METHODS[word]}__")
        if isinstance(method, Opaque):
            return method
        if method is not None:
            found = machine.call(method, (other,), {})
            if found is not NotImplemented:
                return found
    return machine.opaque(f"`{word}` of objects")


def special_method(machine: Machine, value: object, name: str) -> object:
    """A method that Python calls by itself, bound to a value; None where the class has none."""
    return machine.special(value, name) if isinstance(value, Object) else None


def augmented(machine: Machine, word: str, left: object, right: object) -> object:
    """The result of ``left += right`` and the like, which changes lists, dictionaries and sets in place."""
    if isinstance(left, MUTABLE):
        machine.changes(left)
    if isinstance(left, MUTABLE) and (isinstance(right, Opaque) or id(left) in machine.tainted):
        machine.taint(left)
        return left
    if isinstance(left, list) and word == "+":
        elements = list(machine.iterate(right))
        machine.spend(len(elements))
        left.extend(elements)
        return left
    if isinstance(left, Object):
        method = special_method(machine, left, f"__i{_METHODS[word]}__")
        if method is not None:
            return machine.call(method, (right,), {})
    found = binary(machine, word, left, right)
    if isinstance(left, list) and isinstance(found, list):
        left[:] = found
        return left
    if isinstance(left, dict) and isinstance(found, dict):
        left.clear()
        left.update(found)
        return left
    if isinstance(left, set) and isinstance(found, set):
        left.clear()
        left.update(found)
        return left
    return found


# Comparisons


def compared(machine: Machine, word: str, left: object, right: object) -> object:
    """The result of a comparison."""
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
    """``not`` of an answer that may be opaque."""
    return machine.negation(found) if isinstance(found, Opaque) else not found


def _equality(machine: Machine, word: str, left: object, right: object) -> object:
    """The answer for ``==`` or ``!=``; that of tensors is a tensor."""
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


def is_ordinary(value: object) -> bool:
    """Whether a value is one of Python's own."""
    return isinstance(value, (*NUMBERS, str, type(None), *CONTAINERS))


def is_same(machine: Machine, left: object, right: object) -> bool | Opaque:
    """The answer for ``left is right``."""
    if left is right and not isinstance(left, Opaque):
        return True
    opaque = first_opaque((left, right))
    if opaque is not None:
        return machine.derived(opaque, "is None") if left is None or right is None else machine.opaque(opaque.reason)
    if isinstance(left, ExternalName) and isinstance(right, ExternalName):
        return True if left == right else machine.opaque("two names outside the workspace may be the same object")
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
        other = right if isinstance(left, ExternalName) else left
        return False if other is None or is_ordinary(other) else machine.opaque("a name outside the workspace")
    return False


def equal(machine: Machine, left: object, right: object) -> bool | Opaque:
    """The answer for ``left == right`` where it is a boolean."""
    machine.spend(1)
    opaque = first_opaque((left, right))
    if opaque is not None:
        return opaque
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


def _equal_others(machine: Machine, left: object, right: object) -> bool | Opaque:
    if isinstance(left, ExternalName) and left == right:
        return True
    found = asked(machine, "==", (left, right))
    if isinstance(found, bool | Opaque):
        return found
    known = [isinstance(item, Identical) or is_ordinary(item) for item in (left, right)]
    plain = not isinstance(left, ExternalName) and not isinstance(right, ExternalName)
    if all(known) and plain:
        return type(left) is type(right) and left == right
    if isinstance(left, ExternalName | None) and isinstance(right, ExternalName | None):
        return machine.opaque("two names outside the workspace may be equal") if left and right else False
    if type(left) is type(right) and isinstance(left, range | slice | bytes):
        return left == right
    return machine.opaque("values that may be equal")


def _equal_objects(machine: Machine, left: object, right: object) -> bool | Opaque:
    for value, other in ((left, right), (right, left)):
        method = special_method(machine, value, "__eq__")
        if isinstance(method, Opaque):
            return method
        if method is not None:
            found = machine.call(method, (other,), {})
            if found is not NotImplemented:
                return found if isinstance(found, Opaque) else machine.truth(found)
    known = all(isinstance(item, Object) or is_ordinary(item) for item in (left, right))
    return left is right if known else machine.opaque("an object that may be equal")


def _equal_containers(machine: Machine, left: object, right: object) -> bool | Opaque:
    for item in (left, right):
        if id(item) in machine.tainted:
            return machine.opaque("a container whose contents are not known")
    if isinstance(left, dict) and isinstance(right, dict):
        return _equal_dictionaries(machine, left, right)
    if isinstance(left, tuple | list) and type(left) is type(right):
        if len(left) != len(right):
            return False
        return _all(equal(machine, *pair) for pair in zip(left, right, strict=True))
    if isinstance(left, set | frozenset) and isinstance(right, set | frozenset):
        known = all(_is_set_of_known(machine, item) for item in (left, right))
        return left == right if known else machine.opaque("sets whose elements are not known")
    if type(left) is not type(right) and isinstance(left, tuple | list | dict | set | frozenset):
        return False if isinstance(right, tuple | list | dict | set | frozenset) else machine.opaque("containers")
    return left == right if is_plain(machine, left) and is_plain(machine, right) else machine.opaque("containers")


def _equal_dictionaries(machine: Machine, left: dict[object, object], right: dict[object, object]) -> bool | Opaque:
    if any(isinstance(is_hashable(machine, key), Opaque) for key in (*left, *right)):
        return machine.opaque("dictionaries whose keys are not known")
    if left.keys() != right.keys():
        return False
    return _all(equal(machine, value, right[key]) for key, value in left.items())


def _all(answers: object) -> bool | Opaque:
    """Whether all answers are true; opaque ones only count where none is false."""
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
    """The answer for ``item in holder``."""
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
    return _among(machine, machine.iterate(holder), item)


def _among(machine: Machine, elements: object, item: object) -> bool | Opaque:
    opaque: Opaque | None = None
    for element in elements:  # type: ignore[attr-defined]
        machine.spend(1)
        found: object = True if element is item and not isinstance(item, Opaque) else equal(machine, element, item)
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
