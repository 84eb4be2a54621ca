"""The parameters of ``setup_context_fn``."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace as with_fields

from opschema_cli.lint.diagnostic import Diagnostic, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.bodies import Body
from opschema_rules.magi.as_torch import with_gradient
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.proofs import CALLS
from opschema_rules.magi.renaming import renaming
from opschema_rules.magi.reporting import by_keyword, defined, registered
from opschema_rules.torchlib.rules.autograd import times
from opschema_rules.torchlib.rules.setup_context import setup_context_inputs, setup_context_signature

_SETUP = ("ctx", "inputs", "output")


@rule("MAG340", "setup-signature", fixable="safe", proof=CALLS)
def setup_signature(op: MagiOp) -> Iterator[Diagnostic]:
    """A `setup_context_fn` that does not accept the arguments that it is called with.

    Where no parameter of the op is a dataclass, torch calls it by name: `ctx=`, `inputs=`, `output=`. Other names raise
    when the op runs with a gradient. With a dataclass it is called by position with these three, whatever their names.
    `inputs` are the op's original parameters, all of them and in order; a function that unpacks a different number fails.

    Bad:

    ```python
    def setup(ctx, inp, out):
        (x,) = inp
        ctx.save_for_backward(x)


    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x


    @magi_register_custom_op("kit::square", setup_context_fn=setup, backward_fn=backward)
    def square(x: Tensor) -> Tensor:
        return x * x
    ```

    Bad (the number of inputs):

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    def setup(ctx, inputs, output):
        x, config, bias = inputs
        ctx.scale = config.scale


    def backward(ctx, grad):
        return grad * ctx.scale, None


    @magi_register_custom_op("kit::scale", setup_context_fn=setup, backward_fn=backward)
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Good (with a dataclass):

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    def setup(context, arguments, result):
        _, config = arguments
        context.scale = config.scale


    def backward(ctx, grad):
        return grad * ctx.scale, None


    @magi_register_custom_op("kit::scale", setup_context_fn=setup, backward_fn=backward)
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Good (without):

    ```python
    def setup(ctx, *, output, inputs):
        ctx.save_for_backward(*inputs)


    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x


    @magi_register_custom_op("kit::square", setup_context_fn=setup, backward_fn=backward)
    def square(x: Tensor) -> Tensor:
        return x * x
    ```
    """
    operator, setup = with_gradient(op), op.setup_context
    if operator is None or not isinstance(setup, Body):
        return
    if by_keyword(op):
        yield from _by_place(op, setup)
    else:
        fix = _setup_fix(op, setup)
        for found in setup_context_signature(operator):
            yield with_fields(found, message=reworded(found.message), fix=fix)
    if not by_keyword(op) or plain_names(setup)[1:2] == ["inputs"]:
        for found in setup_context_inputs(operator):
            yield with_fields(found, message=reworded(found.message), related=defined(op.body, "the op's parameters"))


def reworded(message: str) -> str:
    """A message of torch's rules in the words of this decorator."""
    words = {
        "`setup_context`": "`setup_context_fn`", "`backward`": "`backward_fn`", "the schema has": "the op has",
        " before `*`": "", "the schema's order": "the op's order",
    }  # fmt: skip
    for old, new in words.items():
        message = message.replace(old, new)
    return message


def plain_names(function: Body) -> list[str]:
    """The parameters of a function that a call may pass by position."""
    return [item.name for item in function.params if item.kind in ("posonly", "normal")]


def _by_place(op: MagiOp, setup: Body) -> Iterator[Diagnostic]:
    plain = [item for item in setup.params if item.kind in ("posonly", "normal")]
    needed = [item for item in plain if item.default is None]
    forced = [item for item in setup.params if item.kind == "kwonly" and item.default is None]
    open_end = any(item.kind == "vararg" for item in setup.params)
    if (len(needed) > 3 or (len(plain) < 3 and not open_end) or forced) and setup.function is not None:
        more = needed[3:] or forced
        told = f"requires {quoted(item.name for item in more)}" if more else f"takes {times(len(plain), 'argument')}"
        yield Diagnostic(
            f"`setup_context_fn` of `{op.title}` {told}, and is called by position with the context, the inputs and the output",
            setup.at((more[0] if more else setup.function).span),
            registered(op),
            ops=(op.title,),
        )


def _setup_fix(op: MagiOp, setup: Body) -> Fix | None:
    """Its three parameters under the names that it is called with."""
    plain = [item for item in setup.params if item.kind == "normal"]
    old = [item.name for item in plain]
    if len(plain) != 3 or len(setup.params) != 3 or set(old) & set(_SETUP) - _in_place(old):
        return None
    names = {name: new for name, new in zip(old, _SETUP, strict=True) if name != new}
    edits = renaming(op.tree.bodies, setup, names)
    shared = [item for item in op.tree.ops if item is not op and item.setup_context is setup]
    if not edits or any(by_keyword(item) for item in shared):
        return None
    return Fix(f"rename {quoted(names)} to {quoted(names.values())}", edits)


def _in_place(names: list[str]) -> set[str]:
    return {name for name, new in zip(names, _SETUP, strict=True) if name == new}
