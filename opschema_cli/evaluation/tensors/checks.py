"""``torch._check`` and similar functions, which raise if a condition does not hold."""

from __future__ import annotations

from collections.abc import Mapping

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call, Caller, ExternalFunction
from opschema_cli.evaluation.execution.values import Closure


def _checking(exception: str) -> ExternalFunction:
    """Return a function that raises an exception if its first argument is false; an unknown argument counts as true."""

    def check(call: Call) -> object:
        found = call.bound("cond", "message")
        if found is None or "cond" not in found:
            return NOT_KNOWN
        if found["cond"] is False:
            call.throw(exception, _text(call.machine, found.get("message")))
        return None

    return check


def _text(machine: Caller, message: object) -> object:
    """Return the text that a function returns; None if it is not known."""
    found = machine.call(message, (), {}) if isinstance(message, Closure) else None
    return found if isinstance(found, str) else None


CHECKS: Mapping[str, ExternalFunction] = {
    "_check": _checking("RuntimeError"),
    "_check_index": _checking("IndexError"),
    "_check_not_implemented": _checking("NotImplementedError"),
    "_check_type": _checking("TypeError"),
    "_check_value": _checking("ValueError"),
}
"""The functions by name in ``torch``."""
