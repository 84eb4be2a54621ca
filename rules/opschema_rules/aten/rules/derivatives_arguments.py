"""The names before the colons of derivatives.yaml, which have the formulas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.suggestions import nearest
from opschema_rules.aten.derivatives import Block, Definition, Formula, blocks_of
from opschema_rules.aten.findings import found
from opschema_rules.aten.model import DerivativeEntry, DerivativesFile
from opschema_rules.aten.rules.derivatives_schemas import argument_span
from opschema_rules.aten.signatures import full_name, is_tensor_like

_MANY = 6


@rule("ATN411", "derivative-unknown-name", pure=True)
def derivative_unknown_name(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A formula is given for a name that is neither an argument nor an output of the operator.

    A key of an entry names arguments (a gradient), or outputs (a forward derivative), separated by commas. An output has
    the name that the schema gives it, else `result`, or `result0`, `result1` ... if there are several. torchgen treats any
    unknown first name as an output, and fails with a `KeyError` or `IndexError` on others; some it drops silently.

    Bad:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self: grad
      otehr: grad * alpha
    ```

    Bad, an output that is not there, and a key that names an argument and an output:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self: grad
      result1: self_t
      other, result: grad
    ```

    Good:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self, other: add_backward(grad, alpha)
      result: self_t + other_t * alpha
    ```
    """
    for block in blocks_of(derivatives):
        if not block.sound:
            for formula in block.formulas:
                if formula.kind == "unknown":
                    yield from _unknown(formula, block.definition)


def _unknown(formula: Formula, definition: Definition) -> Iterator[Diagnostic]:
    arguments = [name for name in formula.names if name in definition.arguments]
    strangers = [name for name in formula.names if name not in arguments and not definition.is_output(name)]
    for name in dict.fromkeys(strangers):
        if name == "options" and definition.has_options:
            message = "`options` stands for dtype, layout, device and pin_memory; only tensors have derivatives"
        elif not name:
            message = "a name is missing beside the comma"
        else:
            message = (
                f"`{name}` is not an argument or output of `{full_name(definition.schema)}`{_meant(name, definition)}"
            )
        yield found(formula.entry, formula.span_of(name), message, *((_schema(formula.entry),) if name else ()))
    if not strangers:
        outputs = [name for name in formula.names if name not in arguments]
        message = f"a formula is for arguments or for outputs: {listed(arguments)} and {listed(outputs)} need one each"
        yield found(formula.entry, formula.span_of(outputs[0]), message)


def _schema(entry: DerivativeEntry) -> Related:
    return entry.related(entry.get("name") or entry.node, "its schema")


def _meant(name: str, definition: Definition) -> str:
    outputs = [known for known, _ in definition.outputs]
    tensors = [item.name for item in definition.arguments.values() if is_tensor_like(item.type)]
    if name.startswith("result"):
        return f"; {'its output is' if len(outputs) == 1 else 'its outputs are'} {listed(outputs)}" if outputs else ""
    near = nearest(name, [*tensors, *outputs], 0.6)
    if near is not None:
        return f"; did you mean `{near}`?"
    return f"; its tensors are {listed(tensors[:_MANY])}" if tensors else ""


@rule("ATN412", "derivative-name-twice", pure=True)
def derivative_name_twice(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """An argument or output has two formulas in one entry.

    torchgen rejects an argument that has a formula and is `non_differentiable`; of two formulas, it computes both and keeps
    one.

    Bad:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self, other: add_backward(grad, alpha)
      other: non_differentiable
    ```

    Good:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self: grad
      other: non_differentiable
    ```
    """
    for block in blocks_of(derivatives):
        names = [name for formula in block.formulas for name in formula.names]
        if len(set(names)) == len(names):
            continue
        counts = Counter(names)
        for name in dict.fromkeys(names):
            if name and counts[name] > 1:
                yield _twice(block, name)


def _twice(block: Block, name: str) -> Diagnostic:
    spots = [(item, number) for item in block.formulas for number in range(item.names.count(name))]
    (first, _), (second, number) = spots[:2]
    if {first.kind, second.kind} == {"backward", "non-differentiable"}:
        message = f"`{name}` has a formula and is `non_differentiable`; keep one"
    else:
        message = f"`{name}` has two formulas; keep one"
    related = () if first is second else (block.entry.related(first.span_of(name), "the first one"),)
    return found(second.entry, second.span_of(name, number), message, *related)


@rule("ATN413", "derivative-of-no-tensor", pure=True)
def derivative_of_no_tensor(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A formula is for an argument that is not a tensor.

    Only tensors, lists of them and optional ones have derivatives. torchgen says "Missing arguments for derivatives" when
    it writes the C++. A scalar that needs a gradient has to be a tensor in another overload.

    Bad:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self: grad
      alpha: grad.sum()
    ```

    Good:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self: grad
      other: grad * alpha
    ```
    """
    for block in blocks_of(derivatives):
        arguments = block.definition.arguments
        for formula in block.backward:
            for name in formula.names:
                if not is_tensor_like(arguments[name].type):
                    message = f"`{name}` is a `{arguments[name].type}`; only tensors have derivatives"
                    yield found(
                        formula.entry,
                        formula.span_of(name),
                        message,
                        block.entry.related(argument_span(block.entry, name), "its type"),
                    )
