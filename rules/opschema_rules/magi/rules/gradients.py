"""``backward_fn``: how it is called, what ``setup_context_fn`` saves for it, and its results."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace as with_fields

from opschema_cli.lint.diagnostic import Diagnostic, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.magi.as_torch import as_operator, with_gradient
from opschema_rules.magi.given import Lambda
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.registrations import Written
from opschema_rules.magi.reporting import by_keyword, is_plain, registered
from opschema_rules.magi.rules.setup_functions import plain_names, reworded
from opschema_rules.torchlib.model import Operator
from opschema_rules.torchlib.rules.autograd import gradient_arguments, gradient_schema, times
from opschema_rules.torchlib.rules.saved_values import saved_value
from opschema_rules.torchlib.rules.setup_context import saved_for_backward


@rule("MAG341", "backward-pair")
def backward_pair(op: MagiOp) -> Iterator[Diagnostic]:
    """A `backward_fn` and a `setup_context_fn` that do not fit each other.

    A `backward_fn` that reads `ctx.saved_tensors`, or an attribute of the context, needs a `setup_context_fn` that sets it.
    A `setup_context_fn` without a `backward_fn` is never called (a warning).

    Bad:

    ```python
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x


    @magi_register_custom_op("kit::square", backward_fn=backward)
    def square(x: Tensor) -> Tensor:
        return x * x
    ```

    Bad:

    ```python
    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


    @magi_register_custom_op("kit::square", setup_context_fn=setup)
    def square(x: Tensor) -> Tensor:
        return x * x
    ```

    Good:

    ```python
    def setup(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.scale = 2


    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return grad * output * ctx.scale


    @magi_register_custom_op("kit::exp", setup_context_fn=setup, backward_fn=backward)
    def exp(x: Tensor) -> Tensor:
        return x.exp()


    @magi_register_custom_op("kit::double", backward_fn=lambda ctx, grad: grad * 2)
    def double(x: Tensor) -> Tensor:
        return x * 2
    ```
    """
    operator = with_gradient(op)
    setup = op.setup_context
    if operator is not None:
        for found in saved_for_backward(_with_context(operator, setup)):
            yield with_fields(found, message=reworded(found.message))
    given = op.argument("backward_fn")
    named = op.argument("setup_context_fn")
    known = op.backward is None and (given is None or not op.registration.arguments.hidden)
    if known and setup is not None and isinstance(named, Written) and as_operator(op) is not None:
        yield Diagnostic(
            f"`setup_context_fn` of `{op.title}` is never called: there is no `backward_fn`",
            named.place,
            registered(op),
            ops=(op.title,),
            severity=Severity.WARNING,
        )


def _with_context(operator: Operator, setup: object) -> Operator:
    """The operator, without its gradient where ``setup_context`` calls its context otherwise than ``ctx``."""
    if isinstance(setup, Body) and plain_names(setup)[:1] != ["ctx"]:
        return with_fields(operator, registrations=[])
    return operator


@rule("MAG344", "saved-non-tensor")
def saved_non_tensor(op: MagiOp) -> Iterator[Diagnostic]:
    """A value other than a tensor that is passed to `ctx.save_for_backward`.

    It takes tensors and `None`. A number, a string, a list or a dataclass raises a `TypeError` in each call that needs
    gradients. Store such values as attributes of the context. See the rule `saved-value` of the pack torchlib for what is
    checked.

    Bad:

    ```python
    def setup(ctx, inputs, output):
        x, factor = inputs
        ctx.save_for_backward(x, factor)


    def backward(ctx, grad):
        x, factor = ctx.saved_tensors
        return grad * factor, None


    @magi_register_custom_op("kit::scale", setup_context_fn=setup, backward_fn=backward)
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor
    ```

    Good:

    ```python
    def setup(ctx, inputs, output):
        x, ctx.factor = inputs
        ctx.save_for_backward(x)


    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.factor, None


    @magi_register_custom_op("kit::scale", setup_context_fn=setup, backward_fn=backward)
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor
    ```
    """
    operator = with_gradient(op)
    if operator is not None:
        for found in saved_value(_with_context(operator, op.setup_context)):
            yield with_fields(found, message=reworded(found.message))


@rule("MAG342", "backward-count")
def backward_count(op: MagiOp) -> Iterator[Diagnostic]:
    """A `backward_fn` that does not return one gradient for each parameter, or does not take one for each output.

    It returns one value for each *original* parameter of the op, `None` for those that have no gradient; for a
    dataclass `None`, or a dict of its fields' gradients. A list is one value. It takes the context and one gradient for
    each output. Where no parameter is a dataclass, gradients for those with defaults may be left out as long as calls
    leave them out as well (a warning).

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale", backward_fn=lambda ctx, grad: grad)
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Bad:

    ```python
    def backward(ctx, grad):
        return grad, None


    @magi_register_custom_op("kit::split", infer_output_meta_fn=["x", "x"], backward_fn=backward)
    def split(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
        return x + k, x - k
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float
        w: Tensor


    def backward(ctx, *grads):
        return grads[0], {"w": grads[0]}


    @magi_register_custom_op("kit::scale", backward_fn=backward)
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale + config.w


    @magi_register_custom_op("kit::double", backward_fn=lambda ctx, grad: grad * 2)
    def double(x: Tensor) -> Tensor:
        return x * 2
    ```
    """
    operator = with_gradient(op)
    if operator is None:
        return
    for found in gradient_arguments(operator):
        yield with_fields(found, message=reworded(found.message))
    for body, value, count in _returned(op):
        yield from _counted(op, body, value, count)


def _returned(op: MagiOp) -> Iterator[tuple[Body, Expr, int]]:
    """The returned value, where it shows how many gradients there are."""
    found = op.backward
    if isinstance(found, Lambda):
        count = _count(found.returned, set(found.params[1:]) - _starred(found))
        if count is not None:
            yield found.written.body, found.returned, count
    elif isinstance(found, Body):
        bound = {item.target for item in found.scope.assigns}
        grads = {item.name for item in found.params[1:] if item.by_name and item.name not in bound}
        for value in found.scope.returns:
            count = _count(value, grads)
            if count is not None:
                yield found, value, count


def _starred(found: Lambda) -> set[str]:
    head = found.written.body.file.text(found.written.expr).partition(":")[0]
    return set(found.params) if "*" in head else set()


def _count(value: Expr, grads: set[str]) -> int | None:
    """The number of gradients in a returned value; ``grads`` are names of single ones."""
    if value.kind == "tuple":
        return len(value.elements) if value.elements is not None else None
    if value.kind in ("list", "dict") or (value.kind == "const" and value.value is None):
        return 1
    return 1 if _is_one(value, grads) else None


def _is_one(value: Expr, grads: set[str]) -> bool:
    """Whether a value is a gradient, or arithmetic with one; sums and products of tuples are neither."""
    if value.kind == "binary":
        return any(_is_one(item, grads) or isinstance(item.value, float) for item in value.items)
    return value.kind == "name" and value.text in grads


def _counted(op: MagiOp, body: Body, value: Expr, count: int) -> Iterator[Diagnostic]:
    wanted = [item for item in op.params if not (item.kind == "kwonly" and is_plain(op))]
    required = [item for item in wanted if item.default is None]
    if count == len(wanted) or (
        not by_keyword(op) and count > len(wanted) and value.kind == "tuple" and _pads(value, len(wanted))
    ):
        return
    late = not by_keyword(op) and len(required) <= count < len(wanted)
    told = f"a {value.kind}, which is one gradient," if value.kind in ("list", "dict") else times(count, "gradient")
    effect = "a call that passes those with defaults fails in it" if late else "it fails"
    yield Diagnostic(
        f"`backward_fn` of `{op.title}` returns {told} and the op has {times(len(wanted), 'parameter')}: {effect}",
        body.at(value),
        (Related(op.place, "the op's parameters"),),
        ops=(op.title,),
        severity=Severity.WARNING if late else Severity.ERROR,
    )


def _pads(value: Expr, wanted: int) -> bool:
    """Whether the surplus values are ``None``, which some versions of torch allow."""
    return all(item.kind == "const" and item.value is None for item in value.items[wanted:])


@rule("MAG343", "gradient-refused")
def gradient_refused(op: MagiOp) -> Iterator[Diagnostic]:
    """A `backward_fn` for an op that cannot have a gradient.

    torch rejects a gradient for an op that writes to its arguments or returns nothing.

    Bad:

    ```python
    @magi_register_custom_op("kit::step", mutates_args=("x",), backward_fn=lambda ctx, grad: grad)
    def step(x: Tensor) -> Tensor:
        return x.add_(1) + 1
    ```

    Good:

    ```python
    @magi_register_custom_op("kit::step", backward_fn=lambda ctx, grad: grad)
    def step(x: Tensor) -> Tensor:
        return x + 2
    ```
    """
    operator = with_gradient(op)
    if operator is not None:
        named = op.argument("backward_fn")
        for found in gradient_schema(operator):
            place = named.place if isinstance(named, Written) else found.place
            yield with_fields(found, place=place, message=found.message.replace("`register_autograd`", "torch"))
