"""Names that the roofline formulas of an entry know, and names that they read and do not know."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from itertools import chain

import msgspec
from msgspec.structs import replace

from opschema_cli.lint.diagnostic import Related
from opschema_cli.schema.evaluate import SHAPE_FUNCTIONS
from opschema_cli.schema.expression import Expression, Reference
from opschema_cli.source.text import Span
from opschema_rules.tileops.formula_names import FormulaNames, generator_names
from opschema_rules.tileops.formulas import Formula, formulas, is_dimension, knows_variables, variable_names
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.signature import is_complete, statement, static_dims
from opschema_rules.tileops.vocabulary import ARITHMETIC_HELPERS, VARS_HELPERS, closest, states


class Unbound(msgspec.Struct, frozen=True):
    """A name that a formula reads and does not know; ``never`` where nothing in the entry has that name."""

    message: str
    span: Span
    never: bool = False
    related: tuple[Related, ...] = ()


def foreign_names(entry: OpEntry) -> Iterator[Reference]:
    """The names that formulas read and that are not values of the entry: dimensions, which the tree's generator may bind, and
    those that nothing binds. They follow from the entry alone.
    """
    if not entry.manifest.spec.knows("roofline-names") or not knows_variables(entry):
        return
    scope = _Scope(entry)
    for formula in formulas(entry):
        if formula.expression is not None:
            yield from scope.foreign(formula, formula.expression)
            yield from scope.foreign_calls(formula, formula.expression)
        scope.define(formula.name)


def unbound_names(entry: OpEntry) -> Iterator[Unbound]:
    """The names that formulas read and do not know."""
    if not entry.manifest.spec.knows("roofline-names") or not knows_variables(entry):
        return
    scope = _Scope(entry)
    for formula in formulas(entry):
        expression = formula.expression
        for found in scope.unknown(formula, expression) if expression is not None else ():
            if not is_complete(entry):
                return
            yield replace(found, span=entry.inner(formula.node, found.span))
        scope.define(formula.name)
    if scope.dimensions and is_complete(entry):
        yield _of_dimensions(scope)


def _of_dimensions(scope: _Scope) -> Unbound:
    """The dimensions that the tree's generator does not bind, in one finding: formulas that rely on them read several."""
    names = ", ".join(f"`{name}`" for name in scope.dimensions)
    where, span = next(iter(scope.dimensions.values()))
    some = "a dimension" if len(scope.dimensions) == 1 else "dimensions"
    stated = scope.stated(where)
    related = (Related(stated.place, "the names that the generator binds"),) if stated is not None else ()
    text = (
        f"the roofline reads {some} that the tree's generator does not bind: {names}; take them from shapes in `vars`"
    )
    return Unbound(text, scope.entry.inner(where.node, span), related=related)


class _Scope:
    """Names known to the formulas of one entry, from top to bottom."""

    def __init__(self, entry: OpEntry) -> None:
        self.entry = entry
        self.inputs = {tensor.name for tensor in entry.inputs}
        self.outputs = {tensor.name for tensor in entry.outputs}
        self.variables = {formula.name for formula in formulas(entry) if formula.layer == "vars"}
        self.values = {"elem_bytes", *(param.name for param in entry.params)}
        # A variable without a formula is MAN101's, and no reason to blame those who read it.
        self.values |= variable_names(entry) - {formula.name for formula in formulas(entry)}
        self.dimensions: dict[str, tuple[Formula, Span]] = {}

    def define(self, name: str) -> None:
        """Let the following formulas read ``name``."""
        self.values.add(name)

    def unknown(self, formula: Formula, expression: Expression) -> Iterator[Unbound]:
        """The names that a formula does not know, each once; their places are in its text."""
        first: dict[str, Span] = {}
        for name, span in self.foreign(formula, expression):
            first.setdefault(name, span)
        bases = _attribute_bases(expression, formula) if first else set()
        for name, span in first.items():
            if not self._is_dimension(formula, name, span) and span.start not in bases:
                yield Unbound(self.complaint(formula, name), span, not self._is_elsewhere(name))
        for name, span in self.foreign_calls(formula, expression):
            hint = closest(name, _helpers(formula))
            yield Unbound(f"`{name}()` is not a function that `{formula.where}` may call{hint}", span)

    def foreign(self, formula: Formula, expression: Expression) -> Iterator[Reference]:
        """The names in a formula that are not values, inputs or helpers."""
        more = (self.inputs, VARS_HELPERS) if formula.layer == "vars" else ()
        for found in expression.names():
            if found.name not in self.values and not any(found.name in known for known in more):
                yield found

    def foreign_calls(self, formula: Formula, expression: Expression) -> Iterator[Reference]:
        """The functions that a formula calls and may not call."""
        helpers = _helpers(formula)
        for found in expression.calls():
            if found.name not in helpers and not states(self.entry.manifest.spec, found.name):
                yield found

    def stated(self, formula: Formula) -> FormulaNames | None:
        """Return the names that the tree's generator allows in a formula, as far as it is understood."""
        return generator_names(self.entry.manifest.evaluator.bodies).of_layer(formula.layer)

    def _is_dimension(self, formula: Formula, name: str, span: Span) -> bool:
        """Whether ``name`` is a dimension, which the generator may not bind."""
        if not is_dimension(self.entry, name):
            return False
        stated = self.stated(formula)
        static = stated is not None and "static_dims" in stated.sections
        if stated is not None and not (static and any(key.value == name for key, _, _ in static_dims(self.entry))):
            self.dimensions.setdefault(name, (formula, span))
        return True

    def _is_elsewhere(self, name: str) -> bool:
        """Whether a name means something in the entry, if not to a formula."""
        known = (self.inputs, self.outputs, self.variables, SHAPE_FUNCTIONS, statement(self.entry).symbols)
        return any(name in names for names in known) or any(name in row.data for row in self.entry.rows)

    def complaint(self, formula: Formula, name: str) -> str:
        """The reason why a formula does not know ``name``."""
        if name in self.inputs:
            return f"`{formula.where}` reads the input `{name}`; put what it needs of it in `vars`"
        if name in self.outputs:
            return (
                f"`{formula.where}` reads the output `{name}`; a formula knows inputs, params and their dimensions only"
            )
        if name in self.variables:
            return f"`{formula.where}` reads the variable `{name}`, which is defined below it; define it above"
        return f"nothing gives `{name}` in `{formula.where}` a value{closest(name, chain(self.values, self.inputs))}"


def _helpers(formula: Formula) -> Collection[str]:
    return VARS_HELPERS if formula.layer == "vars" else ARITHMETIC_HELPERS


def _attribute_bases(expression: Expression, formula: Formula) -> set[int]:
    """Offsets of names whose attribute or method ROO103 reports."""
    attributes = [node for node in expression.nodes if isinstance(node, ast.Attribute)]
    if formula.layer == "vars":
        called = {id(node.func) for node in expression.nodes if isinstance(node, ast.Call)}
        attributes = [node for node in attributes if id(node) in called]
    return {expression.start_of(node.value) for node in attributes if isinstance(node.value, ast.Name)}
