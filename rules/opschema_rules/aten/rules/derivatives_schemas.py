"""The operators that entries of derivatives.yaml are for."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_edit import set_value
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.derivative_operators import Operator, Operators, operators_of, text_of
from opschema_rules.aten.derivatives import definition_of
from opschema_rules.aten.entry import SchemaText
from opschema_rules.aten.findings import found, respelling, yaml_fix
from opschema_rules.aten.generated import functions_of
from opschema_rules.aten.model import DerivativeEntry, DerivativesFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.signatures import base_name, kind_of
from opschema_rules.aten.text_diff import Stretch, stretches

_MANY = 5
_SEARCHED = 40
"""Unknown names for which others are searched that are alike; where there are more, it is another file that is wrong."""


@rule("ATN406", "derivative-unknown-schema", fixable="unsafe", proof=WRITTEN, pure=True)
def derivative_unknown_schema(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """The `name` of an entry in derivatives.yaml is not exactly the schema of an operator.

    The field is a copy of the operator's `func` in native_functions.yaml, including defaults and annotations, or of the
    schema of an operator that torchgen generates. torchgen prints all schemas with that name and leaves the comparison to
    the reader; here the differing part is marked. Nothing is reported while an entry of native_functions.yaml cannot be
    read, or where that file is not known, unless the operator of that name is.

    The fix copies the schema. It is unsafe where names of arguments or outputs change, which formulas may use.

    Bad, a default that differs:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=2) -> Tensor
      self: grad
      other: grad * alpha
    ```

    Bad, a name that does not exist:

    ```yaml derivatives.yaml
    - name: rleu(Tensor self) -> Tensor
      self: threshold_backward(grad, result, 0)
    ```

    Good:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self: grad
      other: grad * alpha
    - name: relu(Tensor self) -> Tensor
      self: threshold_backward(grad, result, 0)
    ```
    """
    operators = operators_of(derivatives)
    if operators is None:
        return
    unknown: list[SchemaText] = []
    for entry in derivatives.entries:
        text = entry.schema_text
        if text is None or not text.text.strip() or text.text in operators.declared:
            continue
        definition = definition_of(entry)
        if definition is None or not definition.known:
            meant = operators.named(_name(text.text))
            if meant is not None:
                yield from _differs(text, meant)
            elif operators.native.complete:
                unknown.append(text)
    for text in unknown:
        yield _unknown(text, operators, search=len(unknown) <= _SEARCHED)
        for error in text.parsed.errors:
            if error.refused and error.kind != "name":
                yield found(text.entry, text.span(error.span), f"torchgen cannot read the schema: {error.message}")


def _name(text: str) -> str:
    """The name with the overload, without a namespace."""
    return text.partition("(")[0].strip().rpartition("::")[2]


def _differs(text: SchemaText, meant: Operator) -> Iterator[Diagnostic]:
    known = text_of(meant)
    related = _declared(meant, "torchgen generates it for this operator" if meant.generated else known)
    for stretch in stretches(text.text, known):
        start, end = stretch.here
        place = stretch.here if end > start else Span(max(start - 1, 0), max(start, 1))
        message = f"`name` is a copy of the schema of `{meant.name}`, {_said(stretch)}"
        why = "" if _keeps_names(text, meant) else "names of arguments or outputs change, which formulas may use"
        fix = respelling(text.entry, text.node, stretch.here, known[slice(*stretch.there)], "copy the schema", why)
        yield found(text.entry, text.span(place), message, related, fix=fix)


def _said(stretch: Stretch) -> str:
    mine, theirs = stretch.mine, stretch.theirs
    if not mine.strip():
        return f"which has `{theirs.strip()}` here, too" if theirs.strip() else "which is spaced otherwise here"
    if not theirs.strip():
        return f"which has no `{mine.strip()}`"
    return f"which has `{theirs}` instead of `{mine}`"


def _keeps_names(text: SchemaText, meant: Operator) -> bool:
    own = text.parsed.schema
    return own is not None and _names(own) == _names(meant.schema)


def _declared(operator: Operator, message: str) -> Related:
    return Related(operator.entry.place, message)


def _names(schema: OperatorSchema) -> list[str | None]:
    return [item.name for item in schema.slots]


def _unknown(text: SchemaText, operators: Operators, *, search: bool) -> Diagnostic:
    name = _name(text.text)
    span = text.span(Span(0, max(len(text.text.partition("(")[0].rstrip()), 1)))
    overloads = operators.overloads.get(name.partition(".")[0], [])
    near = overloads or (_similar(text, name, operators) if search else [])
    same = [item for item in near if _signature(text_of(item)) == _signature(text.text)]
    if len(same) == 1:
        message = f"no operator is called `{name}`; `{same[0].name}` has this signature"
        why = "" if overloads else "another operator may be meant"
        known = text_of(same[0])
        fix = yaml_fix(text.entry, "copy the schema", lambda: set_value(text.entry.file, text.node, known), why)
        return found(text.entry, span, message, _declared(same[0], known), fix=fix)
    if overloads:
        names = [item.name for item in overloads]
        return found(text.entry, span, f"no operator is called `{name}`; there are {listed(names[:_MANY])}")
    meant = did_you_mean(nearest(name, functions_of(operators.native))) if search else ""
    return found(text.entry, span, f"no operator is called `{name}`{meant}")


def _signature(text: str) -> str:
    return text.partition("(")[2]


def _similar(text: SchemaText, name: str, operators: Operators) -> list[Operator]:
    """The operator with the same signature whose name is nearest."""
    signature = _signature(text.text)
    known = {
        _name(other): other
        for other in operators.declared
        if other.endswith(signature) and _signature(other) == signature
    }
    near = nearest(name, known, 0.6)
    operator = operators.find(known[near]) if near is not None else None
    return [operator] if operator is not None else []


@rule("ATN407", "derivative-duplicate", pure=True)
def derivative_duplicate(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """Two entries of derivatives.yaml are for one operator.

    torchgen uses the last one and drops the others silently.

    Bad:

    ```yaml derivatives.yaml
    - name: relu(Tensor self) -> Tensor
      self: threshold_backward(grad, result, 0)
    - name: relu(Tensor self) -> Tensor
      self: grad
    ```

    Good:

    ```yaml derivatives.yaml
    - name: relu(Tensor self) -> Tensor
      self: threshold_backward(grad, result, 0)
    - name: relu_(Tensor(a!) self) -> Tensor(a!)
      self: grad
    ```
    """
    first: dict[str, DerivativeEntry] = {}
    for entry in derivatives.entries:
        text, node = entry.text("name"), entry.get("name")
        if text is None or node is None:
            continue
        if text in first:
            message = f"`{_name(text)}` has an entry already; torchgen takes the last one only"
            yield found(entry, node, message, first[text].related(_named(first[text]), "the first one"))
        first.setdefault(text, entry)


def _named(entry: DerivativeEntry) -> Node:
    return entry.get("name") or entry.node


@rule("ATN408", "derivative-reserved-name", pure=True)
def derivative_reserved_name(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """An operator with a derivative has an argument whose name has another meaning in formulas.

    There, `result` is the output, and `grad_input_mask` says which gradients are needed. The argument needs another name in
    native_functions.yaml. The same holds for an argument that has a formula and the name of an output of its operator: the
    formula could be for either.

    Bad:

    ```yaml
    - func: fold(Tensor self, Tensor result) -> Tensor
      dispatch:
        CPU: fold
    ```

    ```yaml derivatives.yaml
    - name: fold(Tensor self, Tensor result) -> Tensor
      self: grad
    ```

    Good:

    ```yaml
    - func: fold(Tensor self, Tensor other) -> Tensor
      dispatch:
        CPU: fold
    ```

    ```yaml derivatives.yaml
    - name: fold(Tensor self, Tensor other) -> Tensor
      self: grad
    ```
    """
    for entry in derivatives.entries:
        yield from _derivative_reserved_name(entry)


def _derivative_reserved_name(entry: DerivativeEntry) -> Iterator[Diagnostic]:
    definition = definition_of(entry)
    if definition is None:
        return
    for name in ("grad_input_mask", "result"):
        if name in definition.arguments:
            message = (
                f"an argument of an operator with a derivative cannot be called `{name}`: formulas call it otherwise"
            )
            yield _of_argument(entry, name, message, entry.related(_named(entry), "its derivative"))
    returned = {value.name for value in definition.schema.returns if value.name}
    if returned.isdisjoint(definition.arguments):
        return
    for formula in (item for block in definition.blocks for item in block.formulas):
        for name in formula.names:
            if name in returned and name in definition.arguments:
                message = f"`{name}` is an argument and an output of the operator; torchgen cannot tell whose formula is meant"
                yield _of_argument(entry, name, message, entry.related(formula.span_of(name), "the formula"))


def _of_argument(entry: DerivativeEntry, name: str, message: str, related: Related) -> Diagnostic:
    """A finding at an argument where the operator is declared, and in the entry's copy of the schema otherwise."""
    definition = definition_of(entry)
    operator = definition.operator if definition is not None else None
    text = operator.entry.schema_text if operator is not None and not operator.generated else None
    declared = text.schema.argument(name) if text is not None and text.schema is not None else None
    if text is None or declared is None:
        return found(entry, argument_span(entry, name), message, related)
    return found(text.entry, text.span(declared.name_span), message, related)


