"""A function that only calls another one: how it passes on an argument that it is to take."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.schema.operator_schema import Argument
from opschema_cli.source.bodies import Body, argument_for
from opschema_cli.source.call_edits import with_arguments
from opschema_cli.source.python import Expr, Param
from opschema_cli.source.text import Edit
from opschema_rules.torchlib.default_values import is_same_default
from opschema_rules.torchlib.model import Operator


def passing_on(operator: Operator, function: Body, arguments: Sequence[Argument]) -> Edit | None:
    """The edit that passes arguments on, each by its name, in the one call whose result the function returns.

    None unless the called function, or the operator itself, takes each under that name, with the operator's default if it has one.
    """
    call = _returned_call(function)
    callee = _callee(operator, function, call) if call is not None else None
    if call is None or callee is None or any(word in ("*", "**") for word in call.keywords):
        return None
    params = {param.name: param for param in callee.params if param.kind in ("normal", "kwonly")}
    if not all(_takes(operator, callee, call, params.get(item.name), item) for item in arguments):
        return None
    return with_arguments(function.file.source.text, call, [f"{item.name}={item.name}" for item in arguments])


def _returned_call(function: Body) -> Expr | None:
    """The call that is the function's one result, or for a vmap rule the first of the pair."""
    scope = function.scope
    if function.function is None or len(scope.returns) != 1 or scope.guarded or scope.loops:
        return None
    returned = scope.returns[0]
    elements = returned.elements if returned.kind == "tuple" else None
    first, rest = (elements[0], elements[1:]) if elements else (returned, ())
    inner = any(call.start < item.end and item.start < call.end for item in rest for call in scope.calls)
    return first if first.kind == "call" and not inner else None


def _callee(operator: Operator, function: Body, call: Expr) -> Body | None:
    """Return the called function: one of the tree; for an operator, the function that it is made from."""
    own = operator.definition.function
    if any(item.body is function and item.call.start == call.start for item in operator.calls):
        return own if not operator.definition.explicit else None
    return operator.tree.bodies.called(function, call.callee)


def _takes(operator: Operator, callee: Body, call: Expr, param: Param | None, argument: Argument) -> bool:
    """Whether the callee has a parameter for an argument that the call leaves off, without default or with that of the operator."""
    if param is None or argument_for(call, callee.params, argument.name) is not None:
        return False
    if param.default is None or callee is operator.definition.function:
        return True
    return argument.default is None or is_same_default(operator, argument, callee, param)
