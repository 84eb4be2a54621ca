"""Gradients that ``backward`` takes and returns, against the operator's schema."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.schema.operator_schema import Argument
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.torchlib.gradients import (
    Gradient,
    gradients,
    is_gradient,
    spread,
)
from opschema_rules.torchlib.model import Operator
from opschema_rules.torchlib.places import declared

COUNTING_NONES = (2, 15)
"""The first release of torch that also counts `None`s at the end."""


@rule("REG301", "gradient-count", by_release=True, needs=(CPP,))
def gradient_count(operator: Operator) -> Iterator[Diagnostic]:
    """A `backward` that does not return one gradient for each argument.

    `backward` returns one value for each argument of the schema before `*`, including those without a gradient and those
    with defaults: `None` for these. Arguments after `*` do not count. If it returns fewer, it fails once a call passes the
    missing arguments. A list is one value, not several. From torch 2.15 on, `None`s behind the last gradient count too.

    Only `return` statements whose number of values is evident are checked: a tuple, `None`, one tensor.

    Bad:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor


    def setup_context(ctx, inputs, output):
        _, ctx.factor = inputs


    def backward(ctx, grad):
        return (grad * ctx.factor,)


    scale.register_autograd(backward, setup_context=setup_context)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, factor: float, *, clamp: bool = False) -> Tensor:
        return x * factor


    def setup_context(ctx, inputs, keyword_only_inputs, output):
        _, ctx.factor = inputs


    def backward(ctx, grad):
        if not ctx.needs_input_grad[0]:
            return None, None
        return grad * ctx.factor, None


    scale.register_autograd(backward, setup_context=setup_context)
    ```
    """
    for gradient in gradients(operator):
        if gradient.backward is not None:
            for value in gradient.backward.scope.returns:
                yield from _counted(gradient, gradient.backward, value)


def _counted(gradient: Gradient, backward: Body, value: Expr) -> Iterator[Diagnostic]:
    arguments = gradient.schema.positional
    is_list = value.kind in ("list", "dict")
    is_one = is_list or (value.kind == "const" and value.value is None) or is_gradient(gradient, backward, value)
    elements = spread(value)
    count = len(elements) if elements is not None else 1 if is_one else None
    one_list = is_list and len(arguments) == 1 and arguments[0].type.is_list
    if count is None or (count == len(arguments) and (one_list or not is_list)):
        return
    spare = elements[len(arguments) :] if elements is not None else ()
    tree = gradient.operator.tree
    ignored = bool(spare) and all(item.kind == "const" and item.value is None for item in spare)
    if ignored and tree.torch < COUNTING_NONES:
        return
    required = len([item for item in arguments if item.default is None])
    late = required <= count < len(arguments) and not is_list
    if late and _is_for_omitted(backward, value, len(arguments)):
        return
    told = f"a {value.kind}, which is one gradient," if is_list else times(count, "gradient")
    known = times(len(arguments), "argument")
    yield Diagnostic(
        f"`backward` of `{gradient.operator.title}` returns {told} and the schema has {known} before `*`: "
        + (
            "torch 2.15 refuses it, earlier releases ignore `None`s at the end"
            if ignored
            else "a call that passes those with defaults fails in `backward`"
            if late
            else "it fails"
        ),
        backward.at(value),
        related=declared(gradient.operator, arguments[:1]),
        ops=(gradient.operator.title,),
        severity=Severity.WARNING if ignored and tree.names_no_release else Severity.ERROR,
    )


def _is_for_omitted(backward: Body, value: Expr, most: int) -> bool:
    """Whether a value is returned where something is None, such as an argument that a call left out, and the gradients of all
    arguments elsewhere.
    """
    full = any(len(spread(item) or ()) == most for item in backward.scope.returns)
    asked = (item for item in backward.scope.conditions if "None" in backward.file.text(item.expr))
    spans = (span for item in asked for span in (item.body, item.orelse) if span is not None)
    return full and any(span.start <= value.start < span.end for span in spans)


@rule("REG307", "gradient-kind", needs=(CPP,))
def gradient_kind(operator: Operator) -> Iterator[Diagnostic]:
    """A gradient for an argument that cannot have one, or a single tensor for a list of tensors.

    `backward` returns `None` for a number, a string and anything else that is not a tensor, and a list of gradients for a
    list of tensors. Only values that are evidently tensors are checked: a gradient that is passed to `backward`,
    arithmetic with one, a method of one, and what functions of torch return.

    Bad:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor


    def backward(ctx, grad):
        return grad, grad


    scale.register_autograd(backward)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::total", mutates_args=())
    def total(xs: List[Tensor], factor: float) -> Tensor:
        return sum(xs) * factor


    def backward(ctx, grad):
        return [grad, grad], None


    total.register_autograd(backward)
    ```
    """
    for gradient in gradients(operator):
        backward = gradient.backward
        arguments = gradient.schema.positional
        for value in backward.scope.returns if backward is not None else ():
            elements = spread(value) or ()
            if backward is not None and len(elements) == len(arguments):
                for argument, item in zip(arguments, elements, strict=True):
                    yield from _of_kind(gradient, backward, argument, item)


def _of_kind(gradient: Gradient, backward: Body, argument: Argument, item: Expr) -> Iterator[Diagnostic]:
    tensor = argument.type.base == "Tensor"
    if not argument.type.base or (tensor and not argument.type.is_list) or not is_gradient(gradient, backward, item):
        return
    wanted = "a list of gradients, one for each tensor" if tensor else "`None`"
    yield Diagnostic(
        f"`backward` of `{gradient.operator.title}` returns a tensor for `{argument.name}`, which is `{argument.type}`:"
        f" return {wanted}",
        backward.at(item),
        related=declared(gradient.operator, [argument]),
        ops=(gradient.operator.title,),
    )


@rule("REG302", "gradient-arguments", needs=(CPP,))
def gradient_arguments(operator: Operator) -> Iterator[Diagnostic]:
    """A `backward` that does not take one gradient for each value that the operator returns.

    `backward` is called with the context and, by position, a gradient for each returned value of the schema; a returned
    list of tensors counts as one.

    Bad:

    ```python
    @torch.library.custom_op("kit::split", mutates_args=())
    def split(x: Tensor) -> Tuple[Tensor, Tensor]:
        return x[:1].clone(), x[1:].clone()


    def backward(ctx, grad):
        return grad


    split.register_autograd(backward)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::split", mutates_args=())
    def split(x: Tensor) -> Tuple[Tensor, Tensor]:
        return x[:1].clone(), x[1:].clone()


    def backward(ctx, *grads):
        return torch.cat(grads)


    split.register_autograd(backward)
    ```
    """
    for gradient in gradients(operator):
        if (
            gradient.backward is not None
            and gradient.schema.returns
            and all(item.type.base for item in gradient.schema.returns)
        ):
            yield from _taken(gradient, gradient.backward)


def _taken(gradient: Gradient, backward: Body) -> Iterator[Diagnostic]:
    assert backward.function is not None
    passed = 1 + len(gradient.schema.returns)
    plain = [item for item in backward.params if item.kind in ("posonly", "normal")]
    needed = [item for item in plain if item.default is None]
    open_end = any(item.kind == "vararg" for item in backward.params)
    forced = [item for item in backward.params if item.kind == "kwonly" and item.default is None]
    if len(needed) <= passed and (open_end or passed <= len(plain)) and not forced:
        return
    more = needed[passed:] or forced
    told = (
        f"requires {quoted(item.name for item in more)}"
        if more
        else f"takes {times(max(len(plain) - 1, 0), 'gradient')}"
    )
    given = times(passed - 1, "gradient")
    yield Diagnostic(
        f"`backward` of `{gradient.operator.title}` {told}, and is passed the context and {given}, by position",
        backward.at((more[0] if more else backward.function).span),
        related=(Related(gradient.operator.definition.written, f"it returns {times(passed - 1, 'value')}"),),
        ops=(gradient.operator.title,),
    )


@rule("REG306", "gradient-schema", needs=(CPP,))
def gradient_schema(operator: Operator) -> Iterator[Diagnostic]:
    """A gradient for an operator that cannot have one.

    `register_autograd` rejects an operator that writes to its arguments or returns nothing, and one with a tensor after
    `*`. Kernels that C++ registers for an autograd key may do all of this, and are not checked.

    Bad:

    ```python
    @torch.library.custom_op("kit::scale_", mutates_args=("x",))
    def scale_(x: Tensor, factor: float) -> None:
        x.mul_(factor)


    def backward(ctx):
        return None, None


    scale_.register_autograd(backward)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, *, factor: float) -> Tensor:
        return x * factor


    def backward(ctx, grad):
        return grad


    scale.register_autograd(backward)
    ```
    """
    for gradient in gradients(operator):
        if gradient.registration.language == "cpp":
            continue
        schema = gradient.schema
        tensors = [item for item in schema.kwarg_only if item.type.base == "Tensor"]
        written = schema.mutated
        if written or not schema.returns:
            reason = f"it writes {quoted(item.name for item in written)}" if written else "it returns nothing"
        elif tensors:
            reason = f"it takes the tensor {quoted(item.name for item in tensors)} after `*`"
        else:
            continue
        yield Diagnostic(
            f"`{operator.title}` can have no gradient: {reason}, and `register_autograd` refuses it",
            gradient.registration.place,
            related=declared(operator, written or tensors) or (Related(operator.definition.written, "its schema"),),
            ops=(operator.title,),
        )


def times(count: int, word: str) -> str:
    """A number of things: "one gradient", "3 gradients", "no gradients"."""
    return f"one {word}" if count == 1 else f"{count or 'no'} {word}s"
