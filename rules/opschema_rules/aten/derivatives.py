"""Reads derivatives.yaml: its entries, the operators that they are for, and their formulas as torchgen groups them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.schema.operator_schema import Argument, OperatorSchema, Return
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node, YamlFile, scalar_value
from opschema_rules.aten.derivative_operators import Operator, operators_of, sound, text_of
from opschema_rules.aten.entry import string
from opschema_rules.aten.foreach import is_foreach, maps
from opschema_rules.aten.formulas import uses, with_saved
from opschema_rules.aten.kinds import mappings_of
from opschema_rules.aten.model import DerivativeEntry, DerivativesFile, NativeFile
from opschema_rules.aten.signatures import (
    base_name,
    is_tensor_like,
    kind_of,
    options_of,
    out_arguments,
)
from opschema_rules.aten.torchgen import Torchgen

NOT_FORMULAS = ("name", "dispatch", "output_differentiability")
"""Fields of an entry that are not formulas."""

DEFAULT = "Default"
"""The dispatch key of formulas outside of a ``dispatch`` table."""

_NAME = re.compile(r"[^,\s](?:[^,]*[^,\s])?")


def read_derivatives(file: YamlFile, native: NativeFile | None, torchgen: Torchgen) -> DerivativesFile:
    """A derivatives.yaml; items that are not mappings are left out."""
    derivatives = DerivativesFile(file, torchgen, native)
    derivatives.entries += [DerivativeEntry(file, index, node, derivatives) for index, node in mappings_of(file)]
    return derivatives


FormulaKind: TypeAlias = Literal["backward", "forward", "non-differentiable", "unknown"]
"""Kinds of formulas: the names of the key are arguments, outputs, or not all known."""


class Formula(msgspec.Struct, frozen=True, eq=False):
    """A formula: the names before the colon, and the C++ after it."""

    entry: DerivativeEntry
    key: Node
    node: Node
    text: str
    names: tuple[str, ...]
    kind: FormulaKind

    def span_of(self, name: str, number: int = 0) -> Span:
        """The span of occurrence ``number`` of a name in the key."""
        spans = [match.span() for match in _NAME.finditer(self.key.value) if match.group() == name]
        span = Span(*spans[number]) if number < len(spans) else Span(0, len(self.key.value))
        return self.entry.inner(self.key, span)

    def span(self, start: int, end: int) -> Span:
        """The span of a stretch of the C++."""
        return self.entry.inner(self.node, Span(start, end))

    @property
    def is_automatic(self) -> bool:
        """Whether torchgen makes the formula itself."""
        return self.text in ("auto_element_wise", "auto_linear")

    @property
    def whole(self) -> Span:
        """All of the C++."""
        return self.span(0, len(self.text))


class Block(msgspec.Struct, eq=False, dict=True):
    """The formulas of one dispatch key. ``sound`` if each can be parsed and names parts of the operator."""

    definition: Definition
    dispatch: str
    key: Node | None
    formulas: tuple[Formula, ...]
    sound: bool

    @property
    def entry(self) -> DerivativeEntry:
        """The entry that contains them."""
        return self.definition.entry

    @cached_property
    def backward(self) -> tuple[Formula, ...]:
        """The formulas of arguments, in torchgen's order."""
        found = (formula for formula in self.formulas if formula.kind == "backward")
        return tuple(sorted(found, key=lambda formula: formula.key.value))

    @cached_property
    def forward(self) -> tuple[Formula, ...]:
        """The formulas of outputs, in torchgen's order."""
        found = (formula for formula in self.formulas if formula.kind == "forward")
        return tuple(sorted(found, key=lambda formula: formula.key.value))

    @cached_property
    def differentiable(self) -> tuple[Argument, ...]:
        """The arguments with formulas."""
        names = {name for formula in self.backward for name in formula.names}
        return tuple(item for item in self.definition.schema.arguments if item.name in names)

    @cached_property
    def non_differentiable(self) -> frozenset[str]:
        """The arguments that are marked as having no derivative."""
        return frozenset(
            name for formula in self.formulas if formula.kind == "non-differentiable" for name in formula.names
        )

    @cached_property
    def inputs(self) -> tuple[Argument, ...]:
        """The arguments that can have derivatives: tensors that are not marked."""
        return tuple(
            item
            for item in self.definition.schema.arguments
            if is_tensor_like(item.type)
            and item.name not in self.non_differentiable
            and not (item.kwarg_only and item.is_write)
        )

    @property
    def requires_derivative(self) -> bool:
        """Whether torchgen writes derivatives for the operator at all."""
        return bool(self.inputs and self.outputs) and not (self.is_exempt or self.is_manual)

    @property
    def is_exempt(self) -> bool:
        """Whether torchgen lists the operator as needing no derivative."""
        name, never = self.definition.schema.name, self.entry.owner.torchgen.autograd.never
        return never is not None and (name in never or base_name(name).base in never)

    @property
    def is_manual(self) -> bool:
        """Whether the operator's derivative is written by hand."""
        return self.definition.schema.name in (self.entry.owner.torchgen.autograd.manual or ())

    @cached_property
    def outputs(self) -> tuple[str, ...] | None:
        """The names of the outputs with derivatives; None if ``output_differentiability`` does not match."""
        definition = self.definition
        flags = definition.output_flags
        if flags is not None:
            if len(flags) != len(definition.outputs):
                return None
            return tuple(name for flag, (name, _) in zip(flags, definition.outputs, strict=True) if flag)
        if definition.entry.get("output_differentiability") is not None and not definition.flags_empty:
            return None
        names = tuple(
            name
            for name, value in definition.outputs
            if is_tensor_like(value.type) and name not in self.non_differentiable
        )
        return names[:1] if self.uses_single_gradient else names

    @cached_property
    def searched(self) -> tuple[str, ...]:
        """The backward formulas as torchgen searches them for gradients."""
        definition = self.definition
        names = [*definition.arguments, *(name for name, _ in definition.outputs)]
        alike = [name for name in names if "grad".endswith(name) or "grads".endswith(name)]
        return tuple(with_saved(formula.text, alike) for formula in self.backward)

    @cached_property
    def uses_single_gradient(self) -> bool:
        """Whether a formula says ``grad``."""
        return any(uses(text, "grad") for text in self.searched)


