"""Defaults of a fake or a kernel against those of the schema."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, FileEdit, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import Argument, OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Param
from opschema_cli.source.text import Edit, Span
from opschema_rules.torchlib.default_values import declared_value, default_span, default_text, value_of
from opschema_rules.torchlib.model import Operator, Role
from opschema_rules.torchlib.passing import filled, in_force, mismatches, pairs
from opschema_rules.torchlib.places import declared
from opschema_rules.torchlib.proofs import CALLS

ROLES: tuple[Role, ...] = ("fake", "kernel", "vmap")
"""Roles whose functions the dispatcher's arguments reach."""


@rule("REG205", "other-default", fixable="unsafe", needs=(CPP,), proof=CALLS)
def other_default(operator: Operator) -> Iterator[Diagnostic]:
    """A default that differs from the schema's.

    An argument that equals the schema's default is not passed, so the function's own default is used instead: a call with the
    schema's default, explicit or not, computes with the other value.

    Defaults are compared after conversion to the schema's type: `int[2] k=1` is `(1, 1)`, and a tuple equals a list. Parameters
    that the function never reads are not checked, nor are defaults other than numbers, strings, lists of these and constants of
    torch, nor `None`, which often stands for another value.

    Bad:

    ```python
    @torch.library.custom_op("kit::pool", mutates_args=())
    def pool(x: Tensor, window: int = 2) -> Tensor:
        return x[::window].clone()


    @pool.register_fake
    def _(x, window=1):
        return torch.empty_like(x[::window])
    ```

    Good (the same value, and one that is not read):

    ```python
    @torch.library.custom_op("kit::norm", mutates_args=())
    def norm(x: Tensor, eps: float = 1e-6, size: int = 2) -> Tensor:
        return x * eps * size


    @norm.register_fake
    def _(x, eps=0.0, size=2.0):
        return x.new_empty(x.shape[0] * int(size))


    torch.library.define("kit::blur", "(Tensor x, int[2] kernel=1, int[2] stride=[1, 2]) -> Tensor")


    @torch.library.impl("kit::blur", "cpu")
    def blur(x, kernel=(1, 1), stride=(1, 2)):
        return torch.nn.functional.avg_pool2d(x, kernel, stride)
    ```
    """
    schema = operator.definition.schema
    if not isinstance(schema, OperatorSchema):
        return
    registered = [item for role in ROLES for item in in_force(operator.of_role(role))]
    functions = [(item.function, filled(item)) for item in registered]
    if operator.definition.explicit:
        functions.append((operator.definition.function, 0))
    for function, skip in functions:
        if isinstance(function, Body) and not mismatches(schema, function.params, skip):
            for argument, param in pairs(schema, function.params, skip):
                yield from _compared(operator, function, argument, param)


def _compared(operator: Operator, function: Body, argument: Argument, param: Param) -> Iterator[Diagnostic]:
    ours, theirs = value_of(operator, argument, function, param), declared_value(operator, argument)
    if ours is None or theirs is None or ours == theirs or param.default is None or not _reads(function, param.name):
        return
    if Folded(None) in (ours, theirs):  # `None` stands for whatever the function makes of it
        return
    yield Diagnostic(
        f"`{param.name}` defaults to `{_written(function, param)}` here and to `{argument.default}` in the schema of"
        f" `{operator.title}`: a call with the schema's default computes with this one",
        function.at(param.default),
        related=declared(operator, [argument]),
        fix=_as_declared(operator, function, argument, param),
        ops=(operator.title,),
    )


def _as_declared(operator: Operator, function: Body, argument: Argument, param: Param) -> Fix | None:
    """The schema's default in the place of the function's, brackets included."""
    text = default_text(operator, argument, function, param.start)
    if text is None:
        return None
    edit = FileEdit(function.file.path, Edit(_span(function, param), text))
    return Fix(f"make the default `{text}`", (edit,), "unsafe", "the schema's default may be the wrong one")


def _span(function: Body, param: Param) -> Span:
    head_end = param.annotation.end if param.annotation is not None else param.end
    return default_span(function.file.source.text, head_end, param.full_end)


def _written(function: Body, param: Param) -> str:
    return function.file.text(_span(function, param))


def _reads(function: Body, name: str) -> bool:
    return any(use.name.partition(".")[0] == name for scope in function.scope.walk() for use in scope.uses)
