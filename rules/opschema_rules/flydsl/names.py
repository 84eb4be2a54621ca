"""FlyDSL's names, however they are imported and whether its package lies in the workspace or not."""

from __future__ import annotations

from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import (
    ClassRef,
    External,
    FunctionRef,
    Missing,
    ModuleRef,
    Resolution,
    Unresolved,
    ValueRef,
)
from opschema_cli.source.python import Expr, PythonFile

ROOT = "flydsl"


class Names:
    """The meanings of dotted names inside bodies."""

    def __init__(self, bodies: Bodies) -> None:
        self.bodies = bodies
        self._full: dict[tuple[Body, str], str] = {}

    def full(self, body: Body, dotted: str) -> str:
        """A name of FlyDSL in full (``flydsl.compiler.jit``, or with the module that defines it); empty for any other."""
        if not dotted:
            return ""
        own = body.cls is not None or dotted.partition(".")[0] in body.visible
        around = body if own else self.bodies.module(body.file)
        found = self._full.get((around, dotted))
        if found is None:
            found = self._full[around, dotted] = self._meant(around, dotted)
        return found

    def _meant(self, body: Body, dotted: str) -> str:
        if _is_parameter(body, dotted.partition(".")[0]):
            return ""
        found = self.bodies.resolve(body, dotted)
        if isinstance(found, Unresolved):
            # FlyDSL's own modules import `*` from generated ones, behind which nothing is known.
            name = self.bodies.imported_name(body, dotted)
        else:
            name = self._name(found)
        return name if name.partition(".")[0] == ROOT else ""

    def last(self, body: Body, expr: Expr) -> str:
        """The last word of a name of FlyDSL (``jit``); empty for any other expression."""
        return self.full(body, expr.text).rpartition(".")[2] if expr.kind == "name" else ""

    def called(self, body: Body, call: Expr) -> str:
        """The last word of the function of FlyDSL that a call calls."""
        return self.full(body, call.callee).rpartition(".")[2] if call.callee else ""

    def _name(self, found: Resolution) -> str:
        match found:
            case External(name=name):
                return name
            case FunctionRef(file=file, function=function, owner=None):
                return self._within(file, function.name)
            case ClassRef(file=file, cls=cls):
                return self._within(file, cls.name)
            case ValueRef(file=file, assign=assign, owner=None):
                return self._within(file, assign.target)
            case ModuleRef(path=path):
                return self.bodies.program.module_name(path)
            case Missing(module=module, name=name):
                return f"{self.bodies.program.module_name(module)}.{name}"
        return ""

    def _within(self, file: PythonFile, name: str) -> str:
        return f"{self.bodies.program.module_name(file.path)}.{name}"


def _is_parameter(body: Body, name: str) -> bool:
    """Whether a name is a parameter of a function around, and not imported inside that."""
    for item in body.outward():
        if item.function is not None and any(imported.name == name for imported in item.scope.imports):
            return False
        if any(param.name == name for param in item.params):
            return True
    return False
