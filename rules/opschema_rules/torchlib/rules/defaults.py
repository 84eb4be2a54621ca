"""Defaults of a fake or a kernel against those of the schema."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, FileEdit, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import Argument, OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Param
from opschema_cli.source.text import Edit
from opschema_rules.torchlib.model import Operator, Role
from opschema_rules.torchlib.passing import filled, in_force, mismatches, pairs
from opschema_rules.torchlib.places import declared
from opschema_rules.torchlib.signature_fixes import default_of

ROLES: tuple[Role, ...] = ("fake", "kernel", "vmap")
"""What is registered as a function that the dispatcher's arguments reach."""


@rule("REG205", "other-default", fixable="unsafe", needs=(CPP,))
def other_default(operator: Operator) -> Iterator[Diagnostic]:
    """A default that is another than the schema's.

    An argument that equals the schema's default is not passed, so that the function's own default takes its place: a call with
    the schema's default, written or not, computes with the other value. Nothing is said of a parameter that the function never
    reads, nor of a default that is no plain number, string or constant of torch, nor of `None`, which functions take for whatever
    they like.

    Bad:

    ```python
    @torch.library.custom_op("kit::pool", mutates_args=())
    def pool(x: Tensor, window: int = 2) -> Tensor:
        return x[::window].clone()


    @pool.register_fake
    def _(x, window=3):
        return x.new_empty(x.shape[0] // window)
    ```

    Good (the same value, and one that is not read):

    ```python
    @torch.library.custom_op("kit::norm", mutates_args=())
    def norm(x: Tensor, eps: float = 1e-6, size: int = 2) -> Tensor:
        return x * eps * size


    @norm.register_fake
    def _(x, eps=0.0, size=2.0):
        return x.new_empty(x.shape[0] * int(size))
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
    ours, theirs = _value(operator, function, param), _declared(operator, argument)
    if ours is None or theirs is None or ours == theirs or param.default is None or not _reads(function, param.name):
        return
    if Folded(None) in (ours, theirs):  # `None` stands for whatever the function makes of it
        return
    text = default_of(operator, argument, function)
    edits = (FileEdit(function.file.path, Edit(param.default.span, text)),) if text is not None else ()
    yield Diagnostic(
        f"`{param.name}` defaults to `{function.file.text(param.default)}` here and to `{argument.default}` in the schema of"
        f" `{operator.title}`: a call with the schema's default computes with this one",
        function.at(param.default),
        related=declared(operator, [argument]),
        fix=Fix(f"make the default `{text}`", edits, "unsafe", "the schema's default may be the wrong one")
        if edits
        else None,
        ops=(operator.title,),
    )


def _reads(function: Body, name: str) -> bool:
    return any(use.name.partition(".")[0] == name for scope in function.scope.walk() for use in scope.uses)


def _declared(operator: Operator, argument: Argument) -> Folded | None:
    """The value of the schema's default; None when there is none, or it is not known."""
    definition = operator.definition
    if definition.explicit and argument.type.base == "ScalarType" and (argument.default or "").isidentifier():
        return Folded(symbol=f"torch.{argument.default}") if argument.default != "None" else Folded(None)
    if definition.explicit:
        try:
            return None if argument.default is None else Folded(ast.literal_eval(argument.default))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    function = definition.function
    param = function.function.param(argument.name) if function is not None and function.function is not None else None
    return _value(operator, function, param) if function is not None and param is not None else None


def _value(operator: Operator, function: Body, param: Param) -> Folded | None:
    """The value of a parameter's default; None when there is none, or it is not known."""
    if param.default is None:
        return None
    scopes = function.parent.scopes if function.parent is not None else ()
    found = operator.tree.bodies.program.fold(function.file, param.default, scopes)
    return found if isinstance(found, Folded) else None
