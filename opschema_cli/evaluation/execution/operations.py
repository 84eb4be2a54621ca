"""Operators on values: arithmetic, and concatenation of strings and containers."""

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
    asked,
    first_opaque,
    is_hashable,
    performed,
)
from opschema_cli.evaluation.execution.values import Object, Opaque, TensorValue, UnionValue
from opschema_cli.evaluation.limits import MAX_BITS, MAX_CHARACTERS, MAX_ELEMENTS
from opschema_cli.evaluation.values import ClassValue, ExternalName

_BINARY: dict[str, Callable[..., object]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift, "@": operator.matmul,
}  # fmt: skip
_UNARY: dict[str, Callable[..., object]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}
_METHODS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "&": "and",
    "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift", "@": "matmul",
}  # fmt: skip


# Arithmetic


def unary(machine: Machine, word: str, value: object) -> object:
    """Return the result of ``-value``, ``+value`` or ``~value``."""
    if isinstance(value, Opaque):
        return machine.opaque(value.reason)
    if isinstance(value, NUMBERS):
        return performed(machine, lambda: _UNARY[word](value))
    found = asked(machine, f"unary {word}", (value,))
    return found if found is not NOT_KNOWN else machine.opaque(f"`{word}` of a value that is not known")


def binary(machine: Machine, word: str, left: object, right: object) -> object:
    """Return the result of an arithmetic operator."""
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
    if word == "|" and all(isinstance(item, ExternalName | ClassValue | UnionValue | None) for item in (left, right)):
        return UnionValue((left, right))
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
    """Return the result for containers and strings."""
    if word == "%" and isinstance(left, str):
        return percent_formatted(machine, left, right)
    known = [isinstance(item, (*CONTAINERS, *NUMBERS, str, bytes, type(None), range)) for item in (left, right)]
    if not all(known):
        return machine.opaque(f"`{word}` of values that are not known")
    size, is_text = _size(word, left, right), isinstance(left, str) or isinstance(right, str)
    if size > (MAX_CHARACTERS if is_text else MAX_ELEMENTS):
        machine.stop("a large container")
    machine.spend(size // (100 if is_text else 4))
    if word in ("|", "&", "-", "^") and not all(is_set_of_known(machine, item) for item in (left, right)):
        return machine.opaque(f"`{word}` of sets whose elements are not known")
    return performed(machine, lambda: _BINARY[word](left, right))


def is_set_of_known(machine: Machine, value: object) -> bool:
    """Whether Python can compare the elements of a set, or the keys of a dictionary."""
    elements = value if isinstance(value, set | frozenset | dict) else ()
    return not any(isinstance(is_hashable(machine, item), Opaque) for item in elements)


def _size(word: str, left: object, right: object) -> int:
    """Return an upper bound for the number of elements that an operator creates."""
    sizes = [len(item) if isinstance(item, Sized) else 1 for item in (left, right)]
    if word == "*":
        count = right if isinstance(right, int) else left
        return max(sizes) * max(count, 0) if isinstance(count, int) else 0
    return sum(sizes)


def _by_method(machine: Machine, word: str, left: object, right: object) -> object:
    """Return the result of a method such as ``__add__``."""
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
    """Return a method that Python calls implicitly, bound to a value; None if the class has none."""
    return machine.special(value, name) if isinstance(value, Object) else None


def augmented(machine: Machine, word: str, left: object, right: object) -> object:
    """Return the result of ``left += right`` and similar operators, which change lists, dictionaries and sets in place."""
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
    changed = asked(machine, f"{word}=", (left, right)) if isinstance(left, TensorValue) else NOT_KNOWN
    if changed is not NOT_KNOWN:
        return changed
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
