"""Demands of a definition's options on its schema: tags, device types, keyword-only tensors."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_rules.torchlib.model import Operator, Problem
from opschema_rules.torchlib.places import argument_place, declared


@rule("REG114", "tag-demands", by_release=True, needs=(CPP,))
def tag_demands(operator: Operator) -> Iterator[Diagnostic]:
    """An operator with the tag `inplace` or `out` whose schema does not have that form.

    `torch.Tag.inplace` requires that the first argument, a plain tensor, is the only one that is written, and is returned.
    `torch.Tag.out` requires that every written argument is a plain tensor after `*`, and that exactly these are returned,
    in order. Other definitions raise when the module is imported.

    Bad:

    ```python
    torch.library.define("kit::scale_", "(Tensor(a!) x, float factor) -> ()", tags=torch.Tag.inplace)
    ```

    Bad:

    ```python
    @torch.library.custom_op("kit::scale_out", mutates_args=("out",), tags=torch.Tag.out)
    def scale_out(x: Tensor, out: Tensor) -> Tensor:
        return torch.mul(x, 2, out=out)
    ```

    Good:

    ```python
    torch.library.define("kit::scale_", "(Tensor(a!) x, float factor) -> Tensor(a!)", tags=torch.Tag.inplace)


    @torch.library.custom_op("kit::scale_out", mutates_args=("out",), tags=torch.Tag.out)
    def scale_out(x: Tensor, *, out: Tensor) -> Tensor:
        return torch.mul(x, 2, out=out)
    ```
    """
    for item in operator.definition.problems:
        if item.kind in ("inplace", "out"):
            message = f"`{operator.title}` has the tag `{item.kind}`: {_demanded(item)}"
            yield Diagnostic(message, item.place, ops=(operator.title,))


def _demanded(item: Problem) -> str:
    """Describe the requirements of a tag and the actual schema."""
    if not item.written:
        return f"it needs {item.instead}"
    if item.written == "inplace, out":
        return "an operator has that or `out`, not both"
    if item.written == "mutates_args":
        return f"`mutates_args` must be `{item.instead}`"
    who = f"`{item.name}`" if item.name else "what it returns"
    return f"{who} must be `{item.instead}`, and is `{item.written}`"


@rule("REG115", "keyword-only-tensor", needs=(CPP,))
def keyword_only_tensor(operator: Operator) -> Iterator[Diagnostic]:
    """A `custom_op` with a keyword-only tensor.

    Tensors of a `custom_op` must be before `*`, except those that it writes under the tag `out`; otherwise it raises when
    the module is imported.

    Bad:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, *, weight: Tensor) -> Tensor:
        return x * weight
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, weight: Tensor, *, factor: float = 1.0) -> Tensor:
        return x * weight * factor
    ```
    """
    definition, schema = operator.definition, operator.definition.schema
    if definition.api not in ("custom_op", "triton_op") or not isinstance(schema, OperatorSchema):
        return
    if definition.tags is None or "out" in definition.tags:
        return
    for item in schema.kwarg_only:
        if item.type.base == "Tensor":
            message = f"`{item.name}` is a tensor that `{operator.title}` takes by name alone: put it before `*`"
            yield Diagnostic(message, argument_place(operator, item), ops=(operator.title,))


_SLIPS = {"gpu": "cuda", "GPU": "cuda", "CPU": "cpu", "CUDA": "cuda", "Cpu": "cpu", "Cuda": "cuda", "Meta": "meta"}


@rule("REG116", "device-types")
def device_types(operator: Operator) -> Iterator[Diagnostic]:
    """A `device_types` without a tensor that determines the device, or with unknown device names.

    With `device_types`, torch chooses the kernel by the tensors that a call passes. A function without tensors needs an
    argument `device: torch.device`, which torch reads by its position: an `Optional` one is rejected; with one after `*` or
    with a default, calls that omit it fail. Device names are `cpu`, `cuda`, `mps` and so on, without an index.

    Bad:

    ```python
    @torch.library.custom_op("kit::table", mutates_args=(), device_types="cuda")
    def table(rows: int) -> Tensor:
        return torch.zeros(rows, device="cuda")
    ```

    Bad:

    ```python
    @torch.library.custom_op("kit::double", mutates_args=(), device_types="gpu")
    def double(x: Tensor) -> Tensor:
        return x * 2
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::table", mutates_args=(), device_types=("cpu", "cuda"))
    def table(rows: int, device: torch.device) -> Tensor:
        return torch.zeros(rows, device=device)
    ```
    """
    definition, schema = operator.definition, operator.definition.schema
    if definition.api != "custom_op" or not definition.device_types or not isinstance(schema, OperatorSchema):
        return
    place = _option(operator)
    for word in sorted(definition.device_types):
        kind, _, index = word.partition(":")
        if kind in _SLIPS or (index and kind in ("cpu", "cuda", "xpu", "mps")):
            message = f'`"{word}"` is not a device type that torch takes here: write `"{_SLIPS.get(kind, kind)}"`'
            yield Diagnostic(message, place, ops=(operator.title,))
    if any(item.type.base in ("Tensor", "") for item in schema.arguments):
        return
    device = schema.argument("device")
    if device is None or device.type.name != "Device" or device.type.inner is not None:
        message = (
            f"`{operator.title}` has `device_types` and takes no tensor: it needs an argument `device: torch.device`"
        )
        yield Diagnostic(
            message, place, declared(operator, [device] if device is not None else []), ops=(operator.title,)
        )
    elif device.kwarg_only or device.default is not None:
        effect = (
            "behind `*`: every call fails" if device.kwarg_only else "with a default: a call that leaves it off fails"
        )
        message = f"`{operator.title}` takes no tensor, so torch reads `device` by its place, and it stands {effect}"
        yield Diagnostic(message, argument_place(operator, device), ops=(operator.title,))


def _option(operator: Operator) -> Place:
    definition = operator.definition
    given = definition.call.keyword("device_types") if definition.call is not None else None
    return definition.body.at(given) if given is not None and definition.body is not None else definition.place
