"""Forward derivatives in derivatives.yaml: the formulas of outputs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.schema.operator_schema import Argument
from opschema_rules.aten.derivatives import Block, Formula, blocks_of
from opschema_rules.aten.findings import found
from opschema_rules.aten.foreach import is_foreach
from opschema_rules.aten.formulas import element_wise, places, uses
from opschema_rules.aten.model import DerivativesFile
from opschema_rules.aten.signatures import full_name


def _is_tensor_list(argument: Argument) -> bool:
    """Whether it is a ``Tensor[]``, which a formula handles entirely by itself."""
    inner = argument.type.inner
    return inner is not None and not argument.type.optional and inner.name == "Tensor"


def _unpacked(block: Block) -> list[Argument]:
    """The arguments with formulas whose primal and tangent forward formulas get."""
    return [item for item in block.differentiable if is_foreach(block.definition.schema) or not _is_tensor_list(item)]


@rule("ATN431", "forward-base-name", pure=True)
def forward_base_name(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A forward formula uses an argument by its bare name.

    For an argument `x` with a backward formula it is ambiguous: `x_p` is the value and `x_t` the tangent. Arguments without
    one, and lists of tensors, keep their names.

    Bad:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      self: grad * 2 * self
      result: 2 * self * self_t
    ```

    Good:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      self: grad * 2 * self
      result: 2 * self_p * self_t
    ```
    """
    for block in blocks_of(derivatives):
        if block.forward:
            names = [item.name for item in _unpacked(block)]
            for formula in block.forward:
                yield from _bare(formula, names)


def _bare(formula: Formula, names: list[str]) -> Iterator[Diagnostic]:
    for name in names:
        if name in formula.text:
            for span in places(formula.text, name):
                message = f"`{name}` is ambiguous here; write `{name}_p` for its value or `{name}_t` for its tangent"
                yield found(formula.entry, formula.span(*span), message)