def argument_span(entry: DerivativeEntry, name: str) -> Span:
    """The span of an argument's name in the entry's schema; the entire schema if it is not there."""
    text = entry.schema_text
    argument = text.parsed.schema.argument(name) if text is not None and text.parsed.schema is not None else None
    if text is None or argument is None:
        return _named(entry).span
    return text.span(argument.name_span)


@rule("ATN409", "derivative-of-variant", pure=True)
def derivative_of_variant(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """An entry of derivatives.yaml is for an out variant, or for the functional variant of an operator that writes.

    Out variants have no derivatives. torchgen treats such an entry as one for the functional operator with the same name,
    and may replace that one's entry, or fails if there is none. Likewise, an overload called `functional` counts as the
    operator that writes; the derivative belongs there.

    Bad:

    ```yaml derivatives.yaml
    - name: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
      self: grad
    ```

    Good:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self: grad
    ```
    """
    for entry in derivatives.entries:
        yield from _derivative_of_variant(entry)


def _derivative_of_variant(entry: DerivativeEntry) -> Iterator[Diagnostic]:
    definition, text = definition_of(entry), entry.schema_text
    if definition is None or text is None or not definition.known:
        return
    schema = definition.schema
    functional = "functional" in schema.overload
    if not functional and kind_of(schema) not in ("out", "scratch"):
        return
    what = (
        "the functional variant of an operator that writes" if functional else "an out variant, which has no derivative"
    )
    message = f"`{_name(text.text)}` is {what}; torchgen takes the entry for one of another `{base_name(schema.name)}`"
    yield found(text.entry, text.span(Span(0, len(text.text.partition("(")[0]))), message)
