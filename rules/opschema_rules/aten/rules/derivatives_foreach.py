"""Operators over lists that have a usable derivative in derivatives.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Place, Span
from opschema_cli.source.yaml import Node
from opschema_rules.aten.derivative_operators import Operator, text_of
from opschema_rules.aten.derivatives import DEFAULT, Definition, definition_of
from opschema_rules.aten.foreach import is_foreach, lone_tensors, mapped_name, maps, unlike, unmapped
from opschema_rules.aten.formulas import saves_of, word
from opschema_rules.aten.model import DerivativeEntry, DerivativesFile
from opschema_rules.aten.signatures import base_name, full_name, kind_of

_MISTAKES = 3
"""So many operators without a derivative, or a tenth of all, may be mistakes."""


@rule("ATN446", "foreach-without-derivative", pure=True, by_release=True)
def foreach_without_derivative(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A `_foreach_` operator has no derivative that torchgen can use.

    Without an entry of its own, `_foreach_X` gets one that torchgen derives from the entry of `X`; it cannot if that one
    saves strides, the result of a function of an argument, or anything of an output other than `result`.

    For `_foreach_X_` torchgen uses the derivative of `X`: of the overload that takes what the operator takes, elements for
    lists. It does not use the one of `_foreach_X`, and none with `output_differentiability`. A separate entry for the
    in-place operator is rejected. The few that need no derivative are listed in gen_variable_type.py
    (`_foreach_ops_without_differentiability_info`); PyTorch before 2.1 has no such list, and needs no derivatives there.

    If a derivatives.yaml lacks many of them, it is assumed to be for other operators, and nothing is reported.

    Bad, there is no derivative of `square`:

    ```yaml
    - func: _foreach_square_(Tensor(a!)[] self) -> ()
      device_check: NoCheck
      dispatch:
        CompositeExplicitAutograd: foreach_square_
    ```

    ```yaml derivatives.yaml
    - name: relu(Tensor self) -> Tensor
      self: threshold_backward(grad, result, 0)
    ```

    Bad, an entry of its own:

    ```yaml
    - func: _foreach_relu_(Tensor(a!)[] self) -> ()
      device_check: NoCheck
      dispatch:
        CompositeExplicitAutograd: foreach_relu_
    ```

    ```yaml derivatives.yaml
    - name: _foreach_relu_(Tensor(a!)[] self) -> ()
      self: threshold_backward(grads[i], result[i], 0)
    ```

    Good:

    ```yaml
    - func: _foreach_relu_(Tensor(a!)[] self) -> ()
      device_check: NoCheck
      dispatch:
        CompositeExplicitAutograd: foreach_relu_
    ```

    ```yaml derivatives.yaml
    - name: relu(Tensor self) -> Tensor
      self: threshold_backward(grad, result, 0)
    ```
    """
    demanding = list(_demanding(derivatives))
    # An entry that is for no known operator may be meant for any.
    definitions = map(definition_of, derivatives.entries) if demanding else ()
    told = demanding and all(definition is not None and definition.known for definition in definitions)
    without = [operator for operator in demanding if told and _lacks(derivatives, operator)]
    lacking, names = ({mapped_name(operator.schema) for operator in items} for items in (without, demanding))
    if len(lacking) <= max(_MISTAKES, len(names) // 10):
        yield from (_without(derivatives, operator) for operator in without)
    for operator in demanding:
        definition = _used(derivatives, operator)
        if definition is not None:
            yield from _misfit(definition, operator)
    for operator in _made(derivatives):
        definition = _used(derivatives, operator)
        if definition is not None:
            yield from _unmade(definition, operator)


def _made(derivatives: DerivativesFile) -> Iterator[Operator]:
    """The other operators over lists, whose derivatives torchgen makes."""
    for operator in _over_lists(derivatives):
        if kind_of(operator.schema) != "inplace" and text_of(operator) not in derivatives.described:
            yield operator


def _demanding(derivatives: DerivativesFile) -> Iterator[Operator]:
    """Yield the in-place operators over lists for which torchgen requires a derivative."""
    never = derivatives.torchgen.autograd.foreach
    for operator in _over_lists(derivatives):
        schema = operator.schema
        needs = kind_of(schema) == "inplace" and not schema.returns and operator.is_abstract
        if needs and (base_name(schema.name).base, schema.overload) not in never:
            yield operator


def _over_lists(derivatives: DerivativesFile) -> Iterator[Operator]:
    """Yield the operators over lists; none for a torchgen that makes no derivatives of them."""
    if not derivatives.torchgen.autograd.maps_foreach or derivatives.native is None or not derivatives.complete:
        return
    for entry in derivatives.native.entries:
        if "_foreach_" in entry.name and entry.schema is not None and is_foreach(entry.schema):
            yield Operator(entry.schema, entry)


def _used(derivatives: DerivativesFile, operator: Operator) -> Definition | None:
    """The source of torchgen's derivative: an entry of its own, or the first of the operator that it maps."""
    near = [*_own(derivatives, operator), *derivatives.by_base.get(mapped_name(operator.schema), ())]
    known = [definition for entry in near if (definition := definition_of(entry)) is not None and definition.known]
    return next((item for item in known if _is_of(item, operator) or maps(operator.schema, item.schema)), None)


def _own(derivatives: DerivativesFile, operator: Operator) -> Iterable[DerivativeEntry]:
    """The entries of the operator and its functional variant."""
    return derivatives.by_base.get(base_name(operator.schema.name).base, ())


def _is_of(definition: Definition, operator: Operator) -> bool:
    return definition.operator is not None and definition.operator.entry is operator.entry and definition.in_place


def _lacks(derivatives: DerivativesFile, operator: Operator) -> bool:
    """Whether there is no derivative for it."""
    mapped = mapped_name(operator.schema)
    schemas = [entry.schema for entry in (*_own(derivatives, operator), *derivatives.by_base.get(mapped, ()))]
    # torchgen takes an out variant's entry for that of a functional one, and the derivative of a view for its copy, too.
    plain = all(schema is not None and kind_of(schema) != "out" for schema in schemas) and not mapped.endswith("_copy")
    return plain and _used(derivatives, operator) is None


def _without(derivatives: DerivativesFile, operator: Operator) -> Diagnostic:
    mapped = mapped_name(operator.schema)
    others = derivatives.by_base.get(mapped, ())
    there = f"of those in `{derivatives.path}` none takes the same, elements for lists"
    why = there if others else f"`{derivatives.path}` has none"
    message = f"torchgen uses the derivative of `{mapped}` for `{operator.name}`, and {why}"
    return _at(
        operator.entry.place, message, operator, *(entry.related(_named(entry), "not this") for entry in others[:3])
    )


def _misfit(definition: Definition, operator: Operator) -> Iterator[Diagnostic]:
    """Describe why torchgen refuses a derivative that it finds."""
    entry, schema, related = definition.entry, operator.schema, Related(operator.entry.place, "the operator")
    node, differing = entry.get("output_differentiability"), next(unlike(schema, definition.schema), None)
    if _is_of(definition, operator):
        mapped = mapped_name(schema)
        message = f"an in-place `_foreach_` operator cannot have a derivative of its own; that of `{mapped}` is used"
        yield _at(entry.at(_named(entry)), message, operator, related)
    elif differing is not None:
        argument, of = differing
        message = (
            f"`{argument.name}` is `{argument.type}`, and `{of.name}` of `{full_name(definition.schema)}`, whose derivative"
            f" torchgen uses, is `{of.type}`; they must be of one type, or the first a list of it"
        )
        text = operator.entry.schema_text
        place = text.place(argument.type_span) if text is not None else operator.entry.place
        yield _at(place, message, operator, entry.related(_named(entry), "the derivative"))
    elif node is not None and node.is_sequence and node.items:
        message = f"`{operator.name}` takes this derivative over, and has no outputs that it could be about"
        yield _at(entry.at(entry.key("output_differentiability") or node), message, operator, related)


def _unmade(definition: Definition, operator: Operator) -> Iterator[Diagnostic]:
    """Yield a finding with the reason why torchgen cannot adapt the derivative that it finds."""
    block = next((item for item in definition.blocks if item.dispatch == DEFAULT), None)
    if block is None:
        return
    source = full_name(definition.schema)
    wanted = f"`{operator.name}` needs a derivative of its own: torchgen cannot make it of that of `{source}`"
    for formula in block.backward:
        span = _unsaved(definition, operator, formula.text)
        if span is not None:
            related = Related(definition.entry.at(formula.span(span.start, span.end)), "saved, for one tensor")
            yield _at(operator.entry.place, wanted, operator, related)
            return
    argument = next(lone_tensors(operator.schema), None)
    if argument is not None and block.forward:
        related = definition.entry.related(block.forward[0].key, "its forward formula")
        message = f"{wanted}, for `{argument.name}` is not a list"
        yield _at(operator.entry.place, message, operator, related)


def _unsaved(definition: Definition, operator: Operator, text: str) -> Span | None:
    """Values saved by a formula that torchgen cannot save for an operator over lists."""
    for name, _ in definition.outputs:
        match = saves_of(text, name) or (word(name).search(text) if name != "result" else None)
        if match is not None:
            return Span(*match.span())
    return unmapped(operator.schema, definition.schema, text)


def _named(entry: DerivativeEntry) -> Node:
    return entry.get("name") or entry.node


def _at(place: Place, message: str, operator: Operator, *related: Related) -> Diagnostic:
    return Diagnostic(message, place, related, ops=(operator.name,))
