"""Text of values: ``str``, ``repr``, and formatting."""

from __future__ import annotations

import re
from collections.abc import Callable

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN
from opschema_cli.evaluation.execution.error_names import ERRORS
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.plain import asked, is_plain, is_scalar, performed
from opschema_cli.evaluation.execution.values import ErrorValue, Object, Opaque
from opschema_cli.evaluation.limits import MAX_CHARACTERS
from opschema_cli.source.resolution import ClassRef, External, Unresolved

_SPEC = re.compile(r"(?:.?[<>=^])?[-+ ]?#?0?\d{0,3}[_,]?(?:\.\d{1,3})?[a-zA-Z%]?\Z")
_PERCENT = re.compile(r"%(?:%|[-+ #0]*\d{0,3}(?:\.\d{1,3})?[sdrxXofFeEgGic])")


def text_of(machine: Machine, value: object, conversion: str = "", spec: str = "") -> str | Opaque:
    """Return ``value`` in a formatted string; ``conversion`` is ``r``, ``s``, ``a`` or empty."""
    if isinstance(value, Opaque):
        return value
    if isinstance(value, ErrorValue | Object) and not conversion:
        arguments = arguments_of_error(machine, value)
        if arguments is not None and len(arguments) == 1 and getattr(value, "name", "") != "KeyError":
            return text_of(machine, arguments[0], "", spec)
    told = asked(machine, "str", (value,)) if not is_scalar(value) and not conversion and not spec else NOT_KNOWN
    if told is not NOT_KNOWN:
        return told if isinstance(told, str) else machine.opaque("the text of a value that is not known")
    if not is_plain(machine, value) or _has_order(value):
        return machine.opaque("the text of a value that is not known")
    if not _SPEC.match(spec):
        return machine.opaque("a format that is not followed")
    shown = performed(machine, lambda: _converted(value, conversion))
    return limited(machine, performed(machine, lambda: format(shown, spec)))


def arguments_of_error(machine: Machine, value: ErrorValue | Object) -> tuple[object, ...] | None:
    """Return the arguments of an exception that determine its text; None for any other object."""
    if isinstance(value, ErrorValue):
        return value.arguments
    found = machine.evaluator.program.mro(value.cls.ref)
    if isinstance(found, Unresolved):
        return None
    outside = {item.name for item in found if isinstance(item, External)}
    written = any(item.cls.body.function("__str__") for item in found if isinstance(item, ClassRef))
    arguments = value.attributes.get("args")
    return arguments if outside and outside <= ERRORS and not written and isinstance(arguments, tuple) else None


_CONVERSIONS: dict[str, Callable[[object], object]] = {"r": repr, "s": str, "a": ascii, "": lambda value: value}


def _converted(value: object, conversion: str) -> object:
    return _CONVERSIONS[conversion](value)


def _has_order(value: object) -> bool:
    """Whether the text depends on the order of a set."""
    if isinstance(value, set | frozenset):
        return len(value) > 1
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(_has_order(item) for item in parts)


def limited(machine: Machine, text: str) -> str | Opaque:
    """Return a string, or opaque if it is too long."""
    machine.spend(len(text) // 100)
    return text if len(text) <= MAX_CHARACTERS else machine.opaque("a long string")


def percent_formatted(machine: Machine, text: str, value: object) -> str | Opaque:
    """Return ``text % value``."""
    if isinstance(value, Opaque):
        return value
    rest = _PERCENT.sub("", text)
    if "%" in rest or not is_plain(machine, value) or _has_order(value):
        return machine.opaque("a format that is not followed")
    return limited(machine, performed(machine, lambda: text % value))