class Definition:
    """An entry that can be checked: its operator's schema, and its formulas.

    ``known`` says that the schema is that of an operator, letter by letter; else it is the one of the operator of that
    name, or what stands there.
    """

    def __init__(
        self, entry: DerivativeEntry, schema: OperatorSchema, operator: Operator | None, *, known: bool
    ) -> None:
        self.entry = entry
        self.schema = schema
        self.operator = operator
        self.known = known

    @cached_property
    def arguments(self) -> Mapping[str, Argument]:
        """The arguments by name; those that torchgen makes one ``options`` of are left out."""
        options = options_of(self.schema)
        return {item.name: item for item in self.schema.arguments if item not in options}

    @cached_property
    def has_options(self) -> bool:
        """Whether dtype, layout, device and pin_memory are one argument ``options`` in formulas."""
        return bool(options_of(self.schema))

    @property
    def in_place(self) -> bool:
        """Whether it is an in-place operator by its name."""
        return base_name(self.schema.name).inplace

    @cached_property
    def outputs(self) -> tuple[tuple[str, Return], ...]:
        """The outputs and their names in generated code (``torchgen.api.cpp.return_names``)."""
        schema = self.schema
        if self.in_place:
            return tuple(("result", value) for value in schema.returns)
        outs = out_arguments(schema)
        if outs:
            return tuple((item.name, value) for item, value in zip(outs, schema.returns, strict=False))
        names = {item.name for item in schema.arguments}
        return tuple((_output_name(schema, index, names), value) for index, value in enumerate(schema.returns))

    @cached_property
    def output_flags(self) -> tuple[bool, ...] | None:
        """``output_differentiability``, with a condition counting as true; None if it is missing, empty or malformed."""
        node = self.entry.get("output_differentiability")
        if node is None or not node.is_sequence or not node.items:
            return None
        values = [self.entry.file.document.follow(item) for item in node.items]
        flags = [_flag(value) for value in values]
        if len(flags) == 1 and string(values[0]) is not None:
            return (True,)
        return tuple(flag for flag in flags if flag is not None) if None not in flags else None

    @property
    def flags_empty(self) -> bool:
        """Whether ``output_differentiability`` says nothing."""
        node = self.entry.get("output_differentiability")
        return node is not None and not node.items and (node.kind != "scalar" or node.value in ("", "~", "null"))

    @cached_property
    def heirs(self) -> tuple[Operator, ...]:
        """The declared variants that take their derivative from here (``match_differentiability_info``, case 2)."""
        operators, operator = operators_of(self.entry.owner), self.operator
        if operators is None or operator is None or not self.known or kind_of(self.schema) != "functional":
            return ()
        if is_foreach(self.schema):
            return ()
        described = self.entry.owner.described
        return tuple(item for item in operators.variants_of(operator) if text_of(item) not in described)

    @cached_property
    def generated_heirs(self) -> tuple[Operator, ...]:
        """The functional variants that torchgen generates for an operator that writes, and its derivative with it (case 3)."""
        operators, operator = operators_of(self.entry.owner), self.operator
        if operators is None or operator is None or not self.known or kind_of(self.schema) == "functional":
            return ()
        described = self.entry.owner.described
        for item in operators.variants_of(operator):
            # Of several operators that write, torchgen takes the one whose entry comes last.
            at = described.get(text_of(item), -1)
            if at > self.entry.index or (at >= 0 and kind_of(item.schema) == "functional"):
                return ()
        variants = operators.variants_of(operator, generated=True)
        return tuple(item for item in variants if kind_of(item.schema) != "out" and text_of(item) not in described)

    def foreach_variants(self) -> Iterator[Operator]:
        """The operators over lists whose derivatives torchgen makes of these."""
        operators = operators_of(self.entry.owner)
        name = f"_foreach_{base_name(self.schema.name).base}"
        for entry in operators.declared_by_base.get(name, ()) if operators is not None else ():
            operator = sound(entry)
            if operator is None or text_of(operator) in self.entry.owner.described:
                continue
            if maps(operator.schema, self.schema) and not out_arguments(operator.schema):
                yield operator

    @cached_property
    def gradient_names(self) -> frozenset[str]:
        """``grad_NAME`` of each named output that has a derivative."""
        returns = self.schema.returns
        flags = self.output_flags or (True,) * len(returns)
        return frozenset(
            f"grad_{value.name}"
            for value, flag in zip(returns, flags, strict=False)
            if flag and value.name and is_tensor_like(value.type)
        )

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Its formulas by dispatch key."""
        table = self.entry.get("dispatch")
        if table is None:
            return (self._block(DEFAULT, None, self.entry.node, NOT_FORMULAS),)
        follow = self.entry.file.document.follow
        pairs = [(key, follow(value)) for key, value in table.pairs() if key.kind == "scalar"]
        return tuple(self._block(key.value, key, value, ()) for key, value in pairs if value.is_mapping)

    def _block(self, dispatch: str, key: Node | None, table: Node, leave_out: tuple[str, ...]) -> Block:
        follow = self.entry.file.document.follow
        pairs = [(name, follow(value)) for name, value in table.pairs() if name.value not in leave_out]
        read = [self._formula(name, value, string(value)) for name, value in pairs]
        formulas = tuple(item for item in read if item is not None)
        sound = len(formulas) == len(read) and all(item.kind != "unknown" for item in formulas)
        return Block(self, dispatch, key, formulas, sound)

    def _formula(self, key: Node, node: Node, text: str | None) -> Formula | None:
        if text is None or not text.strip() or string(key) is None:
            return None
        names = tuple(name.strip() for name in key.value.split(","))
        return Formula(self.entry, key, node, text, names, self._kind(names, text))

    def _kind(self, names: tuple[str, ...], text: str) -> FormulaKind:
        if all(name in self.arguments for name in names):
            return "non-differentiable" if text.lower().strip() == "non_differentiable" else "backward"
        return "forward" if all(self.is_output(name) for name in names) else "unknown"

    def is_output(self, name: str) -> bool:
        """Whether torchgen knows an output by that name, or by ``result`` and its number."""
        if any(name in (known, value.name) for known, value in self.outputs):
            return name not in self.arguments
        return False


def _output_name(schema: OperatorSchema, index: int, arguments: set[str]) -> str:
    name = schema.returns[index].name
    if name:
        return f"{name}_return" if name in arguments else name
    return "result" if len(schema.returns) == 1 else f"result{index}"


def _flag(node: Node) -> bool | None:
    value = scalar_value(node) if node.kind == "scalar" else None
    return value if isinstance(value, bool) else None


@cached_on_argument
def definition_of(entry: DerivativeEntry) -> Definition | None:
    """Return the entry with its operator; None if its schema is not known."""
    text = entry.text("name")
    if text is None:
        return None
    operators = operators_of(entry.owner)
    operator = operators.find(text) if operators is not None else None
    if operator is not None:
        return Definition(entry, operator.schema, operator, known=True)
    if operators is not None and text in operators.declared:
        return None  # the operator's own entry is at fault
    if operators is not None:
        operator = operators.named(text.partition("(")[0].strip())
    if operator is not None:
        return Definition(entry, operator.schema, operator, known=False)
    return Definition(entry, entry.schema, None, known=False) if entry.schema is not None else None


@cached_on_argument
def blocks_of(derivatives: DerivativesFile) -> list[Block]:
    """Return the formulas of every entry with a known schema, by dispatch key."""
    definitions = filter(None, map(definition_of, derivatives.entries))
    return [block for definition in definitions for block in definition.blocks]
