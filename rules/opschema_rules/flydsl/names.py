"""Resolves FlyDSL's names, however they are imported and whether or not its package is in the workspace."""

from __future__ import annotations

from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import FunctionRef
from opschema_cli.source.python import Expr, Param
from opschema_rules.flydsl.answers import Answers, Meaning, meaning_of
from opschema_rules.flydsl.deciding import deciding
from opschema_rules.flydsl.detection import ROOT


class Names:
    """The meanings of dotted names in bodies."""

    def __init__(self, bodies: Bodies, answers: Answers) -> None:
        self.bodies = bodies
        self._answers = answers
        self._full: dict[tuple[Body, str], str] = {}

    def full(self, body: Body, dotted: str) -> str:
        """Return the full name of a FlyDSL name (``flydsl.compiler.jit``, or with the module that defines it); empty for any
        other.
        """
        if not dotted:
            return ""
        own = body.cls is not None or dotted.partition(".")[0] in body.visible
        around = body if own else self.bodies.module(body.file)
        found = self._full.get((around, dotted))
        if found is None:
            found = self._full[around, dotted] = self._meant(around, dotted)
        return found

    def member(self, body: Body, dotted: str) -> str:
        """Return the full name of a dotted name that may be a method or attribute of a FlyDSL class."""
        holder, _, word = dotted.rpartition(".")
        full = self.full(body, dotted)
        owner = self.full(body, holder) if holder and not full else ""
        return f"{owner}.{word}" if owner else full

    def _meant(self, body: Body, dotted: str) -> str:
        if _is_parameter(body, dotted.partition(".")[0]):
            return ""
        kind, name = self.meaning(body, dotted)
        if kind == "unresolved":  # FlyDSL's own modules import `*` from generated ones, behind which nothing is known
            name = self.bodies.imported_name(body, dotted)
        return name if name.partition(".")[0] == ROOT else ""

    def meaning(self, body: Body, dotted: str) -> Meaning:
        """Return the meaning of a dotted name. For a name that another module defines, only the answer is recorded, not the
        module.
        """
        imported = self.bodies.imported_from(body, dotted)
        if imported is not None:
            return self._answers.meaning(*imported)
        return meaning_of(self.bodies.program, self.bodies.resolve(body, dotted))

    def external(self, body: Body, dotted: str) -> str:
        """Return the full name of an object outside the workspace; empty for anything else."""
        kind, name = self.meaning(body, dotted) if dotted else Meaning("other")
        return name if kind == "external" else ""

    def wrapping(self, body: Body, dotted: str) -> frozenset[str] | None:
        """Return the last words of the decorators of another module's function; None for anything else, or if its own module may
        pass it to another function first.
        """
        imported = self.bodies.imported_from(body, dotted)
        return self._answers.wrapping(*imported) if imported is not None else None

    def parameters(self, body: Body, dotted: str) -> tuple[str, tuple[Param, ...]] | None:
        """Return the name of the function that a dotted name refers to, and its parameters; None if it is not a function."""
        imported = self.bodies.imported_from(body, dotted)
        if imported is not None:
            found = self._answers.parameters(*imported)
            return (self._answers.meaning(*imported).name.rpartition(".")[2], found) if found is not None else None
        ref = self.bodies.resolve(body, dotted)
        return (ref.function.name, ref.function.params) if isinstance(ref, FunctionRef) else None

    def deciding(self, body: Body, dotted: str) -> set[str]:
        """Return the parameters by which a function may decide in Python."""
        imported = self.bodies.imported_from(body, dotted)
        if imported is not None:
            return self._answers.deciding(*imported)
        ref = self.bodies.resolve(body, dotted)
        found = ref if isinstance(ref, FunctionRef) else None
        return deciding(found.file.text(found.function.outer), found.function.params) if found is not None else set()

    def last(self, body: Body, expr: Expr) -> str:
        """Return the last word of a FlyDSL name (``jit``); empty for any other expression."""
        return self.full(body, expr.text).rpartition(".")[2] if expr.kind == "name" else ""

    def called(self, body: Body, call: Expr) -> str:
        """Return the last word of the FlyDSL function that a call calls."""
        return self.full(body, call.callee).rpartition(".")[2] if call.callee else ""


def _is_parameter(body: Body, name: str) -> bool:
    """Whether a name is a parameter of an enclosing function, and not imported inside that function."""
    for item in body.outward():
        if item.function is not None and any(imported.name == name for imported in item.scope.imports):
            return False
        if any(param.name == name for param in item.params):
            return True
    return False
