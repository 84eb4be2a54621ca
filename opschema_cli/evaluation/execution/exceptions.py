"""Exceptions: their classes and messages."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.evaluation.execution.classes import is_subclass, outside_bases
from opschema_cli.evaluation.execution.error_names import BUILTIN_ERRORS
from opschema_cli.evaluation.execution.formats import arguments_of_error, text_of
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.values import ErrorValue, Object, Opaque
from opschema_cli.evaluation.values import ClassValue, ExternalName


def is_error_name(name: str) -> bool:
    """Whether a name refers to a built-in exception."""
    return name in BUILTIN_ERRORS


def made_error(machine: Machine, name: str, positional: Sequence[object]) -> ErrorValue:
    """Return an exception of a built-in class."""
    return ErrorValue(name, tuple(positional))


def class_name(error: ErrorValue | Object) -> str:
    """Return the name of an exception's class."""
    return error.name.rpartition(".")[2] or "Exception" if isinstance(error, ErrorValue) else error.cls.ref.name


def message_of(machine: Machine, error: ErrorValue | Object) -> str | None:
    """Return the text of an exception; None if it is not known."""
    arguments = arguments_of_error(machine, error)
    if arguments is None or len(arguments) != 1:
        return "" if arguments == () else None
    text = text_of(machine, arguments[0])
    return text if isinstance(text, str) else None


def catches(machine: Machine, kind: object, error: ErrorValue | Object) -> bool | Opaque:
    """Whether a handler for ``kind``, a class or a tuple of classes, catches an exception."""
    if isinstance(kind, tuple):
        answers = [catches(machine, item, error) for item in kind]
        if True in answers:
            return True
        return next((item for item in answers if isinstance(item, Opaque)), False)
    if isinstance(error, ErrorValue):
        return _catches_error(machine, kind, error)
    if isinstance(kind, ClassValue):
        return is_subclass(machine, error.cls, kind)
    return _catches_object(machine, kind, error)


def _catches_error(machine: Machine, kind: object, error: ErrorValue) -> bool | Opaque:
    name = kind.name if isinstance(kind, ExternalName) else ""
    if name in ("Exception", "BaseException") and not issubclass(
        BUILTIN_ERRORS.get(error.name, Exception), _outer(error)
    ):
        return True
    if not error.name:
        return machine.opaque("an exception that is not known")
    if name in BUILTIN_ERRORS and error.name in BUILTIN_ERRORS:
        return issubclass(BUILTIN_ERRORS[error.name], BUILTIN_ERRORS[name])
    if isinstance(kind, ClassValue) and error.name in BUILTIN_ERRORS:
        return False
    return True if name == error.name else machine.opaque("an exception of a class that is not known")


def _outer(error: ErrorValue) -> tuple[type[BaseException], ...]:
    """Return the built-in exceptions that are not a subclass of ``Exception``."""
    return (KeyboardInterrupt, SystemExit, GeneratorExit) if error.name else ()


def _catches_object(machine: Machine, kind: object, error: Object) -> bool | Opaque:
    name = kind.name if isinstance(kind, ExternalName) else ""
    bases = [BUILTIN_ERRORS[item] for item in outside_bases(machine, error.cls) if item in BUILTIN_ERRORS]
    if name in BUILTIN_ERRORS and bases:
        return any(issubclass(item, BUILTIN_ERRORS[name]) for item in bases)
    return machine.opaque("an exception of a class that is not known")
