"""The C++ of backward formulas in derivatives.yaml: text that torchgen rejects, or that does not compile."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.schema.operator_schema import SchemaType
from opschema_cli.source.text import Span
from opschema_cli.suggestions import nearest
from opschema_rules.aten.derivatives import Block, Definition, Formula, blocks_of
from opschema_rules.aten.findings import found, respelling
from opschema_rules.aten.formulas import FORBIDDEN, bare_words, places, unbalanced
from opschema_rules.aten.model import DerivativesFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.signatures import OPTIONS, is_tensor_like, kind_of

_STRIDES = re.compile(r".sym_strides\(\)", re.DOTALL)
_SAVED = ("Tensor", "int", "SymInt", "Scalar", "bool")
_SAVED_OPTIONAL = ("Tensor", "int", "SymInt", "float", "bool")
_LIKELY = re.compile(r"(?<![\w.>:\"])[A-Za-z_]\w*(?!\w|\s*\(|::)")
_OPTIONAL = re.compile(r"(?<!\w)wrap_opt_if\((\w+)\s*(,[^)]*\(|,[^)]*\)|[^,])")


@rule("ATN425", "derivative-unsaved-list", pure=True)
def derivative_unsaved_list(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A backward formula uses a list that torchgen cannot save for the backward pass.

    It saves lists of tensors, integers, SymInts and scalars, booleans in an array of fixed size, and optional lists of
    integers, SymInts and floats. For others, the generated code would keep a reference to memory that is freed by then, so
    torchgen rejects them, without naming the operator.

    Bad:

    ```yaml
    - func: blur(Tensor self, float[] widths) -> Tensor
      dispatch:
        CPU: blur
    ```

    ```yaml derivatives.yaml
    - name: blur(Tensor self, float[] widths) -> Tensor
      self: blur_backward(grad, widths)
    ```

    Good:

    ```yaml
    - func: blur(Tensor self, float[]? widths) -> Tensor
      dispatch:
        CPU: blur
    ```

    ```yaml derivatives.yaml
    - name: blur(Tensor self, float[]? widths) -> Tensor
      self: blur_backward(grad, widths)
    ```
    """
    for block in blocks_of(derivatives):
        lists = [item for item in block.definition.arguments.values() if item.type.inner and not _is_saved(item.type)]
        for formula in block.backward if lists else ():
            for item in lists:
                for span in places(formula.text, item.name):
                    message = f"torchgen cannot save `{item.name}`, a `{item.type}`, for the backward pass"
                    yield found(formula.entry, formula.span(*span), message)


def _is_saved(of: SchemaType) -> bool:
    """Whether there is a way to save it (the cases of ``gen_autograd_functions.process_function``)."""
    items = of.inner if of.optional else of
    if items is None or not items.is_list or items.inner is None:
        return True
    if items.inner.inner is not None:
        return items.inner.base == "Tensor"
    return items.inner.name in (_SAVED_OPTIONAL if of.optional else _SAVED)


