"""Python functions against the schema through which the dispatcher calls them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, quoted
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_rules.torchlib.inference import is_restated
from opschema_rules.torchlib.model import Operator, Registration, Role
from opschema_rules.torchlib.passing import Mismatch, filled, in_force, mismatches
from opschema_rules.torchlib.places import declared
from opschema_rules.torchlib.proofs import CALLS
from opschema_rules.torchlib.signature_fixes import fix_of


@rule("REG201", "fake-signature", fixable="safe", needs=(CPP,), proof=CALLS)
def fake_signature(operator: Operator) -> Iterator[Diagnostic]:
    """A fake whose parameters do not match the operator's schema.

    `torch.library` does not compare a fake with its operator. The dispatcher calls a fake according to the *schema*: arguments
    before `*` are passed by position, arguments after `*` by name, and trailing arguments that equal the schema's defaults are
    omitted, even if the caller passed them. So

    - parameters in another order receive wrong values: a wrong shape under `torch.compile`, without an error;
    - a missing parameter fails as soon as a call passes its argument, which may be much later if it has a default;
    - a parameter without the schema's default fails when the argument has its default value.

    Different names before `*` and additional parameters with defaults are harmless. `*args` accepts any arguments.

    The fix for a missing parameter is unsafe unless the fake passes it on: the output of the fake may depend on it.

    Bad (the order):

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, rows: int, columns: int) -> Tensor:
        return x.new_zeros(rows, columns)


    @scale.register_fake
    def _(x, columns, rows):
        return x.new_empty(rows, columns)
    ```

    Bad (an argument that the fake does not take):

    ```python
    @torch.library.custom_op("kit::norm", mutates_args=())
    def norm(x: Tensor, eps: float = 1e-6) -> Tensor:
        return x * eps


    @torch.library.register_fake("kit::norm")
    def norm_fake(x: Tensor) -> Tensor:
        return torch.empty_like(x)
    ```

    Bad (no default, where the schema has one):

    ```python
    torch.library.define("kit::pad", "(Tensor x, int size=4) -> Tensor")


    @torch.library.impl("kit::pad", "cpu")
    def pad_cpu(x, size=4):
        return torch.nn.functional.pad(x, (0, size))


    @torch.library.register_fake("kit::pad")
    def pad_fake(x, size):
        return x.new_empty(x.shape[0], x.shape[1] + size)
    ```

    Good (other names, and an additional parameter with a default):

    ```python
    @torch.library.custom_op("kit::norm", mutates_args=())
    def norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
        return x * weight * eps


    @norm.register_fake
    def _(input, scale, epsilon=1e-6, *, out_dtype=None):
        return torch.empty_like(input)
    ```
    """
    yield from _of_role(operator, "fake", "the fake")


@rule("REG202", "kernel-signature", fixable="safe", needs=(CPP,), proof=CALLS)
def kernel_signature(operator: Operator) -> Iterator[Diagnostic]:
    """A kernel whose parameters do not match the operator's schema.

    A function given to `register_kernel`, `torch.library.impl` or `Library.impl` is called like a fake: by position before
    `*`, without trailing arguments that equal the schema's defaults, by name after it. See `fake-signature` for the
    consequences.

    For an argument that the kernel does not take, there is a fix only if the kernel returns the result of another function
    that takes an argument with that name: a kernel that takes an argument and ignores it computes something else, without
    an error.

    Bad:

    ```python
    torch.library.define("kit::shift", "(Tensor x, int left, int right=0) -> Tensor")


    @torch.library.impl("kit::shift", "cpu")
    def shift_cpu(x, right, left):
        return x.roll(left - right)
    ```

    Bad (a kernel for another device):

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=(), device_types="cpu")
    def scale(x: Tensor, factor: float = 2.0) -> Tensor:
        return x * factor


    @scale.register_kernel("cuda")
    def _(x, factor):
        return x * factor
    ```

    Bad (an argument that the kernel does not take):

    ```python
    torch.library.define("kit::scale", "(Tensor x, float factor=2.0) -> Tensor")


    def scaled(x, factor=2.0):
        return x * factor


    @torch.library.impl("kit::scale", "cpu")
    def scale_cpu(x):
        return scaled(x)
    ```

    Good:

    ```python
    lib = torch.library.Library("kit", "FRAGMENT")
    lib.define("shift(Tensor x, *, int left, int right=0) -> Tensor")


    def shift(x, right=0, *, left):
        return x.roll(left - right)


    lib.impl("shift", shift, "CPU")
    ```
    """
    yield from _of_role(operator, "kernel", "the kernel")


@rule("REG203", "schema-function", fixable="safe", proof=CALLS)
def schema_function(operator: Operator) -> Iterator[Diagnostic]:
    """A `custom_op` whose function has parameters that do not match its `schema=`.

    With `schema=`, torch ignores the function's signature, and calls it like any other kernel: see `fake-signature`, and
    `kernel-signature` for what the fix does.

    Bad:

    ```python
    @torch.library.custom_op("kit::clip", mutates_args=(), schema="(Tensor x, float low, float high) -> Tensor")
    def clip(x, high, low):
        return x.clamp(low, high)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::clip", mutates_args=(), schema="(Tensor x, float low, float high=1.0) -> Tensor")
    def clip(tensor, low, high=1.0):
        return tensor.clamp(low, high)
    ```
    """
    definition = operator.definition
    if definition.explicit and definition.function is not None and definition.api in ("custom_op", "triton_op"):
        yield from _compared(operator, definition.function, "the function", 0)


@rule("REG204", "vmap-signature", fixable="safe", needs=(CPP,), proof=CALLS)
def vmap_signature(operator: Operator) -> Iterator[Diagnostic]:
    """A vmap rule whose parameters do not match the operator's schema.

    The function given to `register_vmap` is called with `info` and `in_dims`, and then like a fake: see `fake-signature`.

    For an argument that it does not take, there is a fix if the function passes it on, as in the example: see
    `kernel-signature`.

    Bad:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, factor: float = 2.0) -> Tensor:
        return x * factor


    @scale.register_vmap
    def _(info, in_dims, x):
        return scale(x), in_dims[0]
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, factor: float = 2.0) -> Tensor:
        return x * factor


    @scale.register_vmap
    def _(info, dims, x, factor=2.0):
        return scale(x, factor), dims[0]
    ```
    """
    yield from _of_role(operator, "vmap", "the vmap rule")


def _of_role(operator: Operator, role: Role, called: str) -> Iterator[Diagnostic]:
    for registration in in_force(operator.of_role(role)):
        if isinstance(registration.function, Body):
            if not _is_of_another(operator, registration, registration.function):
                yield from _compared(operator, registration.function, called, filled(registration), role)
        elif registration.partial is not None:
            yield from _partial(operator, registration, registration.partial, called)


def _is_of_another(operator: Operator, registration: Registration, function: Body) -> bool:
    """Whether a registered function matches the arguments of another definition of the operator's name."""
    schemas = operator.other_schemas(registration)
    return any(not mismatches(schema, function.params, filled(registration)) for schema in schemas)


def _partial(operator: Operator, registration: Registration, function: Body, called: str) -> Iterator[Diagnostic]:
    """Yield findings on arguments that a `functools.partial` does not accept, at its registration."""
    for item in _compared(operator, function, called, filled(registration)):
        message = item.message.replace(f"`{operator.title}` ", f"`{operator.title}` is a `partial` that ", 1)
        related = (*item.related, Related(item.place, "the function under it"))
        yield replace(item, message=message, place=registration.place, related=related, fix=None)


def _compared(
    operator: Operator, function: Body, called: str, skip: int, role: Role = "kernel"
) -> Iterator[Diagnostic]:
    schema = operator.definition.schema
    if not isinstance(schema, OperatorSchema) or schema.vararg or function.function is None or is_method(function):
        return
    if is_restated(function):
        return
    found = mismatches(schema, function.params, skip)
    for item in found:
        yield Diagnostic(
            f"{called} of `{operator.title}` {mismatch_words(item)}",
            mismatch_place(function, item),
            related=declared(operator, item.arguments) or declared(operator, schema.arguments[:1]),
            fix=fix_of(operator, function, item, skip, role) if len(found) == 1 else None,
            ops=(operator.title,),
        )


def is_method(function: Body) -> bool:
    """Whether a function takes an object first."""
    in_class = function.parent is not None and function.parent.cls is not None
    return in_class and function.function is not None and "staticmethod" not in function.function.decorator_names


def mismatch_place(function: Body, item: Mismatch) -> Place:
    """The place of a mismatch: its first parameter, else the name of the function."""
    assert function.function is not None
    return function.at(item.params[0].span if item.params else function.function.span)


def mismatch_words(item: Mismatch) -> str:
    """Return a mismatch as text, to follow the function's name."""
    declared_names = quoted(argument.name for argument in item.arguments)
    names = quoted(param.name for param in item.params)
    when = "every call fails" if item.always else "a call that passes more than the defaults fails"
    words = {
        "reordered": f"takes {names} where the schema passes {declared_names}, by position: the arguments are shifted",
        "shifted": f"does not take {declared_names}, which the schema passes before {names}: the arguments are shifted",
        "fewer": f"takes {count(len(item.arguments), 'argument')} fewer than the schema passes by position: {when}",
        "missing": f"does not take {declared_names}, which the schema passes: {when}",
        "missing-keyword": f"does not take {declared_names}, which the schema passes by name: {when}",
        "extra": f"requires {names}, which the schema does not pass: every call fails",
        "extra-keyword": f"requires {names}, which the schema does not pass: every call fails",
        "renamed-keyword": f"takes {names} where the schema passes {declared_names}, by name: every call fails",
        "keyword-only": f"takes {names} by name only, but the schema passes by position: {when}",
        "no-default": f"has no default for {names}, but torch omits values that equal the schema's default: add that default",
        "by-name": f"takes {names} by position before others, but the schema passes by name: move {names} to the end",
    }
    return words[item.kind]
