"""Outputs with derivatives, and operators that cannot have any, in derivatives.yaml."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, listed
from opschema_cli.source.yaml import Node, scalar_value
from opschema_cli.suggestions import nearest
from opschema_rules.aten.derivative_operators import Operator, operators_of
from opschema_rules.aten.derivatives import DEFAULT, Definition, blocks_of, definition_of
from opschema_rules.aten.entry import string
from opschema_rules.aten.findings import found
from opschema_rules.aten.formulas import saves
from opschema_rules.aten.model import DerivativeEntry, DerivativesFile
from opschema_rules.aten.rules.derivatives_entries import written
from opschema_rules.aten.signatures import base_name, full_name, kind_of

_FIELD = "output_differentiability"


@rule("ATN441", "output-differentiability", pure=True)
def output_differentiability(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """`output_differentiability` does not fit the outputs of the operator.

    It is a list with a boolean for each output, or, for an operator with one output, a list of one condition in C++. An
    in-place operator cannot have `False`: the version of its `self` would not be counted; this also holds for one that
    takes its derivative from its functional variant.

    Bad:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      output_differentiability: [True, False]
      self: grad * 2 * self
    ```

    Bad, an in-place operator:

    ```yaml derivatives.yaml
    - name: relu_(Tensor(a!) self) -> Tensor(a!)
      output_differentiability: [False]
    ```

    Good:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      output_differentiability: [False]
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      output_differentiability: ["isDifferentiableType(self.scalar_type())"]
      self: grad
    ```
    """
    for entry in derivatives.entries:
        yield from _output_differentiability(entry)


def _output_differentiability(entry: DerivativeEntry) -> Iterator[Diagnostic]:
    field = entry.fields.get(_FIELD)
    if field is None or (field[1].kind == "scalar" and scalar_value(field[1]) is None):
        return
    key, node = field
    if not node.is_sequence or not node.items:
        said = "an empty list" if node.is_sequence else written(node)
        message = f"`{_FIELD}` is a list with a boolean for each output, and this is {said}"
        yield found(entry, node, message)
        return
    items = [entry.file.document.follow(item) for item in node.items]
    faults = list(_flags(entry, items))
    yield from faults
    definition = definition_of(entry)
    if definition is None:
        return
    outputs = definition.schema.returns
    if len(items) != len(outputs):
        name = full_name(definition.schema)
        message = f"`{_FIELD}` has {count(len(items), 'element')}, and `{name}` {count(len(outputs), 'output')}"
        yield found(entry, node, message)
    elif not faults and definition.output_flags is not None and False in definition.output_flags:
        yield from _in_place(definition, key)


def _flags(entry: DerivativeEntry, items: list[Node]) -> Iterator[Diagnostic]:
    for item in items:
        text = string(item)
        if text is not None and len(items) > 1:
            message = "a condition must be the only item, for an operator with one output; otherwise the items must be booleans"
            yield found(entry, item, message)
        elif text is not None and _is_slip(entry, text):
            near = nearest(text, ("True", "False"), 0.74)
            message = f"`{text}` is a condition in C++, where it means nothing; write `{near or text}` without quotes"
            yield found(entry, item, message)
        elif text is None and not isinstance(scalar_value(item) if item.kind == "scalar" else None, bool):
            yield found(entry, item, f"an output has a derivative or not: this must be a boolean, not {written(item)}")


def _is_slip(entry: DerivativeEntry, text: str) -> bool:
    """Whether a condition is probably meant to be a boolean."""
    definition = definition_of(entry)
    if text in ("true", "false") or (definition is not None and text in definition.arguments):
        return False
    return text in ("True", "False") or (text.isidentifier() and nearest(text, ("True", "False"), 0.74) is not None)


def _in_place(definition: Definition, key: Node) -> Iterator[Diagnostic]:
    entry = definition.entry
    if definition.in_place:
        message = "the output of an in-place operator is its `self`, which cannot be without a derivative"
        yield found(entry, key, message)
        return
    for heir in definition.heirs:
        if kind_of(heir.schema) == "inplace" and heir.is_abstract:
            message = (
                f"`{heir.name}` takes this over, and the output of an in-place operator cannot be without a derivative"
            )
            related = Related(heir.entry.place, "it has no entry of its own")
            yield found(entry, key, message, related)


@rule("ATN442", "derivative-without-effect", pure=True, by_release=True)
def derivative_without_effect(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """An entry has backward formulas, but the operator cannot have a derivative.

    None of its outputs is a differentiable tensor, by its schema or by `output_differentiability`, or the operator is one
    that torchgen lists as never needing a derivative (`DONT_REQUIRE_DERIVATIVE` in gen_variable_type.py).

    Bad:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      output_differentiability: [False]
      self: grad * 2 * self
    ```

    Good:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      output_differentiability: [False]
    ```
    """
    for block in blocks_of(derivatives):
        definition = block.definition
        if not (block.differentiable and block.inputs and definition.schema.returns) or block.is_manual:
            continue
        first = block.backward[0]
        place = first.span_of(first.names[0])
        name = full_name(definition.schema)
        if block.is_exempt:
            yield found(block.entry, place, f"torchgen lists `{name}` as having no derivative; the formula is not used")
        elif block.outputs == () and block.sound:
            node = block.entry.get(_FIELD) if definition.output_flags else None
            related = (block.entry.related(node, "by this"),) if node is not None else ()
            yield found(
                block.entry, place, f"no output of `{name}` has a derivative; the formula is not used", *related
            )


@rule("ATN443", "derivative-needs-dispatch", pure=True, by_release=True)
def derivative_needs_dispatch(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """An operator with a derivative has no kernel of its own in native_functions.yaml.

    Without `dispatch` an operator is `CompositeImplicitAutograd`: it is composed of other operators, whose derivatives are
    used, and its own formula is never reached. It needs a `dispatch` with backends or `CompositeExplicitAutograd`. This
    also holds for variants that take their derivative from this entry.

    Bad:

    ```yaml
    - func: cube(Tensor self) -> Tensor
    ```

    ```yaml derivatives.yaml
    - name: cube(Tensor self) -> Tensor
      self: 3 * grad * self * self
    ```

    Good:

    ```yaml
    - func: cube(Tensor self) -> Tensor
      dispatch:
        CompositeExplicitAutograd: cube
    ```

    ```yaml derivatives.yaml
    - name: cube(Tensor self) -> Tensor
      self: 3 * grad * self * self
    ```
    """
    for entry in derivatives.entries:
        yield from _derivative_needs_dispatch(entry)


def _derivative_needs_dispatch(entry: DerivativeEntry) -> Iterator[Diagnostic]:
    definition, operators = definition_of(entry), operators_of(entry.owner)
    if definition is None or definition.operator is None or operators is None:
        return
    if base_name(definition.schema.name).base not in operators.composite:
        return
    if not any(block.differentiable for block in definition.blocks):
        return
    name = entry.get("name") or entry.node
    for operator in [definition.operator, *definition.heirs]:
        if operator.is_abstract or operator.schema.name in (entry.owner.torchgen.autograd.manual or ()):
            continue
        own = operator is definition.operator
        who = f"`{operator.name}`" if own else f"`{operator.name}`, which takes its derivative from here,"
        wanted = "it needs a `dispatch` with backends or `CompositeExplicitAutograd`"
        message = f"{who} has no kernel that autograd could call; {wanted}"
        yield found(entry, name, message, Related(operator.entry.place, _kernels(operator)))


def _kernels(operator: Operator) -> str:
    keys = [item.key for item in operator.entry.dispatch()]
    return f"its dispatch has only {listed(keys)}" if keys else "it has no `dispatch`"


@rule("ATN444", "derivative-saves-self", pure=True)
def derivative_saves_self(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """The derivative of an operator that writes saves `self`, so torchgen cannot use it for the functional variant.

    torchgen generates the functional variant of an operator that only writes, and uses the operator's derivative for it,
    where `self` would be another tensor. Give the functional variant an entry of its own, or do not use `self`.

    Bad:

    ```yaml
    - func: settle_(Tensor(a!) self, Tensor other) -> Tensor(a!)
      dispatch:
        CPU: settle_
      autogen: settle, settle.out
    ```

    ```yaml derivatives.yaml
    - name: settle_(Tensor(a!) self, Tensor other) -> Tensor(a!)
      other: settle_backward(grad, self)
    ```

    Good:

    ```yaml
    - func: settle_(Tensor(a!) self, Tensor other) -> Tensor(a!)
      dispatch:
        CPU: settle_
      autogen: settle, settle.out
    ```

    ```yaml derivatives.yaml
    - name: settle_(Tensor(a!) self, Tensor other) -> Tensor(a!)
      other: settle_backward(grad, other)
    ```
    """
    for entry in derivatives.entries:
        yield from _derivative_saves_self(entry)


def _derivative_saves_self(entry: DerivativeEntry) -> Iterator[Diagnostic]:
    definition = definition_of(entry)
    if definition is None or definition.operator is None or kind_of(definition.schema) == "functional":
        return
    names = [name for name in definition.arguments if "self" in name]
    for formula in (formula for block in definition.blocks for formula in block.backward):
        for name in names:
            if saves(formula.text, name) and definition.generated_heirs:
                start = formula.text.find(name)
                heir = definition.generated_heirs[0].name
                message = f"the formula saves `{name}`; torchgen would use it for the generated `{heir}`, too"
                yield found(formula.entry, formula.span(start, start + len(name)), message)


@rule("ATN445", "derivative-without-default", pure=True)
def derivative_without_default(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """An operator has formulas by dispatch key, but none for `Default`, which torchgen needs.

    For a view, they determine which outputs are differentiable; for an operator with a `_foreach_` variant, that variant's
    formulas are derived from them. torchgen fails with a `KeyError`.

    Bad:

    ```yaml derivatives.yaml
    - name: expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
      dispatch:
        AutogradNestedTensor:
          self: at::sum_to(grad, self.sym_sizes())
    ```

    Good:

    ```yaml derivatives.yaml
    - name: expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
      dispatch:
        Default:
          self: at::sum_to(grad, self.sym_sizes())
        AutogradNestedTensor:
          self: sum_to_nested(grad, self)
    ```
    """
    for block in blocks_of(derivatives):
        definition = block.definition
        if block.key is None or definition.blocks[0] is not block:
            continue
        if any(item.dispatch == DEFAULT for item in definition.blocks):
            continue
        why = _needs_default(definition)
        if why:
            message = f"`{full_name(definition.schema)}` {why} needs formulas for `{DEFAULT}`"
            yield found(block.entry, block.entry.key("dispatch") or block.key, message)


def _needs_default(definition: Definition) -> str:
    schema = definition.schema
    if kind_of(schema) == "functional" and any(value.alias is not None for value in schema.returns):
        return "returns a view, which"
    variant = next(definition.foreach_variants(), None)
    return f"is what torchgen makes the derivative of `{variant.name}` of, which" if variant is not None else ""
