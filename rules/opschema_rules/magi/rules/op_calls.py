"""Calls of ops against their original signatures, and the dataclasses that are passed."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace as with_fields

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import Argument, OperatorSchema, SchemaType
from opschema_rules.magi.as_torch import as_operator
from opschema_rules.magi.calls import OpCall
from opschema_rules.magi.judged_calls import judged_calls
from opschema_rules.magi.made_dataclasses import constructor_faults
from opschema_rules.magi.misfits import misfit
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.passed import passed
from opschema_rules.magi.signature import Leaf, Node
from opschema_rules.magi.types_of_torch import type_in_schema
from opschema_rules.torchlib import model as torchlib
from opschema_rules.torchlib.rules.op_calls import call_faults


@rule("MAG360", "op-arguments")
def op_arguments(op: MagiOp) -> Iterator[Diagnostic]:
    """A call whose arguments do not match the op's signature.

    The op is called with the function's own parameters, and through `torch.ops` with the lowered ones (`config__scale`).
    The rule checks for arguments that are missing, unknown, too many or passed twice, and for literals that torch rejects
    for a parameter's type. If the call constructs a dataclass for a parameter, the arguments of the constructor are checked
    against the fields in the same way. Calls whose exceptions are caught, or that a test expects to fail, are not reported.

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale


    def scaled(x):
        return scale(x) + scale(x, cfg=Config(2.0))
    ```

    Bad (a constructor with an unknown field):

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale


    def scaled(x):
        return scale(x, Config(factor=2.0))
    ```

    Bad:

    ```python
    @magi_register_custom_op("kit::add")
    def add(x: Tensor, k: int) -> Tensor:
        return x + k


    def added(x):
        return add(x, 1.5) + add(x, 1, 2)
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config, bias: float = 0.0) -> Tensor:
        return x * config.scale + bias


    def scaled(x, *more, **options):
        by_name = scale(config=Config(2.0), x=x, bias=1)
        return by_name + scale(x, *more) + scale(x, **options) + torch.ops.kit.scale(x, config__scale=2.0)
    ```
    """
    operator = as_operator(op)
    if operator is not None:
        for item in judged_calls(op):
            schema = _schema(op, item)
            call = torchlib.OpCall(item.place, item.body, item.call, item.through)
            for found in call_faults(operator, schema, call):
                yield with_fields(found, related=_declared(op, found))
            yield from constructor_faults(op, operator, item)


@rule("MAG361", "argument-value")
def argument_value(op: MagiOp) -> Iterator[Diagnostic]:
    """A call that passes a value of the wrong kind: another dataclass, a tensor for a dataclass, a member for a string.

    A call of the op reads the fields of the annotated dataclass from the argument, and torch checks the value of each: an
    instance of a class without one of these fields raises, as does a tensor in place of a dataclass, a dataclass in place
    of a tensor, or a member of `class Mode(Enum)` in place of a string. An instance of another class with the same fields
    is accepted. Only values that are certain are checked.

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    @dataclass(frozen=True)
    class Other:
        size: int


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale


    def scaled(x):
        return scale(x, Other(2)) + scale(x, x)
    ```

    Bad:

    ```python
    class Mode(Enum):
        ADD = "add"


    @dataclass(frozen=True)
    class Config:
        mode: str
        scale: float = 1.0


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale


    def scaled(x):
        return scale(x, Config(Mode.ADD))
    ```

    Good (another class with the same fields):

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    class Options:
        def __init__(self, scale):
            self.scale = scale


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale


    def scaled(x, config, other: Options):
        return scale(x, Config(1.0)) + scale(x, config) + scale(x, Options(2.0)) + scale(x, other)
    ```
    """
    if as_operator(op) is not None:
        for item in judged_calls(op):
            for node in _nodes(op, item):
                value = passed(op, item, node)
                reason = misfit(op, item, node, value) if value is not None else ""
                if value is not None and reason:
                    related = (Related(node.place, "declared here"),)
                    yield Diagnostic(f"`{op.title}` {reason}", value.place, related, ops=(op.title,))


def _schema(op: MagiOp, item: OpCall) -> OperatorSchema:
    return OperatorSchema("", tuple(_argument(op, node, item) for node in _nodes(op, item, top=True)), ())


def _nodes(op: MagiOp, item: OpCall, *, top: bool = False) -> Iterator[Node]:
    """The parameters that a call passes; without ``top`` also the fields of dataclasses."""
    if item.through == "torch.ops":
        yield from op.lowering.leaves
    elif top:
        yield from op.lowering.nodes
    else:
        yield from op.lowering.branches
        yield from op.lowering.leaves


def _argument(op: MagiOp, node: Node, item: OpCall) -> Argument:
    """An argument of a call; one whose default torch may not keep is never missing, since ``dropped-default`` reports it."""
    lowered = item.through == "torch.ops" and isinstance(node, Leaf)
    param = next(param for param in op.params if param.name == node.path[0])
    name = node.lowered if lowered and isinstance(node, Leaf) else node.name
    has_default = node.written.kind != "absent" if isinstance(node, Leaf) else param.default is not None
    type_ = type_in_schema(node.lowered_type) if isinstance(node, Leaf) else SchemaType()
    default = "None" if has_default else None
    return Argument(name, type_, param.full_span, param.span, default=default, kwarg_only=param.kind == "kwonly")


def _declared(op: MagiOp, found: Diagnostic) -> tuple[Related, ...]:
    return tuple(Related(item.place, f"the signature of `{op.title}`") for item in found.related)
