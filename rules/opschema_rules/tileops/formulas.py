"""The roofline formulas of an entry, the names that they may read, and who runs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from opschema_cli.lint.diagnostic import Place, Related, Severity
from opschema_cli.schema.expression import Expression
from opschema_cli.source.program import ClassRef, FunctionRef, Unresolved
from opschema_cli.source.yaml import Node
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.signature import bound_names, parsed, per_entry, statement, static_dims

METHOD = "eval_roofline"


@dataclass(frozen=True, eq=False)
class Formula:
    """One formula of an inline roofline: a variable (``key`` is its name's node), or ``flops`` or ``bytes``.

    ``expression`` is None where the text does not parse.
    """

    layer: Literal["vars", "arithmetic"]
    name: str
    key: Node
    node: Node
    text: str
    expression: Expression | None

    @property
    def where(self) -> str:
        """Its path below ``roofline``, for messages."""
        return f"vars.{self.name}" if self.layer == "vars" else self.name


@per_entry
def formulas(entry: OpEntry) -> tuple[Formula, ...]:
    """The formulas that are text, variables first, each in the order of the file."""
    return tuple(_formulas(entry))


def _formulas(entry: OpEntry) -> Iterator[Formula]:
    owner = entry.get("roofline", "vars")
    for key, value in owner.pairs() if owner is not None else ():
        found = _formula(entry, "vars", key, value)
        if found is not None:
            yield found
    owner = entry.get("roofline")
    for name in ("flops", "bytes"):
        pair = owner.pair(name) if owner is not None else None
        found = _formula(entry, "arithmetic", *pair) if pair is not None else None
        if found is not None:
            yield found


def _formula(entry: OpEntry, layer: Literal["vars", "arithmetic"], key: Node, node: Node) -> Formula | None:
    node = entry.file.document.follow(node)
    text = entry.data_of(node) if node.kind == "scalar" else None
    if key.kind != "scalar" or not isinstance(text, str) or not text.strip():
        return None
    return Formula(layer, key.value, key, node, text, parsed(text))


@per_entry
def dimensions(entry: OpEntry) -> set[str]:
    """Names that a shape gives a value before the op runs: dimensions of inputs, static ones, and what rules equate."""
    stated = statement(entry)
    inputs = [stated.declarations.get(tensor.name) for tensor in entry.inputs]
    found = {symbol.name for declaration in inputs if declaration is not None for symbol in declaration.symbols}
    found.update(key.value for key, _, _ in static_dims(entry))
    found.update(name for equation in stated.rules for name in bound_names(equation.expression))
    return found


class Runner(NamedTuple):
    """Who runs an entry's formulas: code generated from them, or nobody, because ``written`` takes its place."""

    generated: bool
    written: FunctionRef | None = None

    @property
    def severity(self) -> Severity:
        """What a fault in a formula counts as: an error only where it runs."""
        return Severity.ERROR if self.generated else Severity.WARNING

    def related(self) -> Iterator[Related]:
        """The method that takes the formulas' place."""
        if self.written is not None:
            place = Place(self.written.file.path, self.written.function.span)
            yield Related(place, "written by hand, so the formula does not run")


def runner(entry: OpEntry) -> Runner:
    """Who runs the formulas of an entry; where that is not known, nobody does."""
    ref, program = entry.op_class, entry.manifest.program
    if not isinstance(ref, ClassRef) or not entry.implemented:
        return Runner(False)
    for owner in program.lineage(ref):
        found = program.own_member(owner, METHOD)
        if isinstance(found, FunctionRef) and not found.function.stub:
            return Runner(False, found)
        if found is not None and not isinstance(found, FunctionRef):
            return Runner(False)
    known = not isinstance(program.mro(ref), Unresolved)
    return Runner(known and isinstance(program.member(ref, METHOD), Unresolved))
