"""The functions ``setup_context`` and ``backward``: their arguments, and the tensors that one saves for the other."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.expected_errors import allows_any_error
from opschema_cli.evaluation.reaching import guards
from opschema_cli.lint.diagnostic import CPP, Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import PythonFile, Unpack, written_in
from opschema_rules.torchlib.gradients import (
    CONTEXT,
    Gradient,
    attribute_of,
    context_of,
    context_uses,
    gradients,
    misfit_unpacks,
    passes_setup_by_place,
    saved,
    unset_reads,
    written_on,
)
from opschema_rules.torchlib.model import Operator
from opschema_rules.torchlib.places import declared
from opschema_rules.torchlib.rules.autograd import times


@rule("REG303", "setup-context-signature", needs=(CPP,))
def setup_context_signature(operator: Operator) -> Iterator[Diagnostic]:
    """A `setup_context` that cannot be called as torch calls it.

    It is called by name: `ctx=`, `inputs=`, `output=`, and `keyword_only_inputs=` if, and only if, the schema has arguments
    after `*`.

    Bad:

    ```python
    @torch.library.custom_op("kit::double", mutates_args=())
    def double(x: Tensor) -> Tensor:
        return x * 2


    def setup(ctx, args, result):
        pass


    double.register_autograd(lambda ctx, grad: grad * 2, setup_context=setup)
    ```

    Bad (an argument after `*`):

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, *, factor: float) -> Tensor:
        return x * factor


    def setup(ctx, inputs, output):
        pass


    scale.register_autograd(lambda ctx, grad: grad, setup_context=setup)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, *, factor: float) -> Tensor:
        return x * factor


    def setup(ctx, *, output, inputs, **others):
        ctx.factor = others["keyword_only_inputs"]["factor"]


    def backward(ctx, grad):
        return grad * ctx.factor


    scale.register_autograd(backward, setup_context=setup)
    ```
    """
    for gradient in gradients(operator):
        if passes_setup_by_place(gradient):
            yield Diagnostic(
                f"`setup_context` of `{operator.title}` is passed by position, and `register_autograd` takes it by name only:"
                " write `setup_context=`",
                gradient.registration.place,
                related=(Related(operator.definition.written, "its schema"),),
                ops=(operator.title,),
            )
        elif gradient.setup is not None:
            yield from _called_by_name(gradient, gradient.setup)


def _called_by_name(gradient: Gradient, setup: Body) -> Iterator[Diagnostic]:
    assert setup.function is not None
    passed = ["ctx", "inputs", "output", *(["keyword_only_inputs"] if gradient.schema.kwarg_only else [])]
    named = {item.name for item in setup.params if item.kind in ("normal", "kwonly")}
    lost = [] if any(item.kind == "kwarg" for item in setup.params) else [name for name in passed if name not in named]
    unfilled = [
        item for item in setup.params
        if item.by_name and item.default is None and (item.kind == "posonly" or item.name not in passed)
    ]  # fmt: skip
    if not lost and not unfilled:
        return
    told = [f"requires {quoted(item.name for item in unfilled)}"] if unfilled else []
    told += [f"does not take {quoted(lost)}"] if lost else []
    yield Diagnostic(
        f"`setup_context` of `{gradient.operator.title}` {' and '.join(told)}; it is called with"
        f" {quoted(f'{name}=' for name in passed)}",
        setup.at((unfilled[0] if unfilled else setup.function).span),
        related=(Related(gradient.registration.place, "registered here"),),
        ops=(gradient.operator.title,),
    )


@rule("REG304", "setup-context-inputs", needs=(CPP,))
def setup_context_inputs(operator: Operator) -> Iterator[Diagnostic]:
    """A `setup_context` that unpacks `inputs` with a number or order that differs from the schema.

    `inputs` holds every argument before `*`, in the schema's order, with defaults filled in; those after `*` are in
    `keyword_only_inputs`. Other names are harmless; the schema's own names in another order are not.

    Bad:

    ```python
    @torch.library.custom_op("kit::axpy", mutates_args=())
    def axpy(x: Tensor, y: Tensor, alpha: float = 1.0) -> Tensor:
        return alpha * x + y


    def setup_context(ctx, inputs, output):
        x, y = inputs


    axpy.register_autograd(lambda ctx, grad: (grad, grad, None), setup_context=setup_context)
    ```

    Bad (the order):

    ```python
    @torch.library.custom_op("kit::axpy", mutates_args=())
    def axpy(x: Tensor, y: Tensor, alpha: float = 1.0) -> Tensor:
        return alpha * x + y


    def setup_context(ctx, inputs, output):
        alpha, x, y = inputs
        ctx.alpha = alpha


    def backward(ctx, grad):
        return grad * ctx.alpha, grad, None


    axpy.register_autograd(backward, setup_context=setup_context)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::axpy", mutates_args=())
    def axpy(x: Tensor, y: Tensor, alpha: float = 1.0) -> Tensor:
        return alpha * x + y


    def setup_context(ctx, inputs, output):
        *_, factor = inputs
        ctx.factor = factor


    def backward(ctx, grad):
        return grad * ctx.factor, grad, None


    axpy.register_autograd(backward, setup_context=setup_context)
    ```
    """
    for gradient in gradients(operator):
        setup = gradient.setup
        if setup is not None and all(item.target != "inputs" for item in setup.scope.assigns):
            for unpack in setup.scope.unpacks:
                if unpack.value.kind == "name" and unpack.value.text == "inputs" and not unpack.starred:
                    if any(guards(setup.scope, unpack.start)):
                        continue
                    yield from _unpacked(gradient, setup, unpack)


def _unpacked(gradient: Gradient, setup: Body, unpack: Unpack) -> Iterator[Diagnostic]:
    names = [item.name for item in gradient.schema.positional]
    order = [target.rpartition(".")[2] for target in unpack.targets]
    if len(order) == len(names) and (order == names or sorted(order) != sorted(names)):
        return
    if len(order) == len(names):
        message = (
            f"unpacks `inputs` as {quoted(order)}; the schema's order is {quoted(names)}: the arguments are shifted"
        )
    else:
        message = f"unpacks `inputs` into {len(order)}; the schema has {times(len(names), 'argument')} before `*`: {quoted(names)}"
    yield Diagnostic(
        f"`setup_context` of `{gradient.operator.title}` {message}",
        setup.at(unpack.span),
        related=declared(gradient.operator, gradient.schema.positional[:1]),
        ops=(gradient.operator.title,),
    )


@rule("REG305", "saved-for-backward", needs=(CPP,))
def saved_for_backward(operator: Operator) -> Iterator[Diagnostic]:
    """A `backward` that reads from the context what `setup_context` does not store there.

    `backward` unpacks another number of `ctx.saved_tensors` than `setup_context` saves, or reads an attribute that is never
    set, or there is no `setup_context` at all. If the context is passed to other code, nothing is reported.

    Bad:

    ```python
    @torch.library.custom_op("kit::mul", mutates_args=())
    def mul(x: Tensor, y: Tensor) -> Tensor:
        return x * y


    def setup_context(ctx, inputs, output):
        x, y = inputs
        ctx.save_for_backward(x)


    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x


    mul.register_autograd(backward, setup_context=setup_context)
    ```

    Bad (nothing is stored):

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor


    def backward(ctx, grad):
        return grad * ctx.factor, None


    scale.register_autograd(backward)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::mul", mutates_args=())
    def mul(x: Tensor, y: Tensor) -> Tensor:
        return x * y


    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.shape = output.shape


    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        if not ctx.needs_input_grad[0]:
            return None, grad * x
        return grad.view(ctx.shape) * y, grad * x


    mul.register_autograd(backward, setup_context=setup_context)
    ```
    """
    for gradient in gradients(operator):
        backward = gradient.backward
        context = context_of(backward) if backward is not None else ""
        if backward is not None and context:
            yield from _without_setup(gradient, backward, context)
            yield from _attributes(gradient, backward, context)
            yield from _tensors(gradient, backward, context)


def _without_setup(gradient: Gradient, backward: Body, context: str) -> Iterator[Diagnostic]:
    if gradient.sets_up:
        return
    own = written_on(backward, context)
    reads = [
        use
        for use in context_uses(backward, context) or ()
        if attribute_of(use.name) not in CONTEXT - {"saved_tensors"}
    ]
    bodies = gradient.operator.tree.bodies
    reads = [use for use in reads if own is not None and attribute_of(use.name) not in own]
    reads = [use for use in reads if not allows_any_error(bodies, backward, use.start)]
    if reads and not _may_unpack_nothing(backward, context):
        yield Diagnostic(
            f"`backward` of `{gradient.operator.title}` reads {quoted(dict.fromkeys(use.name for use in reads))}, and no"
            " `setup_context` is registered that leaves it there",
            backward.at(reads[0].span),
            related=(Related(gradient.registration.place, "registered without `setup_context`"),),
            ops=(gradient.operator.title,),
        )


def _may_unpack_nothing(backward: Body, context: str) -> bool:
    """Whether `saved_tensors` is read without being unpacked or indexed: an empty tuple may do."""
    unpacked = {item.value.start for item in backward.scope.unpacks}
    uses = [use for use in context_uses(backward, context) or () if use.name == f"{context}.saved_tensors"]
    return bool(uses) and not any(use.start in unpacked for use in uses)


def _attributes(gradient: Gradient, backward: Body, context: str) -> Iterator[Diagnostic]:
    setup = gradient.setup
    left = written_on(setup, "ctx") if setup is not None else None
    own = written_on(backward, context)
    if setup is None or left is None or own is None:
        return
    left |= own | CONTEXT
    if not _is_straight(backward):
        left |= _attributes_set(setup.file, backward.file)
    for use in unset_reads(gradient.operator.tree.bodies, backward, context, left):
        yield Diagnostic(
            f"`backward` of `{gradient.operator.title}` reads `{use.name}`, which `setup_context` does not set",
            backward.at(use.span),
            related=(Related(setup.at(setup.function.span), "`setup_context`"),) if setup.function else (),
            ops=(gradient.operator.title,),
        )


def _is_straight(backward: Body) -> bool:
    """Whether all code of a function runs in each call, so that no part of it can be for another `setup_context`."""
    scope = backward.scope
    return not (scope.guarded or scope.conditional_expressions or len(scope.returns) > 1)


def _attributes_set(*files: PythonFile) -> set[str]:
    """The attributes that the files assign, on whatever object."""
    return {target.rpartition(".")[2] for file in files for target in written_in(file.body)}


def _tensors(gradient: Gradient, backward: Body, context: str) -> Iterator[Diagnostic]:
    setup = gradient.setup
    call = saved(setup, "ctx") if setup is not None and context_uses(setup, "ctx") is not None else None
    if call is None or setup is None:
        return
    count = len(call.items) - 1
    for unpack in misfit_unpacks(gradient.operator.tree.bodies, backward, context, count):
        yield Diagnostic(
            f"`backward` of `{gradient.operator.title}` unpacks {times(len(unpack.targets), 'saved tensor')};"
            f" `setup_context` saves {count}",
            backward.at(unpack.span),
            related=(Related(setup.at(call), "saved here"),),
            ops=(gradient.operator.title,),
        )
