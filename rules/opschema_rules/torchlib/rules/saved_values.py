"""Values that `setup_context` saves for `backward`."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_rules.torchlib.gradients import Gradient, gradients
from opschema_rules.torchlib.model import Operator
from opschema_rules.torchlib.places import declared
from opschema_rules.torchlib.saved_values import no_tensors, saved_values


@rule("REG308", "saved-value", needs=(CPP,))
def saved_value(operator: Operator) -> Iterator[Diagnostic]:
    """A value other than a tensor that is passed to `ctx.save_for_backward`.

    `save_for_backward` takes tensors and `None`. A number, a string, a list or a tuple raises a `TypeError` in the forward
    pass of each call that needs gradients. Store such values as attributes of the context.

    Only values that are evidently no tensors are checked: constants, lists and tuples, `inputs` itself, arguments that the
    schema declares with another type, and the shape, dtype or device of a tensor. If `setup_context` calls
    `save_for_backward` more than once, or under a condition, nothing is reported.

    Bad:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor


    def setup_context(ctx, inputs, output):
        x, factor = inputs
        ctx.save_for_backward(x, factor)


    def backward(ctx, grad):
        x, factor = ctx.saved_tensors
        return grad * factor, None


    scale.register_autograd(backward, setup_context=setup_context)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, factor: float, mask: Optional[Tensor] = None) -> Tensor:
        return x * factor


    def setup_context(ctx, inputs, output):
        x, factor, mask = inputs
        ctx.factor = factor
        factor = torch.tensor(factor)
        ctx.save_for_backward(x, mask, factor, None, output)


    def backward(ctx, grad):
        x, mask, factor, _, output = ctx.saved_tensors
        return grad * ctx.factor, None, None


    scale.register_autograd(backward, setup_context=setup_context)
    ```
    """
    for gradient in gradients(operator):
        if gradient.setup is not None:
            yield from _saved(gradient, gradient.setup)


def _saved(gradient: Gradient, setup: Body) -> Iterator[Diagnostic]:
    title = gradient.operator.title
    for value, star in saved_values(setup, "ctx"):
        for found in no_tensors(gradient, setup, value, star):
            when = "a call that passes it" if found.optional else "every call that needs gradients"
            yield Diagnostic(
                f"`setup_context` of `{title}` passes {found.described} to `save_for_backward`, which takes tensors and"
                f" `None`: {when} fails; store it as an attribute of `ctx`",
                setup.at(value),
                related=declared(gradient.operator, [found.argument]) if found.argument is not None else (),
                ops=(title,),
            )