@rule("ATN432", "forward-automatic", pure=True)
def forward_automatic(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """`auto_element_wise` or `auto_linear` is used where torchgen cannot derive a formula.

    Both are forward formulas of an operator's only differentiable output. `auto_element_wise` is derived from the backward
    formula: only one argument may have one, the operator must not be in-place, and two uses of the argument there must be
    more than one character apart (`self * self`, not `self*self`). `auto_linear` calls the operator on tangents, so at
    least one argument needs a backward formula.

    Bad:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self: grad
      other: grad * alpha
      result: auto_element_wise
    ```

    Bad, no backward formula:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      result: auto_linear
    ```

    Good:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self: grad
      other: grad * alpha
      result: auto_linear
    - name: square(Tensor self) -> Tensor
      self: grad * 2 * self
      result: auto_element_wise
    ```
    """
    for block in blocks_of(derivatives):
        for formula in block.formulas:
            if formula.kind == "backward" and formula.is_automatic:
                message = f"`{formula.text.strip()}` is for outputs; the formula of an argument is written out"
                yield found(formula.entry, formula.whole, message)
            elif formula.is_automatic and block.sound and formula.kind == "forward":
                fault = _automatic_fault(block, formula)
                if fault:
                    yield found(formula.entry, formula.whole, fault)
                elif formula.text == "auto_element_wise":
                    yield from _rewritten(block)


def _automatic_fault(block: Block, formula: Formula) -> str:
    word, element = formula.text, formula.text == "auto_element_wise"
    outputs = [name for item in block.forward for name in item.names]
    if element and block.definition.in_place:
        return f"`{word}` is not for in-place operators, of which `{full_name(block.definition.schema)}` is one"
    if len(outputs) > 1:
        return f"`{word}` is for a single differentiable output; {listed(outputs)} have formulas"
    if element and len(block.differentiable) != 1:
        names = [item.name for item in block.differentiable]
        said = f"{listed(names)} have backward formulas" if names else "no argument has a backward formula"
        return f"`{word}` is made of the backward formula of one argument; {said}"
    if not element and not block.differentiable:
        return f"`{word}` calls the operator on tangents; no argument has a backward formula"
    return ""


def _rewritten(block: Block) -> Iterator[Diagnostic]:
    """Names in a backward formula that torchgen misses because its pattern also takes the characters around a name."""
    name = block.differentiable[0].name
    if _is_tensor_list(block.differentiable[0]) or len(block.backward) != 1:
        return
    formula = block.backward[0]
    if uses(element_wise(formula.text, name), name):
        spans = list(places(formula.text, name))
        close = next((two for one, two in pairwise(spans) if two[0] - one[1] == 1), spans[-1])
        message = (
            f"`auto_element_wise` misses this `{name}`, one character behind another; put spaces around the operator"
        )
        yield found(formula.entry, formula.span(*close), message)


@rule("ATN433", "forward-original-self", pure=True)
def forward_original_self(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """The forward formula of an in-place operator uses the value that the operator overwrites.

    `self_p` is already the result when the formula runs. Write `result` if that is meant, or `original_self_p`, for which
    the value is cloned first.

    Bad:

    ```yaml derivatives.yaml
    - name: relu_(Tensor(a!) self) -> Tensor(a!)
      self: threshold_backward(grad, result, 0)
      result: self_t * (self_p > 0)
    ```

    Good:

    ```yaml derivatives.yaml
    - name: relu_(Tensor(a!) self) -> Tensor(a!)
      self: threshold_backward(grad, result, 0)
      result: self_t * (result > 0)
    ```
    """
    for block in blocks_of(derivatives):
        if block.definition.in_place:
            for formula in block.forward:
                for span in places(formula.text, "self_p"):
                    message = (
                        "`self_p` is overwritten when this runs; write `result`, or `original_self_p` for the old value"
                    )
                    yield found(formula.entry, formula.span(*span), message)


@rule("ATN434", "forward-outputs", pure=True, by_release=True)
def forward_outputs(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """Forward derivatives do not cover the outputs that have derivatives.

    If one output has a forward formula, each output with a derivative needs one, and no other output can have one: not
    those that `output_differentiability` excludes, and only the first if a backward formula uses `grad`. An output that is
    neither a tensor nor a list of them has none.

    Bad:

    ```yaml
    - func: halves(Tensor self) -> (Tensor left, Tensor right)
      dispatch:
        CPU: halves
    ```

    ```yaml derivatives.yaml
    - name: halves(Tensor self) -> (Tensor left, Tensor right)
      self: halves_backward(grad_left, grad_right)
      left: self_t / 2
    ```

    Good:

    ```yaml
    - func: halves(Tensor self) -> (Tensor left, Tensor right)
      dispatch:
        CPU: halves
    ```

    ```yaml derivatives.yaml
    - name: halves(Tensor self) -> (Tensor left, Tensor right)
      self: halves_backward(grad_left, grad_right)
      left: self_t / 2
      right: self_t - left
    ```
    """
    for block in blocks_of(derivatives):
        if block.forward and block.sound and block.outputs is not None and block.requires_derivative:
            yield from _covered(block, block.outputs)


def _covered(block: Block, wanted: tuple[str, ...]) -> Iterator[Diagnostic]:
    types = {name: value.type for name, value in block.definition.outputs}
    for formula in block.forward:
        for name in formula.names:
            if name not in types:
                continue
            of = types[name]
            simple = str(of) == "Tensor" or (of.is_list and of.base == "Tensor" and len(formula.names) == 1)
            if not simple:
                yield found(
                    formula.entry,
                    formula.span_of(name),
                    f"`{name}` is a `{of}`, for which torchgen writes no forward derivative",
                )
                return
            if name not in wanted and not block.definition.in_place:
                why = (
                    "backward formulas say `grad`"
                    if block.definition.output_flags is None
                    else "`output_differentiability` says so"
                )
                yield found(formula.entry, formula.span_of(name), f"the output `{name}` has no derivative, as {why}")
                return
    given = [name for formula in block.forward for name in formula.names]
    missing = [name for name in wanted if name not in given]
    if len(given) != len(wanted) and missing:
        message = f"{listed(missing)} {_has(missing)} a derivative and no forward formula, which another output has"
        yield found(block.forward[0].entry, block.forward[0].span_of(block.forward[0].names[0]), message)


def _has(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"


@rule("ATN435", "forward-without-tangent", pure=True, by_release=True)
def forward_without_tangent(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A forward formula uses no tangent.

    A forward derivative is linear in the tangents `x_t` of the arguments with backward formulas. torchgen accepts a formula
    without any only if the operator's one tensor input is a list.

    Bad:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      self: grad * 2 * self
      result: 2 * self_p
    ```

    Good:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      self: grad * 2 * self
      result: 2 * self_p * self_t
    ```
    """
    for block in blocks_of(derivatives):
        if not (block.forward and block.sound and block.requires_derivative) or is_foreach(block.definition.schema):
            continue
        if len(block.inputs) == 1 and block.inputs[0].type.is_list:
            continue
        names = [item.name for item in _unpacked(block)]
        for formula in block.forward:
            if not (formula.is_automatic or any(uses(formula.text, f"{name}_t") for name in names)):
                wanted = f"; it uses one of {listed([f'{name}_t' for name in names])}" if names else ""
                yield found(
                    formula.entry, formula.whole, f"a forward formula needs a tangent, and this one has none{wanted}"
                )
