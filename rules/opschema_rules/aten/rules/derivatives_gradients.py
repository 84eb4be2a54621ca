"""The gradients in formulas of derivatives.yaml: ``grad``, ``grads[i]``, ``grad_NAME``, ``grad_input_mask``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, listed
from opschema_cli.source.text import Edit, Span
from opschema_rules.aten.derivatives import Block, Formula, blocks_of
from opschema_rules.aten.findings import found
from opschema_rules.aten.formulas import gradient_indices, indexed_only, number_of, places, uses
from opschema_rules.aten.model import DerivativesFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.signatures import full_name

_MASK = re.compile(r"(?<!\w)grad_input_mask(?:\[(\d+)\])?")


@rule("ATN421", "gradient-index", pure=True)
def gradient_index(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A formula takes the gradient of an output that the operator does not have.

    `grads[i]` is the gradient of output number `i`, counted from 0 over the outputs that have derivatives according to
    `output_differentiability`. torchgen checks only the number of all outputs.

    Bad:

    ```yaml derivatives.yaml
    - name: relu(Tensor self) -> Tensor
      self: threshold_backward(grads[1], result, 0)
    ```

    Good:

    ```yaml derivatives.yaml
    - name: relu(Tensor self) -> Tensor
      self: threshold_backward(grad, result, 0)
    ```
    """
    for block in blocks_of(derivatives):
        for formula in block.backward:
            if "grads[" in formula.text:
                yield from _out_of_bounds(block, formula)


def _out_of_bounds(block: Block, formula: Formula) -> Iterator[Diagnostic]:
    outputs = block.definition.outputs
    differentiable = block.outputs if block.sound else None
    lists = any(value.type.inner is not None for _, value in outputs)
    for index, start, end in gradient_indices(formula.text):
        if index >= len(outputs):
            message = f"`{full_name(block.definition.schema)}` has {count(len(outputs), 'output')}; there is no `grads[{index}]`"
            yield found(formula.entry, formula.span(start, end), message)
        elif (
            differentiable is not None and index >= len(differentiable) and not lists and not block.uses_single_gradient
        ):
            message = f"only {listed(differentiable)} {'has' if len(differentiable) == 1 else 'have'} derivatives"
            yield found(formula.entry, formula.span(start, end), f"{message}; there is no `grads[{index}]`")


@rule("ATN422", "gradients-mixed", pure=True)
def gradients_mixed(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """The formulas of an entry name gradients in more than one way.

    `grad` implies that only the first output has a derivative, `grads[i]` and `grad_NAME` that several have. All formulas
    of an entry use one of the three.

    Bad:

    ```yaml
    - func: halves(Tensor self) -> (Tensor left, Tensor right)
      dispatch:
        CPU: halves
    ```

    ```yaml derivatives.yaml
    - name: halves(Tensor self) -> (Tensor left, Tensor right)
      self: halves_backward(grad, grads[1])
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
    ```
    """
    for block in blocks_of(derivatives):
        texts = [formula.text for formula in block.backward]
        if not any("grads" in text or "grad_" in text for text in texts):
            continue
        ways = [way for way in (_first(block, "grad"), _first(block, "grads"), _named(block)) if way is not None]
        if len(ways) > 1:
            (name, place), (other, second) = ways[:2]
            advice = "; write `grads[0]` for `grad`" if (name, other) == ("grad", "grads") else ""
            message = f"`{name}` and `{other}` are mixed; all formulas of an entry call gradients in one way{advice}"
            yield found(block.entry, place, message, block.entry.related(second, f"`{other}`"))


def _first(block: Block, name: str) -> tuple[str, Span] | None:
    """Return a gradient's name and its first place, if torchgen finds it."""
    for text, formula in zip(block.searched, block.backward, strict=True):
        if name in text and uses(text, name):
            return name, formula.span(*next(places(formula.text, name)))
    return None


def _named(block: Block) -> tuple[str, Span] | None:
    ways = (_first(block, name) for name in sorted(block.definition.gradient_names))
    return next((way for way in ways if way is not None), None)


@rule("ATN423", "gradient-first-only", fixable="unsafe", proof=WRITTEN, pure=True)
def gradient_first_only(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """The formulas of an entry use `grads[0]` and no other gradient.

    In that case the gradient is called `grad`, which also states that no other output has a derivative. If others have one,
    a formula is missing.

    Bad:

    ```yaml derivatives.yaml
    - name: relu(Tensor self) -> Tensor
      self: threshold_backward(grads[0], result, 0)
    ```

    Good:

    ```yaml derivatives.yaml
    - name: relu(Tensor self) -> Tensor
      self: threshold_backward(grad, result, 0)
    ```
    """
    for block in blocks_of(derivatives):
        indexed = [
            (formula, index, start, end)
            for formula in block.backward
            if "grads[" in formula.text
            for index, start, end in gradient_indices(formula.text)
        ]
        if (
            {index for _, index, _, _ in indexed} == {0}
            and indexed_only(block.searched)
            and not block.uses_single_gradient
        ):
            yield _only_first(block, [formula.span(start, end) for formula, _, start, end in indexed])


def _only_first(block: Block, spots: list[Span]) -> Diagnostic:
    message, why = "`grads[0]` is the only gradient; it is called `grad`", ""
    if block.outputs is None or len(block.outputs) != 1:
        message = "`grads[0]` is the only gradient here; it is called `grad`, or those of other outputs are forgotten"
        why = "no other output has a derivative then"
    path, text = block.entry.file.path, block.entry.file.source.text
    edits = tuple(FileEdit(path, Edit(spot, "grad")) for spot in spots)
    exact = all(text[spot.start : spot.end] == "grads[0]" for spot in spots)
    fix = Fix("write `grad`", edits, "unsafe" if why else "safe", why) if exact else None
    return found(block.entry, spots[0], message, fix=fix)


@rule("ATN424", "gradient-mask", pure=True)
def gradient_mask(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A formula uses `grad_input_mask` where it does not exist, or an element that it does not have.

    It is an array with a boolean for each name before the colon, and exists only if there are several. torchgen accepts the
    formula; the C++ does not compile, or reads beyond the array.

    Bad:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self, other: add_backward(grad, alpha, grad_input_mask[2])
    ```

    Good:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self, other: add_backward(grad, alpha, grad_input_mask[1])
    ```
    """
    for block in blocks_of(derivatives):
        for formula in block.backward:
            if "grad_input_mask" in formula.text and "grad_input_mask" not in block.definition.arguments:
                yield from _masks(formula)


def _masks(formula: Formula) -> Iterator[Diagnostic]:
    size = len(formula.names)
    for match in _MASK.finditer(formula.text):
        if size == 1:
            message = "`grad_input_mask` is there only in a formula for several arguments"
        elif match.group(1) is not None and number_of(match.group(1)) >= size:
            message = f"`grad_input_mask` has {size} elements here, one for each of {listed(formula.names)}"
        else:
            continue
        yield found(formula.entry, formula.span(*match.span()), message)
