"""The types of the scalars that a scene test passes."""

from __future__ import annotations

import re

import msgspec

from opschema_cli.source.python import Class, Constant, Expr, Function, Import, PythonFile
from opschema_rules.pypto.cpp_scalars import SMALLEST
from opschema_rules.pypto.scene_classes import cases_of, is_item, written_fields
from opschema_rules.pypto.scenes import Argument

_FLOATS = {"ctypes.c_float": "float", "ctypes.c_double": "double"}
_WHOLE = frozenset(f"ctypes.c_{sign}int{bits}" for sign in ("", "u") for bits in ("", "8", "16", "32", "64"))
_MOST_NAMES = 4
"""Most names through which an integer is followed."""


def type_of_passed(file: PythonFile, cls: Class, argument: Argument) -> str:
    """``float``, ``double``, or ``integer`` for one that is small and not zero in each case; empty where that is not known.

    The harness passes the bits of ``c_float`` and ``c_double`` as they are, and those of a float of Python in single precision.
    """
    value = argument.expr.argument("value", 1)
    if value is None:
        return ""
    if value.kind == "const":
        return _of_constant(value)
    makes = next((item for item in cls.body.functions if item.name == "generate_args"), None)
    if value.kind != "call" or len(value.items) != 2 or any(value.keywords) or not _has_ctypes(file) or makes is None:
        return ""
    known = _Cases(file, cls, makes).values(value.items[1], _MOST_NAMES)
    if value.callee in _FLOATS:
        return _FLOATS[value.callee] if known is None or any(known) else ""
    is_small = known is not None and bool(known) and all(_is_small(item) for item in known)
    return "integer" if value.callee in _WHOLE and is_small else ""


def _has_ctypes(file: PythonFile) -> bool:
    """Whether ``ctypes`` is that of Python alone."""
    bound = file.body.named.get("ctypes", ())
    return [(item.module, item.attr) for item in bound if isinstance(item, Import)] == [("ctypes", "")] and len(
        bound
    ) == 1


def _of_constant(expr: Expr) -> str:
    if isinstance(expr.value, float) and expr.value:
        return "float"
    return "integer" if _is_small(expr.value) else ""


def _is_small(number: Constant) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 < number < SMALLEST


class _Cases(msgspec.Struct, frozen=True):
    """The values of expressions in ``generate_args()``, which ``makes`` the arguments of each case of a test."""

    file: PythonFile
    cls: Class
    makes: Function

    def values(self, expr: Expr, names: int) -> list[Constant] | None:
        """The value of an expression in each case; None where one is not known."""
        if expr.kind == "const":
            return [expr.value]
        if expr.kind == "call" and expr.callee in ("int", "float") and len(expr.items) == 2:
            return self.values(expr.items[1], names) if self._is_builtin(expr.callee) else None
        if expr.kind == "name" and names:
            assigned = [item.value for item in self.makes.body.assigns if item.target == expr.text]
            return self.values(assigned[0], names - 1) if len(assigned) == 1 and assigned[0] is not None else None
        params = self.makes.params
        if len(params) != 2 or not is_item(expr, params[-1].name) or not self._only_reads(params[-1].name):
            return None
        cases = cases_of(self.cls) or []
        fields = [written_fields(case.fields["params"][1]) if "params" in case.fields else None for case in cases]
        key = str(expr.items[1].value)
        found = [item[key][1] if item is not None and key in item else None for item in fields]
        known = [item.value for item in found if item is not None and item.kind == "const"]
        return known if known and len(known) == len(found) else None

    def _is_builtin(self, name: str) -> bool:
        return name not in self.file.body.named

    def _only_reads(self, name: str) -> bool:
        """Whether the function takes nothing of a mapping but items by name, and neither changes it nor passes it on."""
        text = self.file.source.text[self.makes.end : self.makes.outer.end].partition("):")[2]
        reads = rf"\b{name}(?:\.get\(|\[\s*(?:'\w+'|\"\w+\")\s*\](?!\s*(?:[-+*/%|&^@<>]{{0,3}}=(?!=)|:)))"
        return len(re.findall(reads, text)) == len(re.findall(rf"\b{name}\b", text))
