"""Resolves the parameter of a function that an expression shares its storage with, as far as the expression alone shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from opschema_cli.evaluation.statements import all_statements, bound_by, is_variable, targets
from opschema_cli.evaluation.tensors.results import torch_names
from opschema_cli.schema.operator_schema import Argument, OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Function, Statement
from opschema_rules.torchlib.model import Operator, Registration
from opschema_rules.torchlib.passing import filled, mismatches, pairs

_VIEW_ATTRIBUTES = frozenset({"T", "mT", "data"})

Tensors = dict[str, Argument]
"""The arguments that are tensors, by the function's own name for each."""


def implementations(operator: Operator) -> Iterator[tuple[Body, Registration | None]]:
    """The Python functions that run as kernels; without registration the one under the decorator."""
    definition = operator.definition
    decorated = definition.api in ("custom_op", "triton_op")
    if definition.function is not None and decorated:
        yield definition.function, None
    for item in operator.of_role("kernel"):
        shown = decorated and item.function is definition.function
        if isinstance(item.function, Body) and not shown:
            yield item.function, item


def tensors_of(operator: Operator, function: Body, registration: Registration | None) -> Tensors:
    """Return the parameters of a kernel that take tensors and are never reassigned; empty if it does not match the schema."""
    schema, skip = operator.definition.schema, filled(registration) if registration is not None else 0
    if not isinstance(schema, OperatorSchema) or mismatches(schema, function.params, skip):
        return {}
    bound = rebound(function)
    found = {param.name: argument for argument, param in pairs(schema, function.params, skip)}
    return {name: item for name, item in found.items() if item.type.base == "Tensor" and name not in bound}


@lru_cache(maxsize=128)
def rebound(function: Body) -> frozenset[str]:
    """Return the names that a function rebinds anywhere; ``x += 1`` does not rebind a tensor."""
    augmented = Counter(item.exprs[0].text for item in all_statements(function.statements) if item.kind == "augassign")
    return frozenset(_writes(function) - augmented)


def only_value(function: Body, name: str) -> Expr | None:
    """Return the only value assigned to a name, at the top level of the function; None if there are several or none."""
    assigns = [item for item in function.statements if item.kind == "assign" and _binds(item, name)]
    return assigns[0].exprs[-1] if len(assigns) == 1 and _writes(function)[name] == 1 else None


def _binds(item: Statement, name: str) -> bool:
    return any(target.kind == "name" and target.text == name for target in targets(item))


@lru_cache(maxsize=128)
def _writes(function: Body) -> Counter[str]:
    """The number of times that a function, with those inside it, binds each name."""
    found: Counter[str] = Counter()
    for scope in function.scope.walk():
        found.update(item.target for item in scope.assigns)
        found.update(scope.deleted)
        for defined in (scope.functions, scope.classes, scope.imports):
            found.update(item.name for item in defined)
    for item in _statements(function.function):
        for part in (part for expr in item.exprs for part in expr.walk() if part.kind == "for"):
            found.update(bound_by(part.items[0]))
    return found


def _statements(function: Function | None) -> Iterator[Statement]:
    """The statements of a function and of those written in it."""
    if function is not None:
        yield from all_statements(function.statements)
        for inner in (item for scope in function.peek_body().walk() for item in scope.functions):
            yield from all_statements(inner.peek_statements())


def sharing(expr: Expr | None, tensors: Tensors) -> str:
    """The tensor that an expression is, or is a view of; empty when it is not sure to be either."""
    if expr is None:
        return ""
    if expr.kind == "name" and expr.text in tensors:  # with dots a tensor in an object, where the caller names one
        return "" if is_variable(expr) and tensors[expr.text].type.is_list else expr.text
    if expr.kind in ("name", "attribute"):
        return sharing(expr.owner, tensors) if expr.owner is not None and expr.member in _VIEW_ATTRIBUTES else ""
    if expr.kind == "subscript":
        element = _element(expr, tensors)
        return element or (sharing(expr.items[0], tensors) if all(map(_is_basic, expr.items[1:])) else "")
    if expr.kind == "call":
        method = expr.items[0].member
        gives = (method in torch_names("views") and not _lacks_arguments(expr)) or writes_itself(method)
        return sharing(expr.items[0].owner, tensors) if gives else ""
    return ""


def gives_itself(method: str) -> bool:
    """Whether a tensor method may return the tensor itself, or a view of it."""
    return method in torch_names("views") or writes_itself(method)


def writes_itself(method: str) -> bool:
    """Whether a method of a tensor writes its elements: ``add_``, ``copy_``."""
    writes = method.endswith("_") and not method.endswith("__") and method[:1].isalpha()
    return writes and method not in torch_names("unwritten") and method != "rename_"  # of older releases


def _element(expr: Expr, tensors: Tensors) -> str:
    """The list of tensors that one element is taken of."""
    holder, *index = expr.items
    is_list = holder.kind == "name" and holder.text in tensors and tensors[holder.text].type.is_list
    return holder.text if is_list and len(index) == 1 and isinstance(index[0].value, int) else ""


def _is_basic(index: Expr) -> bool:
    """Whether an index returns a view: numbers, slices, ``...`` and ``None``."""
    if index.kind in ("tuple", "unary"):
        return all(map(_is_basic, index.items))
    if index.kind == "const":
        return index.value is None or type(index.value) is int
    return index.kind == "slice" or (index.kind == "literal" and index.text == "...")


def _lacks_arguments(call: Expr) -> bool:
    """Whether a call that needs arguments has none, so that it is of something else than a tensor."""
    return call.items[0].member in ("view", "expand", "select", "narrow") and len(call.items) == 1