@rule("ATN426", "derivative-accessor", fixable="unsafe", proof=WRITTEN, pure=True, by_release=True)
def derivative_accessor(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A formula asks a tensor for `.sizes()`, `.size(i)` or `.strides()`.

    They fail for tensors with symbolic shapes, so torchgen rejects them: `.sym_sizes()`, `.sym_size(i)` and
    `.sym_strides()` replace them. The fix is unsafe because a function that gets the result must take SymInts (often one
    called `..._symint`).

    Bad:

    ```yaml derivatives.yaml
    - name: expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
      self: at::sum_to(grad, self.sizes())
    ```

    Good:

    ```yaml derivatives.yaml
    - name: expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
      self: at::sum_to(grad, self.sym_sizes())
    ```
    """
    for block in blocks_of(derivatives) if not derivatives.torchgen.autograd.takes_sizes else ():
        for formula in block.backward:
            if "size" in formula.text or "strides" in formula.text:
                yield from _accessors(formula)


def _accessors(formula: Formula) -> Iterator[Diagnostic]:
    for match in FORBIDDEN.finditer(formula.text):
        span, said = Span(*match.span(1)), match.group(1)
        message = f"`{said}` fails for symbolic shapes; torchgen wants `sym_{said}`"
        why = "the function that takes the result must accept SymInts"
        fix = respelling(formula.entry, formula.node, span, f"sym_{said}", why_unsafe=why)
        yield found(formula.entry, formula.span(*span), message, fix=fix)


@rule("ATN427", "derivative-strides", pure=True)
def derivative_strides(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A formula asks for the strides of a tensor other than the one that its gradient is for.

    torchgen saves strides in a way that works only if `x.sym_strides()` is used in the formula of `x` alone, and not for
    the `self` of an in-place operator, including an in-place variant that takes its derivative from the functional
    operator.

    Bad:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self: add_backward(grad, other.sym_strides())
    ```

    Bad, an in-place operator:

    ```yaml derivatives.yaml
    - name: relu_(Tensor(a!) self) -> Tensor(a!)
      self: relu_backward(grad, self.sym_strides())
    ```

    Good:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      other: add_backward(grad, other.sym_strides())
    ```
    """
    for block in blocks_of(derivatives):
        for formula in block.backward:
            if "sym_strides()" in formula.text:
                yield from _strides(block, formula)


def _strides(block: Block, formula: Formula) -> Iterator[Diagnostic]:
    definition = block.definition
    owners = [*definition.arguments, *(name for name, _ in definition.outputs)]
    for match in _STRIDES.finditer(formula.text):
        # torchgen's pattern has no word boundary: it finds `x.sym_strides()` in `max.sym_strides()`, too.
        name = next((name for name in owners if formula.text.endswith(name, 0, match.start())), None)
        if name is None:
            continue
        place = formula.span(match.start() - len(name), match.end())
        if formula.names != (name,):
            message = f"strides of `{name}` can be asked for only in a formula for `{name}` alone"
            yield found(block.entry, place, message, block.entry.related(formula.key, "the formula is for these"))
        elif name == "self" and (variant := _in_place(definition)):
            message = f"the strides of `self` cannot be saved for `{variant}`, which writes it"
            yield found(block.entry, place, message)


def _in_place(definition: Definition) -> str:
    """The in-place operator that the formulas are for, or that takes them over; empty without one."""
    if definition.in_place:
        return definition.schema.name
    return next((item.name for item in definition.heirs if kind_of(item.schema) == "inplace"), "")


@rule("ATN428", "derivative-unbalanced", pure=True)
def derivative_unbalanced(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A bracket in a formula is unbalanced.

    torchgen copies formulas into C++ unchanged; the compiler then complains about generated code. Brackets in strings and
    comments do not count.

    Bad:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      self: grad * (2 * self
    ```

    Good:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      self: grad * (2 * self)
      result: self_t * scale(self_p, "(")
    ```
    """
    for block in blocks_of(derivatives):
        for formula in block.formulas:
            fault = unbalanced(formula.text)
            if fault is not None:
                yield found(formula.entry, formula.span(fault[0], fault[0] + 1), f"the formula is not C++: {fault[1]}")


@rule("ATN429", "derivative-unknown-variable", severity="warning", pure=True)
def derivative_unknown_variable(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A formula uses a name that is not an argument, output or gradient of the operator.

    A formula uses the operator's arguments, its outputs (`result`, or their names), `grad`, `grads`, `grad_NAME`, and in
    forward formulas `x_p` and `x_t` for each argument `x` with a backward formula. torchgen treats any other name as C++.
    This rule reports names in lower case, since the code around the formula has none of these, and others that look like a
    typo; in formulas with statements (`;`), which may declare names, it reports only the latter. Functions, members, and names
    with a namespace are not checked.

    Bad:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      self: grad * 2 * slef
    ```

    Bad, an output by its number, where outputs have names:

    ```yaml
    - func: tanh(Tensor self) -> (Tensor values, Tensor scale)
      dispatch:
        CPU: tanh
    ```

    ```yaml derivatives.yaml
    - name: tanh(Tensor self) -> (Tensor values, Tensor scale)
      self: grad * result1
    ```

    Bad, a tangent of an argument without a formula:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self: grad
      result: self_t + other_t * alpha
    ```

    Good:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self: grad * M_PI
      other: grad * alpha
      result: self_t + other_t * alpha
    ```
    """
    for block in blocks_of(derivatives):
        if block.sound:
            known = _variables(block)
            for formula in block.backward:
                yield from _strangers(block, formula, known)
            forward = (known - _GRADIENTS) | _forward_variables(block) if block.forward else known
            for formula in block.forward:
                if not formula.is_automatic:
                    yield from _strangers(block, formula, forward)


_WORDS = """
    grad grads grad_input_mask retain_variables true false nullptr auto return const i Tensor TensorList Scalar SymInt
    non_differentiable auto_linear auto_element_wise bool int double float
    not and or void char long short unsigned signed this nullopt static_cast
    size_t scalar_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
"""
_ALWAYS = frozenset(_WORDS.split())
_GRADIENTS = frozenset({"grad", "grads", "grad_input_mask"})


def _variables(block: Block) -> frozenset[str]:
    definition = block.definition
    known = {*_ALWAYS, *definition.arguments, *(name for name, _ in definition.outputs), *definition.gradient_names}
    return frozenset(known | {"options", *(name for name, _ in OPTIONS)} if definition.has_options else known)


def _forward_variables(block: Block) -> frozenset[str]:
    names = [item.name for item in block.differentiable]
    own = ["original_self"] if block.definition.in_place else []
    return frozenset(f"{name}{suffix}" for name in [*names, *own] for suffix in ("_p", "_t"))


def _strangers(block: Block, formula: Formula, known: frozenset[str]) -> Iterator[Diagnostic]:
    if known.issuperset(_LIKELY.findall(formula.text)):
        return
    for word, start in bare_words(formula.text).items():
        is_template = formula.text.startswith("<", start + len(word))
        if word not in known and not is_template:
            message = _slip(block, formula, word, known)
            if message:
                yield found(
                    formula.entry, formula.span(start, start + len(word)), f"nothing is called `{word}` here{message}"
                )


def _slip(block: Block, formula: Formula, word: str, known: frozenset[str]) -> str:
    if word in ("non_differentiable", "auto_linear", "auto_element_wise"):
        return ""
    base, suffix = word[:-2], word[-2:]
    argument = block.definition.arguments.get(base)
    if formula.kind == "forward" and suffix in ("_p", "_t") and argument is not None and is_tensor_like(argument.type):
        return f"; `{base}` has no backward formula"
    if formula.kind == "backward" and suffix in ("_p", "_t") and argument is not None:
        return f"; a backward formula says `{base}`"
    if word in _GRADIENTS:
        return "; a forward formula is made of tangents: `x_t` for an argument `x`"
    output = word.removeprefix("grad_")
    if output != word and any(name == output for name, _ in block.definition.outputs):
        return f"; the output `{output}` has no derivative"
    near = nearest(word, known, 0.74) if len(word) > 2 else None
    if near is not None and near not in _KEYWORDS:
        return f"; did you mean `{near}`?"
    return _absent(block, word) if _PLAIN.fullmatch(word) and ";" not in formula.text else ""


def _absent(block: Block, word: str) -> str:
    """The names that the operator has, of the kind that a name of C++ seems to be meant as."""
    outputs = [name for name, _ in block.definition.outputs]
    if word.rstrip("0123456789") == "result" and outputs:
        return f"; the output{'s are' if len(outputs) > 1 else ' is'} called {listed(outputs)}"
    arguments = list(block.definition.arguments)
    return f"; the arguments are {listed(arguments)}" if arguments else "; the operator takes no arguments"


_PLAIN = re.compile(r"[a-z][a-z0-9_]*")
_KEYWORDS = _ALWAYS - {"grad", "grads", "grad_input_mask", "retain_variables", "auto_linear", "auto_element_wise"}


@rule("ATN430", "derivative-wrapped-optional", pure=True)
def derivative_wrapped_optional(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """`wrap_opt_if` is not written in the form that torchgen parses.

    `wrap_opt_if(x, condition)` saves the argument `x` only if the condition holds. torchgen reads the condition up to the
    first closing bracket, so it cannot contain any, and fails if no comma follows the name.

    Bad:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self, other: add_backward(grad, wrap_opt_if(self), alpha)
    ```

    Bad, brackets in the condition:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self, other: add_backward(grad, wrap_opt_if(self, (grad_input_mask[0])), alpha)
    ```

    Good:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self, other: add_backward(grad, wrap_opt_if(self, grad_input_mask[0]), alpha)
    ```
    """
    for block in blocks_of(derivatives):
        for formula in block.backward:
            for match in _OPTIONAL.finditer(formula.text) if "wrap_opt_if" in formula.text else ():
                name, behind = match.groups()
                if name not in block.definition.arguments or len(formula.names) == 1:
                    continue
                if not behind.startswith(","):
                    message = f"`wrap_opt_if({name}` is followed by no condition; it takes a tensor and when to save it"
                    yield found(formula.entry, formula.span(*match.span(1)), message)
                elif behind.endswith("("):
                    message = "torchgen reads the condition up to the first `)`; it can hold no brackets"
                    yield found(formula.entry, formula.span(match.end() - 1, match.end()), message)
