"""Operators and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count
from opschema_cli.source.pieces import Piece
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_cli.suggestions import suggested
from opschema_rules.aten.findings import found, unknown
from opschema_rules.paddle.grammar import Parsed
from opschema_rules.paddle.model import OpEntry


@rule("PDL301", "unpaired-gradient")
def unpaired_gradient(entry: OpEntry) -> Iterator[Diagnostic]:
    """An operator and a gradient that do not name each other.

    `backward` of an operator names its gradient, and `forward` of the gradient names the operator. Both must be in the same group
    of files: `ops.yaml` and `backward.yaml` with `inconsistent/dygraph_*.yaml`; `fused_ops.yaml` and `fused_backward.yaml`; and so
    on. The generator stops if the gradient does not exist or names another operator. If the operator has no `backward`, its
    gradient is never called, and the rule gives a warning.

    Bad:

    ```yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
      backward : half_gard
    ```

    ```yaml backward.yaml
    - backward_op : half_grad
      forward : half (Tensor x) -> Tensor(out)
      args : (Tensor out_grad)
      output : Tensor(x_grad)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half_grad}
    ```

    Good:

    ```yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
      backward : half_grad
    ```

    ```yaml inconsistent/dygraph_backward.yaml
    - backward_op : half_grad
      forward : half (Tensor x) -> Tensor(out)
      args : (Tensor out_grad)
      output : Tensor(x_grad)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half_grad}
    ```
    """
    yield from _backward(entry, entry.text_of("backward"))
    if entry.is_backward and entry.forward.name is not None:
        yield from _forward(entry, *entry.placed([entry.forward.name], "forward"))


def _backward(entry: OpEntry, name: str) -> Iterator[Diagnostic]:
    node = entry.get("backward")
    if node is None or not name:
        return
    gradients = [item for item in entry.listed.tree.named(name, entry) if item.is_backward]
    # Functions like `add_n_impl()`, and their gradients, are written by hand.
    if not gradients and "_impl(" not in entry.text_of("invoke"):
        yield from _undeclared(entry, Piece(name, node.span), "gradient")
    others = [(item, item.forward.name.text) for item in gradients if item.forward.name is not None]
    if gradients and len(others) == len(gradients) and all(text != entry.name for _, text in others):
        other, text = others[0]
        message = f"`{entry.name}` names the gradient `{name}`, whose `forward` is `{text}`"
        yield found(entry, node, message, other.related(other.get("forward") or other.place, "its `forward`"))


def _forward(entry: OpEntry, name: Piece) -> Iterator[Diagnostic]:
    operators = entry.listed.tree.named(name.text, entry)
    if not operators:
        yield from _undeclared(entry, name, "operator")
    if operators and all(item.get("backward") is None for item in operators):
        message = f"`{entry.name}` is never called: its operator `{name.text}` has no `backward`"
        related = operators[0].related(operators[0].place, "the operator")
        yield found(entry, name.span, message, related, severity=Severity.WARNING)


def _undeclared(entry: OpEntry, name: Piece, what: str) -> Iterator[Diagnostic]:
    tree = entry.listed.tree
    if not tree.may_be_elsewhere(name.text, entry):
        message = f"no entry in this group of files declares `{name.text}`, the {what} of `{entry.name}`"
        yield unknown(entry, name.span, name.text, tree.beside(entry), message)


@rule("PDL302", "forward-differs")
def forward_differs(entry: OpEntry) -> Iterator[Diagnostic]:
    """A `forward` that differs from its operator.

    `forward` of a gradient repeats the arguments and outputs of the operator. The generators compare the types in order
    (`cross_validate`, `ForwardsValidationCheck`): trailing attributes may be left out, and `Scalar` stands for all scalars. Names
    may differ, since arguments are matched by position. Swapped names give a warning: a kernel that takes them by the operator's
    names gets the wrong tensor.

    Bad:

    ```yaml
    - op : lerp
      args : (Tensor x, Tensor y, int n)
      output : Tensor(out)
      infer_meta : {func : LerpInferMeta}
      kernel : {func : lerp}
      backward : lerp_grad
    ```

    ```yaml backward.yaml
    - backward_op : lerp_grad
      forward : lerp (Tensor y, Tensor x, float n) -> Tensor(out), Tensor(mask)
      args : (Tensor x, Tensor y, Tensor out_grad, float n)
      output : Tensor(x_grad), Tensor(y_grad)
      infer_meta : {func : LerpGradInferMeta}
      kernel : {func : lerp_grad}
    ```

    Good (other names, `Scalar` for `Scalar(int)`, and a trailing attribute left out):

    ```yaml
    - op : lerp
      args : (Tensor x, Tensor y, Scalar(int) n, bool exact = false)
      output : Tensor(out)
      infer_meta : {func : LerpInferMeta}
      kernel : {func : lerp}
      backward : lerp_grad
    ```

    ```yaml backward.yaml
    - backward_op : lerp_grad
      forward : lerp (Tensor start, Tensor end, Scalar n) -> Tensor(out)
      args : (Tensor start, Tensor end, Tensor out_grad, Scalar n)
      output : Tensor(start_grad), Tensor(end_grad)
      infer_meta : {func : LerpGradInferMeta}
      kernel : {func : lerp_grad}
    ```
    """
    repeated, node = entry.forward, entry.get("forward")
    operators = entry.listed.tree.named(repeated.name.text, entry) if repeated.name is not None else []
    if node is None or repeated.errors or len(operators) != 1 or not operators[0].is_sound:
        return
    operator = operators[0]
    for span, here, there in _differences(repeated, operator.signature, entry.eager):
        target = entry.inner(node, span) if span is not None else node.span
        message = f"`forward` has {here}, but `{operator.name}` has {there}"
        severity = Severity.WARNING if there.endswith(_SWAPPED) else Severity.ERROR
        yield found(entry, target, message, operator.declared(), severity=severity)


_SWAPPED = "in this position"


def _differences(repeated: Parsed, declared: Parsed, eager: bool) -> Iterator[tuple[Span | None, str, str]]:
    for what, here in repeated.parts.items():
        there = declared.parts[what]
        exact = what == "output" or (what == "input" and eager and repeated.attributes)
        if len(here) > len(there) or (exact and len(here) != len(there)):
            yield None, count(len(here), what), str(len(there))
            continue
        for one, other in zip(here, there, strict=False):
            if one.type != other.type and not (one.type == "Scalar" and other.type.startswith("Scalar(")):
                yield one.span, f"`{one.type} {one.name}`", f"`{other.type} {other.name}`"
        names, others = [one.name for one in here], [one.name for one in there]
        if names != others and sorted(names) == sorted(others):
            at = next(index for index, (one, other) in enumerate(zip(names, others, strict=True)) if one != other)
            yield here[at].span, f"`{names[at]}`", f"`{others[at]}` {_SWAPPED}"


@rule("PDL303", "gradient-signature")
def gradient_signature(entry: OpEntry) -> Iterator[Diagnostic]:
    """Arguments or outputs of a gradient that do not follow from its `forward`.

    In eager mode, each input of a gradient must be an input of the operator, an output of it, or the gradient of an output
    (`out_grad` for `out`). Each output must be the gradient of an input. Each attribute must be one of the operator's or have a
    default (`BackwardAPI.check_args`, `SlotNameMatching`). For other gradients, only the numbers of inputs, attributes and
    outputs are checked.

    Bad:

    ```yaml backward.yaml
    - backward_op : half_grad
      forward : half (Tensor x, int axis) -> Tensor(out)
      args : (Tensor input, Tensor output_grad, float axis)
      output : Tensor(y_grad)
      infer_meta : {func : HalfGradInferMeta}
      kernel : {func : half_grad}
    ```

    Good (the gradient of a gradient):

    ```yaml backward.yaml
    - backward_op : half_double_grad
      forward : half_grad (Tensor x, Tensor grad_out, int axis) -> Tensor(grad_x)
      args : (Tensor x, Tensor grad_x_grad, int axis, bool exact = false)
      output : Tensor(x_grad), Tensor(grad_out_grad)
      infer_meta : {func : HalfGradInferMeta}
      kernel : {func : half_double_grad}
    ```
    """
    forward, tree = entry.forward, entry.listed.tree
    if forward.name is None or forward.errors or not entry.is_sound:
        return
    operator = forward.name.text
    if not tree.named(operator, entry) and tree.may_be_elsewhere(operator, entry):
        return
    related = entry.related(entry.get("forward") or entry.place, "its `forward`")
    named = chain(_arguments(entry, forward, operator), _outputs(entry, forward, operator))
    differences = named if entry.eager else _numbers(entry, forward)
    yield from (found(entry, place, message, related) for place, message in differences)


def _arguments(entry: OpEntry, forward: Parsed, operator: str) -> Iterator[tuple[Node | Span, str]]:
    inputs, outputs = [item.name for item in forward.inputs], [item.name for item in forward.outputs]
    for arg in entry.signature.inputs:
        if arg.name not in (*inputs, *outputs) and _of_gradient(arg.name) not in outputs:
            near = suggested(arg.name, [*inputs, *outputs, *(f"{item}_grad" for item in outputs)])
            what = "an input, an output or the gradient of an output"
            yield entry.part(arg.name_span, "args"), f"`{arg.name}` is not {what} of `{operator}`{near}"
    attributes = {item.name: item for item in forward.attributes}
    for arg in (arg for arg in entry.signature.attributes if arg.default is None):
        same, place = attributes.get(arg.name), entry.part(arg.span, "args")
        if same is None:
            near = suggested(arg.name, attributes)
            yield place, f"`{arg.name}` is not an attribute of `{operator}`, and has no default{near}"
        elif not _alike(arg.type, same.type):
            yield place, f"the gradient has `{arg.type} {arg.name}`, but `{operator}` has `{same.type} {same.name}`"


def _outputs(entry: OpEntry, forward: Parsed, operator: str) -> Iterator[tuple[Node | Span, str]]:
    inputs = [item.name for item in forward.inputs]
    intermediate = {item.text for item in entry.names("intermediate")}
    for item in entry.signature.outputs:
        if item.name not in intermediate and _of_gradient(item.name) not in inputs:
            near = suggested(item.name, [f"{one}_grad" for one in inputs])
            message = f"the output `{item.name}` is not the gradient of an input of `{operator}`{near}"
            yield entry.part(item.name_span, "output"), message


def _numbers(entry: OpEntry, forward: Parsed) -> Iterator[tuple[Node | Span, str]]:
    args, outputs = entry.signature.attributes, entry.signature.outputs
    if len(outputs) > len(forward.inputs) and entry.name != "fused_attention_grad":
        inputs = count(len(forward.inputs), "input")
        message = f"`{entry.name}` has {count(len(outputs), 'output')}, but its operator has only {inputs}"
        yield entry.get("output") or entry.place, message
    if len(entry.signature.inputs) > len(forward.inputs) + 2 * len(forward.outputs):
        message = f"`{entry.name}` has more inputs than its operator has inputs, outputs and output gradients together"
        yield entry.get("args") or entry.place, message
    for arg in args[len(forward.attributes) :]:
        if arg.default is None:
            message = f"`{entry.name}` has more attributes than its operator, and `{arg.name}` has no default"
            yield entry.part(arg.span, "args"), message


def _of_gradient(name: str) -> str:
    return name.removesuffix("_grad") if name.endswith("_grad") else ""


def _alike(one: str, other: str) -> bool:
    return one == other or (one.startswith("Scalar") and other.startswith("Scalar") and "[]" not in one + other)
