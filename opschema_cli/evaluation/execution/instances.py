"""``isinstance``, ``issubclass`` and ``type``."""

from __future__ import annotations

from collections.abc import Callable

from opschema_cli.evaluation.execution.classes import is_subclass
from opschema_cli.evaluation.execution.dialect import NOT_KNOWN
from opschema_cli.evaluation.execution.exceptions import catches
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.plain import Identical
from opschema_cli.evaluation.execution.values import (
    BoundMethod,
    Closure,
    ErrorValue,
    Native,
    Object,
    Opaque,
    Record,
    RecordClass,
    Running,
    Sentinel,
    TensorValue,
    UnionValue,
)
from opschema_cli.evaluation.values import ClassValue, EnumMember, ExternalName, ModuleValue

_OWN: dict[str, type | tuple[type, ...]] = {
    item.__name__: item
    for item in (int, float, bool, str, tuple, list, dict, set, frozenset, range, slice, complex, bytes)
}
_NUMERIC: dict[str, type | tuple[type, ...]] = {
    "numbers.Number": (int, float, complex),
    "numbers.Integral": int,
    "numbers.Real": (int, float),
}
_SEQUENCES = (tuple, list, str, range, bytes)
_ABSTRACT: dict[str, type | tuple[type, ...]] = {
    "Sequence": _SEQUENCES,
    "MutableSequence": list,
    "Mapping": dict,
    "MutableMapping": dict,
    "Set": (set, frozenset),
    "Iterable": (*_SEQUENCES, dict, set, frozenset, type({}.keys()), type({}.values()), type({}.items())),
    "Collection": (*_SEQUENCES, dict, set, frozenset),
    "Sized": (*_SEQUENCES, dict, set, frozenset),
    "Hashable": (int, float, str, range, type(None)),
}
_OWN |= {"types.NoneType": type(None), "NoneType": type(None), **_NUMERIC}
_OWN |= {f"{module}.{name}": kind for module in ("collections.abc", "typing") for name, kind in _ABSTRACT.items()}
_OWN |= {f"typing.{name.title()}": _OWN[name] for name in ("tuple", "list", "dict", "set")}


def isinstance_of(machine: Machine, positional: list[object], keywords: dict[str, object]) -> object:
    """Return the result of ``isinstance(value, classes)``."""
    value, kinds = positional
    return _among(machine, kinds, lambda kind: _is_instance(machine, value, kind))


def _among(machine: Machine, kinds: object, answer: Callable[[object], bool | Opaque]) -> bool | Opaque:
    """Whether the answer holds for one of several classes; opaque if it holds for none but may for one."""
    answers = [answer(kind) for kind in _flat(kinds)]
    if True in answers:
        return True
    return next((item for item in answers if isinstance(item, Opaque)), False)


def _flat(kinds: object) -> list[object]:
    if isinstance(kinds, UnionValue):
        kinds = kinds.kinds
    return [item for kind in kinds for item in _flat(kind)] if isinstance(kinds, tuple) else [kinds]


def _is_instance(machine: Machine, value: object, kind: object) -> bool | Opaque:
    if isinstance(value, Opaque) or isinstance(kind, Opaque):
        return machine.opaque("the class of a value")
    name = kind.name if isinstance(kind, ExternalName) else ""
    if kind is None or name == "object":
        return value is None if kind is None else True
    if isinstance(value, Object):
        return is_subclass(machine, value.cls, kind)
    if isinstance(value, EnumMember):
        return is_subclass(machine, ClassValue(value.ref), kind)
    if isinstance(value, Record) and isinstance(kind, ClassValue | RecordClass):
        own = isinstance(value.cls, ClassValue) and isinstance(kind, ClassValue)
        return is_subclass(machine, value.cls, kind) if own else value.cls is kind  # type: ignore[arg-type]
    if isinstance(value, ErrorValue):
        return catches(machine, kind, value)
    if type(value) in _PYTHON or isinstance(value, Record):
        return _is_own(machine, value, kind, name)
    return _is_other(machine, value, kind, name)


_PYTHON = frozenset(
    {int, float, bool, str, tuple, list, dict, set, frozenset, range, slice, complex, bytes, type(None)}
    | {type({}.keys()), type({}.values()), type({}.items())}
)


def _is_own(machine: Machine, value: object, kind: object, name: str) -> bool | Opaque:
    if isinstance(kind, ClassValue):
        return False
    if name.endswith(".Hashable") and isinstance(value, tuple):
        return machine.opaque("whether a tuple is hashable")
    if name in _OWN:
        return isinstance(value, _OWN[name])
    for dialect in machine.dialects:
        found = dialect.instance(machine, value, name)
        if isinstance(found, bool | Opaque):
            return found
    if name == "type" or name.startswith(("torch.", "numpy.", "types.")):
        return False
    return machine.opaque(f"whether a value is an instance of `{name}`")


def _is_other(machine: Machine, value: object, kind: object, name: str) -> bool | Opaque:
    if isinstance(value, ClassValue):
        return True if name == "type" else machine.opaque("the class of a class")
    if name == "type" and isinstance(value, TensorValue | Closure | BoundMethod | ModuleValue | Identical):
        return False
    for dialect in machine.dialects:
        found = dialect.instance(machine, value, name)
        if isinstance(found, bool | Opaque):
            return found
    if isinstance(value, Closure | BoundMethod | Native | Sentinel | ModuleValue | TensorValue) and name in _OWN:
        return False
    if isinstance(kind, ClassValue) and isinstance(value, Closure | BoundMethod | Sentinel | TensorValue | Identical):
        return False
    if isinstance(value, Running):
        return machine.opaque("the class of an iterator")
    return machine.opaque("the class of a value")


def issubclass_of(machine: Machine, positional: list[object], keywords: dict[str, object]) -> object:
    """Return the result of ``issubclass(cls, classes)``."""
    cls, kinds = positional
    if not isinstance(cls, ClassValue):
        return machine.opaque("the bases of a class")
    return _among(machine, kinds, lambda kind: kind if isinstance(kind, Opaque) else is_subclass(machine, cls, kind))


def type_of(machine: Machine, positional: list[object], keywords: dict[str, object]) -> object:
    """Return the result of ``type(value)``."""
    if len(positional) != 1:
        return NOT_KNOWN
    value = positional[0]
    if isinstance(value, Object | Record):
        return value.cls
    if isinstance(value, EnumMember):
        return ClassValue(value.ref)
    if isinstance(value, ErrorValue):
        return ExternalName(value.name) if value.name else machine.opaque("the class of an exception")
    if value is None:
        return ExternalName("types.NoneType")
    if type(value) in _PYTHON and type(value).__name__ in _OWN:
        return ExternalName(type(value).__name__)
    return machine.opaque("the class of a value")
