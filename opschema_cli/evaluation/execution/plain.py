"""Python's own values: how to recognize, compare and hash them, and the exceptions of operations on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import EllipsisType, MappingProxyType, NotImplementedType
from typing import TypeAlias, TypeVar

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.values import (
    Closure,
    DtypeValue,
    ErrorValue,
    Native,
    Object,
    Opaque,
    Sentinel,
)
from opschema_cli.evaluation.values import ClassValue, EnumMember, ModuleValue
from opschema_cli.source.resolution import External, Unresolved

T = TypeVar("T")

SCALARS = (int, float, bool, str, type(None), complex, bytes, range, slice, EllipsisType, NotImplementedType)
NUMBERS = (int, float, bool, complex)
VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
CONTAINERS = (tuple, list, dict, set, frozenset, *VIEWS, MappingProxyType)
MUTABLE = (list, dict, set)
Identical: TypeAlias = ClassValue | ModuleValue | EnumMember | DtypeValue | Sentinel | Closure | Native | ErrorValue
"""Other values that are equal if they are identical."""

_scalars = frozenset(SCALARS)
_containers = frozenset(CONTAINERS)


def is_scalar(value: object) -> bool:
    """Whether a value is one of Python's own without parts."""
    return type(value) in _scalars


def is_plain(machine: Machine, value: object) -> bool:
    """Whether a value and all its parts are Python's own."""
    if type(value) in _scalars:
        return True
    if type(value) not in _containers or id(value) in machine.tainted:
        return False
    machine.spend(len(value))  # type: ignore[arg-type]
    parts = value.items() if isinstance(value, dict) else value
    return all(is_plain(machine, item) for item in parts)  # type: ignore[attr-defined]


def is_hashable(machine: Machine, value: object) -> bool | Opaque:
    """Whether a value can be a key; opaque if two such keys may be equal without being identical.

    Python raises a ``TypeError`` for what is False.
    """
    if isinstance(value, slice):
        machine.stop("slices are hashable since Python 3.12")
    if type(value) in _scalars:
        return True
    if isinstance(value, tuple | frozenset):
        machine.spend(len(value))
        found = [is_hashable(machine, item) for item in value]
        opaque = next((item for item in found if isinstance(item, Opaque)), None)
        return False if False in found else opaque if opaque is not None else True
    if isinstance(value, EnumMember) and not is_plain_enum(machine, value):
        return machine.opaque("the hash of a member of an enumeration")
    if isinstance(value, Identical):
        return True
    if isinstance(value, Object):
        return machine.hashes_by_identity(value) or machine.opaque(f"the hash of an object of `{value.cls.ref.name}`")
    if isinstance(value, list | dict | set):
        return False
    return value if isinstance(value, Opaque) else machine.opaque("the hash of a value that is not known")


def is_plain_enum(machine: Machine, member: EnumMember) -> bool:
    """Whether an enumeration member only equals itself."""
    found = machine.evaluator.program.mro(member.ref)
    outside = [] if isinstance(found, Unresolved) else [item.name for item in found if isinstance(item, External)]
    return bool(outside) and set(outside) <= {"enum.Enum", "object", "Enum"}


def performed(machine: Machine, function: Callable[[], T]) -> T:
    """Return the result of an operation on Python's own values; its exceptions are raised in the executed code."""
    try:
        return function()
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, StopIteration, RuntimeError) as error:
        if isinstance(error, RecursionError):
            raise
        message = error.args[0] if error.args else None
        machine.throw(type(error).__name__, message)


def asked(machine: Machine, word: str, operands: Sequence[object]) -> object:
    """Return the dialects' result for an operator; not known if none has one."""
    for dialect in machine.dialects:
        found = dialect.operator(machine, word, operands)
        if found is not NOT_KNOWN:
            return found
    return NOT_KNOWN


def first_opaque(values: Sequence[object]) -> Opaque | None:
    """Return the first unknown value."""
    return next((value for value in values if isinstance(value, Opaque)), None)
