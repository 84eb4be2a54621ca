"""FlyDSL's names, however they are imported and whether its package lies in the workspace or not."""

from __future__ import annotations

from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import FunctionRef
from opschema_cli.source.python import Expr, Param
from opschema_rules.flydsl.answers import Answers, Meaning, meaning_of
from opschema_rules.flydsl.deciding import deciding
from opschema_rules.flydsl.detection import ROOT


class Names:
    """The meanings of dotted names inside bodies."""

    def __init__(self, bodies: Bodies, answers: Answers) -> None:
        self.bodies = bodies
        self._answers = answers
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

    def member(self, body: Body, dotted: str) -> str:
        """The same of a dotted name that may be a method or an attribute of a class of FlyDSL."""
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
        """What a dotted name stands for. Of a name that another module defines only the answer is noted, not the module."""
        imported = self.bodies.imported_from(body, dotted)
        if imported is not None:
            return self._answers.meaning(*imported)
        return meaning_of(self.bodies.program, self.bodies.resolve(body, dotted))

    def external(self, body: Body, dotted: str) -> str:
        """The full name of what lies outside the workspace; empty for anything else."""
        kind, name = self.meaning(body, dotted) if dotted else Meaning("other")
        return name if kind == "external" else ""

    def wrapping(self, body: Body, dotted: str) -> frozenset[str] | None:
        """The last words of the decorators of a function of another module; None of anything else, or if its own module may pass
        it first to another function.
        """
        imported = self.bodies.imported_from(body, dotted)
        return self._answers.wrapping(*imported) if imported is not None else None

    def parameters(self, body: Body, dotted: str) -> tuple[str, tuple[Param, ...]] | None:
        """The name of the function that a dotted name stands for, and its parameters; None of what is none."""
        imported = self.bodies.imported_from(body, dotted)
        if imported is not None:
            found = self._answers.parameters(*imported)
            return (self._answers.meaning(*imported).name.rpartition(".")[2], found) if found is not None else None
        ref = self.bodies.resolve(body, dotted)
        return (ref.function.name, ref.function.params) if isinstance(ref, FunctionRef) else None

    def deciding(self, body: Body, dotted: str) -> set[str]:
        """The parameters by which a function may decide in Python."""
        imported = self.bodies.imported_from(body, dotted)
        if imported is not None:
            return self._answers.deciding(*imported)
        ref = self.bodies.resolve(body, dotted)
        found = ref if isinstance(ref, FunctionRef) else None
        return deciding(found.file.text(found.function.outer), found.function.params) if found is not None else set()

    def last(self, body: Body, expr: Expr) -> str:
        """The last word of a name of FlyDSL (``jit``); empty for any other expression."""
        return self.full(body, expr.text).rpartition(".")[2] if expr.kind == "name" else ""

    def called(self, body: Body, call: Expr) -> str:
        """The last word of the function of FlyDSL that a call calls."""
        return self.full(body, call.callee).rpartition(".")[2] if call.callee else ""


def _is_parameter(body: Body, name: str) -> bool:
    """Whether a name is a parameter of a function around, and not imported inside that."""
    for item in body.outward():
        if item.function is not None and any(imported.name == name for imported in item.scope.imports):
            return False
        if any(param.name == name for param in item.params):
            return True
    return False
