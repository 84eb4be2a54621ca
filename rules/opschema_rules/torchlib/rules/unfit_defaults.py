"""Defaults in the signature that a schema is made from: those that no schema can represent, and those of the wrong type."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import Argument, OperatorSchema, SchemaType
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Expr, Param
from opschema_cli.source.text import Edit
from opschema_rules.torchlib.model import Operator
from opschema_rules.torchlib.proofs import REGISTRATION
from opschema_rules.torchlib.spelling import optional_of
from opschema_rules.torchlib.type_table import type_table


@rule("REG106", "default-value", fixable="safe", by_release=True, proof=REGISTRATION)
def default_value(operator: Operator) -> Iterator[Diagnostic]:
    """A default that a schema cannot express.

    A schema holds defaults as text: `None`, numbers, booleans, strings, dtypes and devices. A list, a tuple or a
    tensor, infinity, a string with `"` or a line break in it, and `None` for a list or a device that is not
    `Optional` raise when the module is imported.

    Bad:

    ```python
    @torch.library.custom_op("kit::reduce", mutates_args=())
    def reduce(x: Tensor, dims: List[int] = ()) -> Tensor:
        return x.sum(dims)
    ```

    Bad (`None` for a list):

    ```python
    @torch.library.custom_op("kit::reduce", mutates_args=())
    def reduce(x: Tensor, dims: List[int] = None) -> Tensor:
        return x.sum(dims)
    ```

    Bad:

    ```python
    @torch.library.custom_op("kit::clip", mutates_args=())
    def clip(x: Tensor, high: float = float("inf")) -> Tensor:
        return x.clamp(max=high)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::reduce", mutates_args=())
    def reduce(x: Tensor, dims: Optional[List[int]] = None, high: Optional[float] = None) -> Tensor:
        return x.sum(dims or ()).clamp(max=high)
    ```
    """
    for item in operator.definition.problems:
        if item.kind == "default":
            message = f"the default of `{item.name}` is `{item.written or '()'}`, which no schema can hold"
            yield Diagnostic(message, item.place, ops=(operator.title,))
    yield from _of_no_type(operator)
    for default in _defaults(operator):
        reason = unwritable(default.argument.type, default.folded)
        if reason:
            yield Diagnostic(
                f"the default of `{default.argument.name}` is `{default.text}`: {reason}",
                default.function.at(default.expr),
                fix=_optional(operator, default),
                ops=(operator.title,),
            )


@rule("REG107", "default-type", severity="warning", fixable="safe", by_release=True, proof=REGISTRATION)
def default_type(operator: Operator) -> Iterator[Diagnostic]:
    """A default that is not a value of its parameter's type.

    `infer_schema` accepts `size: int = None`. A call that omits such an argument works, since trailing defaults are not
    passed at all. One that passes `None`, or under `torch.compile` a later argument, fails: `None` is not an `int`. Nothing
    is reported for `bool` and `Tensor`, for which torch accepts `None`.

    Bad:

    ```python
    @torch.library.custom_op("kit::pool", mutates_args=())
    def pool(x: Tensor, window: int = None, stride: int = 1) -> Tensor:
        return x[:: window or stride].clone()
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::pool", mutates_args=())
    def pool(x: Tensor, window: Optional[int] = None, scale: float = 1, weight: Tensor = None) -> Tensor:
        return x[:: window or 1].clone() * scale
    ```
    """
    for default in _defaults(operator):
        if unwritable(default.argument.type, default.folded) or _fits(default):
            continue
        name, type_ = default.argument.name, default.function.file.text(default.annotation)
        fix = _optional(operator, default)
        do = f": {fix.title}" if fix is not None else ""
        yield Diagnostic(
            f"`{name}` is `{type_}` and defaults to `{default.text}`: a call that passes this, or under `torch.compile` an"
            f" argument behind it, fails{do}",
            default.function.at(default.expr),
            fix=fix,
            ops=(operator.title,),
        )


_COMPLEX_OR_BYTES = re.compile(r"[rR]?[bB]|.*[jJ]\Z")


def _of_no_type(operator: Operator) -> Iterator[Diagnostic]:
    """Defaults of types that no schema has: complex numbers, bytes, tensors."""
    definition, function = operator.definition, operator.definition.function
    if definition.explicit or function is None or not isinstance(definition.schema, OperatorSchema):
        return
    for param in function.params:
        if param.default is None:
            continue
        text = function.file.text(param.default)
        strange = param.default.kind == "literal" and _COMPLEX_OR_BYTES.match(text) is not None
        tensor = operator.tree.bodies.external(function.parent or function, param.default.callee) in _TENSORS
        if strange or tensor:
            message = f"the default of `{param.name}` is `{text}`, which no schema can hold"
            yield Diagnostic(message, function.at(param.default), ops=(operator.title,))


class _Default(msgspec.Struct, frozen=True):
    """A default whose value is known."""

    argument: Argument
    function: Body
    annotation: Expr
    expr: Expr
    folded: Folded

    @property
    def text(self) -> str:
        return self.function.file.text(self.expr)

    @property
    def is_none(self) -> bool:
        return self.folded.value is None and not self.folded.symbol


def _defaults(operator: Operator) -> Iterator[_Default]:
    definition = operator.definition
    function, schema = definition.function, definition.schema
    if definition.explicit or function is None or not isinstance(schema, OperatorSchema):
        return
    outer = function.parent or function
    params = {item.name: item for item in reversed(function.params)}
    for argument in schema.arguments:
        param: Param | None = params.get(argument.name)
        if param is None or param.default is None or param.annotation is None or not argument.type.base:
            continue
        found = operator.tree.evaluator.fold(outer, param.default)
        if isinstance(found, Folded) and not isinstance(found.value, list | tuple):
            yield _Default(argument, function, param.annotation, param.default, found)


def unwritable(type_: SchemaType, default: Folded) -> str:
    """The reason why a schema cannot hold a default of a parameter of that type; empty if it can."""
    value = default.value
    if default.symbol in _NO_DTYPES:
        return "torch takes dtypes and devices, and no layouts"
    if isinstance(value, float) and not math.isfinite(value):
        return "no schema can hold it"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "a schema holds integers of 64 bits"
    if isinstance(value, str) and any(part in value for part in '"\n'):
        return 'no schema can hold a string with `"` or a line break'
    if isinstance(value, str) and (len(value) - len(value.rstrip("\\"))) % 2:
        return "no schema can hold a string that ends with a backslash"
    if type_.is_list and not default.symbol and not isinstance(value, list | tuple):
        return "torch refuses it for a list"
    is_none = value is None and not default.symbol
    return "torch refuses it for a device" if type_.name == "Device" and is_none else ""


_TENSORS = frozenset(
    f"torch.{name}" for name in ("tensor", "zeros", "ones", "empty", "full", "arange", "rand", "randn")
)
_NO_DTYPES = frozenset(
    f"torch.{name}" for name in ("strided", "sparse_coo", "contiguous_format", "channels_last", "preserve_format")
)
_FITTING: dict[str, tuple[type, ...]] = {
    "SymInt": (int,), "float": (int, float), "bool": (int, float), "str": (str,), "Scalar": (int, float), "Device": (str,),
}  # fmt: skip


def _fits(default: _Default) -> bool:
    type_, value = default.argument.type, default.folded.value
    inner = type_.inner if type_.optional and type_.inner is not None else type_
    if default.folded.symbol or inner.is_list:
        return True
    if value is None:
        return type_.optional or inner.name in ("bool", "Tensor")
    return isinstance(value, _FITTING.get(inner.name, ()))


def _optional(operator: Operator, default: _Default) -> Fix | None:
    """Return the fix that adds ``Optional`` to the type of a parameter with the default None, if torch accepts that."""
    type_, function = default.argument.type, default.function
    if not default.is_none or not _may_be_optional(operator, default):
        return None
    text = optional_of(operator.tree, function.parent or function, function.file.text(default.annotation))
    if text is None or type_.optional:
        return None
    return Fix(f"write `{text}`", (FileEdit(function.file.path, Edit(default.annotation.span, text)),))


def _may_be_optional(operator: Operator, default: _Default) -> bool:
    type_ = default.argument.type
    if not type_.is_list:
        return True
    tensors = type_.base == "Tensor" and type_table(operator.tree.torch).takes_optional_tensor_lists
    return tensors or type_.base in ("SymInt", "float", "bool")
