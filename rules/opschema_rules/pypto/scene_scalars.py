"""The types of the scalars that a scene test passes."""

from __future__ import annotations

from opschema_cli.source.python import Class, Expr, Function
from opschema_rules.pypto.cpp_scalars import SMALLEST
from opschema_rules.pypto.scene_classes import cases_of, is_item, written_fields
from opschema_rules.pypto.scenes import Argument

_FLOATS = {"ctypes.c_float": "float", "ctypes.c_double": "double"}
_WHOLE = frozenset(f"ctypes.c_{sign}int{bits}" for sign in ("", "u") for bits in ("", "8", "16", "32", "64"))
_MOST_NAMES = 4
"""Most names through which an integer is followed."""


def type_of_passed(cls: Class, argument: Argument) -> str:
    """``float``, ``double``, or ``integer`` for one that is small and not zero in each case; empty where that is not known.

    The harness passes the bits of ``c_float`` and ``c_double`` as they are, and those of a float of Python in single precision.
    """
    positional = argument.expr.positional()
    value = positional[1] if len(positional) > 1 else argument.expr.keyword("value")
    if value is None:
        return ""
    if value.kind == "const":
        return _of_constant(value)
    if value.kind != "call" or len(value.items) != 2 or any(value.keywords):
        return ""
    inner = value.items[1]
    if value.callee in _FLOATS:
        return "" if inner.kind == "const" and not inner.value else _FLOATS[value.callee]
    makes = next((item for item in cls.body.functions if item.name == "generate_args"), None)
    is_small = value.callee in _WHOLE and makes is not None and _is_small(cls, makes, inner, _MOST_NAMES)
    return "integer" if is_small else ""


def _of_constant(expr: Expr) -> str:
    if isinstance(expr.value, float) and expr.value:
        return "float"
    return "integer" if _is_small_number(expr) else ""


def _is_small_number(expr: Expr) -> bool:
    number = expr.value
    return isinstance(number, int) and not isinstance(number, bool) and 0 < number < SMALLEST


def _is_small(cls: Class, makes: Function, expr: Expr, names: int) -> bool:
    """Whether an expression is a small integer in each case of a test."""
    if expr.kind == "const":
        return _is_small_number(expr)
    if expr.kind == "call" and expr.callee == "int" and len(expr.items) == 2:
        return _is_small(cls, makes, expr.items[1], names)
    if expr.kind == "name" and names:
        assigned = [item.value for item in makes.body.assigns if item.target == expr.text]
        return len(assigned) == 1 and assigned[0] is not None and _is_small(cls, makes, assigned[0], names - 1)
    if len(makes.params) != 2 or not is_item(expr, makes.params[-1].name):
        return False
    cases = cases_of(cls) or []
    fields = [written_fields(case.fields["params"][1]) if "params" in case.fields else None for case in cases]
    key = str(expr.items[1].value)
    return bool(fields) and all(item is not None and key in item and _is_small_number(item[key][1]) for item in fields)
