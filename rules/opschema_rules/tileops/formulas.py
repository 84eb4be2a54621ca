"""The roofline formulas of an entry, the names that they may read, and who runs them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from opschema_cli.lint.diagnostic import Place, Related, Severity
from opschema_cli.schema.expression import Expression, Reference
from opschema_cli.schema.shapes import parse_shape
from opschema_cli.source.program import ClassRef, FunctionRef, Unresolved
from opschema_cli.source.yaml import Node
from opschema_rules.tileops.doubtful_keys import is_doubtful, repeated
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.presence import unguarded
from opschema_rules.tileops.signature import bound_names, parsed, per_entry, static_dims

METHOD = "eval_roofline"


class Formula(msgspec.Struct, frozen=True, eq=False):
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
    unclear = repeated(owner) if owner is not None else set()
    for key, value in owner.pairs() if owner is not None else ():
        found = _formula(entry, "vars", key, value)
        if found is not None and found.name not in unclear:
            yield found
    owner = entry.get("roofline")
    for name in ("flops", "bytes"):
        pair = owner.pair(name) if owner is not None and not is_doubtful(owner, name) else None
        found = _formula(entry, "arithmetic", *pair) if pair is not None else None
        if found is not None:
            yield found


def _formula(entry: OpEntry, layer: Literal["vars", "arithmetic"], key: Node, node: Node) -> Formula | None:
    node = entry.file.document.follow(node)
    text = entry.data_of(node) if node.kind == "scalar" else None
    if key.kind != "scalar" or not isinstance(text, str) or not text.strip():
        return None
    return Formula(layer, key.value, key, node, text, parsed(text))


def variable_names(entry: OpEntry) -> set[str]:
    """Return the names in ``vars``, whatever their values."""
    owner = entry.get("roofline", "vars")
    return {key.value for key, _ in owner.pairs() if key.kind == "scalar"} if owner is not None else set()


def knows_variables(entry: OpEntry) -> bool:
    """Whether ``vars`` is there as a mapping, or is left out."""
    owner = entry.get("roofline", "vars")
    absent = owner is None or (owner.kind == "scalar" and entry.data_of(owner) is None)
    return not entry.doubtful("roofline", "vars") and (absent or (owner is not None and owner.is_mapping))


def optional_uses(formula: Formula, optional: Iterable[str]) -> Iterator[Reference]:
    """Uses of ``optional`` inputs that a formula's layer does not permit: `vars` may only test whether
    they are passed.
    """
    expression = formula.expression
    if expression is not None and formula.layer == "vars":
        yield from unguarded(expression, optional, guards=False)
    elif expression is not None:
        yield from (use for use in expression.names() if use.name in optional)


_ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp, ast.Compare, ast.Call, ast.Constant, ast.Name)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def not_arithmetic(node: ast.expr) -> Iterator[ast.expr]:
    """The outermost parts of an expression that are no arithmetic."""
    sound = isinstance(node, _ARITHMETIC)
    if isinstance(node, ast.Compare):
        sound = all(isinstance(sign, _COMPARISONS) for sign in node.ops)
    elif isinstance(node, ast.Call):
        sound = isinstance(node.func, ast.Name) and not node.keywords
    elif isinstance(node, ast.BinOp):
        sound = not isinstance(node.op, ast.MatMult)
    if not sound:
        yield node
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and not (isinstance(node, ast.Call) and child is node.func):
            yield from not_arithmetic(child)


def is_dimension(entry: OpEntry, name: str) -> bool:
    """Whether a shape gives a name a value before the op runs: a dimension of an input, a static one, or one that a rule
    equates.
    """
    if any(key.value == name for key, _, _ in static_dims(entry)):
        return True
    shapes = (tensor.shape for tensor in entry.inputs if tensor.shape is not None and _may_use(tensor.shape, name))
    if any(symbol.name == name for shape in shapes for symbol in parse_shape(shape).symbols):
        return True
    rules = (parsed(item.text) for item in entry.shape_rules if _may_use(item.text, name))
    return any(name in bound_names(expression) for expression in rules if expression is not None)


def _may_use(text: str, name: str) -> bool:
    """Whether an expression may use a name, without parsing it: names are normalised, so that they may be written otherwise."""
    return name in text or not text.isascii()


class Runner(msgspec.Struct, frozen=True):
    """The runner of an entry's formulas: code generated from them, or nobody, because ``written`` takes its place."""

    generated: bool
    written: FunctionRef | None = None

    @property
    def severity(self) -> Severity:
        """The severity of a fault in a formula: an error only where it runs."""
        return Severity.ERROR if self.generated else Severity.WARNING

    def related(self) -> Iterator[Related]:
        """The method that takes the formulas' place."""
        if self.written is not None:
            place = Place(self.written.file.path, self.written.function.span)
            yield Related(place, "written by hand, so the formula does not run")


def runner(entry: OpEntry) -> Runner:
    """Return the runner of an entry's formulas; none if it is not known."""
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
