"""Types of numbers, and of elements of tensors."""

from __future__ import annotations

from functools import cached_property

from opschema_cli.evaluation.statements import is_variable
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.annotations import is_number
from opschema_rules.flydsl.number_types import FLOAT, INT, NumberTypes
from opschema_rules.flydsl.tensors import Tensors
from opschema_rules.flydsl.value_types import is_float, machine_type


class ElementTypes(NumberTypes):
    """The types of numbers, including elements of tensor arguments in statements that are ``surely_run`` for every caller."""

    surely_run = False

    @cached_property
    def tensors(self) -> Tensors:
        """The tensors of the tree."""
        return Tensors(self.tree)


def type_of(types: ElementTypes, body: Body, expr: Expr) -> str:
    """Return the type of a value, including an element of a tensor in registers with a written type, and a conversion by ``to``."""
    found = types.of(body, expr)
    if found:
        return found
    if expr.kind == "call":
        if _is_select(types, body, expr):
            return _selected([type_of(types, body, item) for item in expr.items[1:]])
        name, _, method = expr.callee.rpartition(".")
        converts = method == "to" and expr.keywords == ("",)
        holder = types.of(body, Expr("name", expr.start, expr.start + len(name), name)) if converts and name else ""
        return _number(types, body, expr.items[1]) if machine_type(holder) and holder not in (INT, FLOAT) else ""
    if expr.kind != "subscript" or not is_variable(expr.items[0]) or not all(map(_is_index, expr.items[1:])):
        return ""
    bound = types.values.bindings(body, expr.items[0].text) or []
    if types.values.parameter(body, expr.items[0].text) is not None:
        plain = all(types.of(body, item) in (INT, "Int32") for item in expr.items[1:])
        return types.tensors.element(types.values.traced, expr.items[0].text) if plain and types.surely_run else ""
    made = bound[0] if len(bound) == 1 else None
    if not isinstance(made, Expr) or types.tree.names.called(body, made) != "make_rmem_tensor":
        return ""
    element = made.keyword("dtype") or next(iter(made.positional()[1:2]), None)
    return _number(types, body, element) if element is not None else ""


def _is_select(types: ElementTypes, body: Body, call: Expr) -> bool:
    """Whether a call is of the method `select` of a comparison with a GPU value, or of a variable that holds one."""
    owner = call.items[0].owner if call.items[0].member == "select" and call.keywords == ("", "") else None
    bound = types.values.bindings(body, owner.text) or [] if owner is not None and is_variable(owner) else [owner]
    compared = bound[0] if len(bound) == 1 else None
    return isinstance(compared, Expr) and compared.kind == "compare" and bool(types.values.of(body, compared))


def _selected(kinds: list[str]) -> str:
    """Return the type of a choice between two values: a float of unknown size, if one of them is a FlyDSL float."""
    if kinds[0] == kinds[1]:
        return kinds[0]
    return FLOAT if any(is_float(item) and item != FLOAT for item in kinds) else ""


def _is_index(expr: Expr) -> bool:
    return expr.kind in ("name", "binary") or (expr.kind == "const" and type(expr.value) is int)


def _number(types: NumberTypes, body: Body, expr: Expr) -> str:
    """Return the FlyDSL number type that an expression names."""
    last = types.tree.names.last(body, expr)
    return last if is_number(last) else ""
