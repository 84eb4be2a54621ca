"""Places where Python itself needs a value while a function is traced: to count, to index, to decide, to make a shape."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.evaluation.statements import all_statements, is_variable, names_read, own_expressions
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Statement
from opschema_rules.flydsl.candidates import displays, is_display, may_need
from opschema_rules.flydsl.device_values import DeviceValue, DeviceValues, stays_python
from opschema_rules.flydsl.model import Kind

Use: TypeAlias = Literal["count", "index", "shape", "decide", "decide: const_expr"]

_SHAPED = {"full": 1, "make_rmem_tensor": 1, "filled": 1, "UniversalCopy": 1, "make_tile": 9}
"""FlyDSL's functions whose first arguments are shapes that it needs while it traces, and how many."""
_GUARD = re.compile(r"\b(?:isinstance|hasattr|type|is_static)\(\s*([A-Za-z_]\w*)")
_CALLED = frozenset({"range_constexpr", "range", "int", "float", "bool", "min", "max", *_SHAPED})


class Need(msgspec.Struct, frozen=True, eq=False):
    """A device value that Python needs: ``by`` names what needs it, and ``outer`` is that expression."""

    body: Body
    expr: Expr
    value: DeviceValue
    use: Use
    by: str
    outer: Expr


def needs(values: DeviceValues) -> Iterator[Need]:
    """The device values of a traced function that Python needs."""
    inner, traced = values.bodies, values.traced
    constants = [item.name for item in traced.parameters if item.kind is Kind.CONSTEXPR]
    arrays = {"Array", *constants, *displays([*traced.body.outward(), *inner])}
    for body in inner:
        if body.function is not None and may_need(body, values.candidates, _CALLED | {"const_expr"}, arrays):
            found = _Needs(values, body, list(all_statements(body.function.statements)))
            for item in found.statements:
                yield from found.of(item)


class _Needs:
    def __init__(self, values: DeviceValues, body: Body, statements: list[Statement]) -> None:
        self.values = values
        self.body = body
        self.statements = statements
        loops = (item for item in statements if item.kind == "for")
        self.loops = {item.exprs[1].span for item in loops if not stays_python(values.traced.body, body, item.start)}

    def of(self, item: Statement) -> Iterator[Need]:
        if item.kind in ("if", "while") and is_const_expr(item.exprs[0]):
            yield from self._decided(item.exprs[0].items[1], "const_expr", item.exprs[0])
        elif item.kind == "assert":
            yield from self._decided(item.exprs[0], "assert", item.exprs[0])
        for expr in own_expressions(item):
            if expr.kind == "for":
                for test in expr.items[2:]:
                    yield from self._decided(test, "if", test)
            elif expr.kind == "call":
                yield from self._called(expr)
            elif expr.kind == "subscript":
                yield from self._indexed(expr)

    def _need(self, expr: Expr, use: Use, by: str, outer: Expr) -> Iterator[Need]:
        value = self.values.of(self.body, expr)
        if value and self._guarded.isdisjoint(names_read([expr])):
            yield Need(self.body, expr, value, use, by, outer)

    @cached_property
    def _guarded(self) -> set[str]:
        """The names that the function asks for the kind of value that they hold."""
        text = self.values.traced.body.file.text(self.values.traced.function.outer)
        return {match[1] for match in _GUARD.finditer(text)}

    def _decided(self, expr: Expr, by: str, outer: Expr) -> Iterator[Need]:
        use: Use = "decide: const_expr" if by == "const_expr" else "decide"
        yield from (item for item in self._need(expr, use, by, outer) if item.value != "either")

    def _called(self, call: Expr) -> Iterator[Need]:
        name = call.callee
        if "*" in call.keywords or (name.rpartition(".")[2] not in _CALLED and not name.startswith("math.")):
            return
        own = self.values.names.full(self.body, name).rpartition(".")[2]
        external = self.values.names.external(self.body, name)
        arguments = call.positional()
        if own == "range_constexpr" or (external == "range" and call.span not in self.loops):
            yield from self._each(arguments, "count", own or external, call)
        elif own in _SHAPED:
            yield from self._each(_flat(arguments[: _SHAPED[own]]), "shape", name, call)
        elif external in ("int", "float") or external.startswith("math."):
            yield from self._each(arguments, "count", external, call)
        elif external == "bool" and len(arguments) == 1:
            yield from self._decided(arguments[0], external, call)
        elif external in ("min", "max") and len(arguments) > 1:
            numbers = [item for item in arguments if self.values.of(self.body, item) == "number"]
            yield from self._each(numbers[:1], "decide", external, call)

    def _each(self, exprs: Iterable[Expr], use: Use, by: str, outer: Expr) -> Iterator[Need]:
        for expr in exprs:
            yield from self._need(expr, use, by, outer)

    def _indexed(self, expr: Expr) -> Iterator[Need]:
        value, *indices = expr.items
        several = indices[0].items if indices[0].kind == "tuple" else indices if len(indices) > 1 else ()
        if self._is_array(value) and several:
            yield from self._each(several[1:], "shape", value.text, expr)
        elif not several and self._is_sequence(value):
            by = value.text if is_variable(value) else "a list"
            parts = indices[0].items if indices[0].kind == "slice" else indices
            yield from self._each(parts, "index", by, expr)

    def _is_array(self, value: Expr) -> bool:
        name = value.text if value.kind == "name" else ""
        return name.rpartition(".")[2] == "Array" and self.values.names.full(self.body, name).endswith(".Array")

    def _is_sequence(self, value: Expr) -> bool:
        """Whether an expression is a list or a tuple of Python's."""
        if not is_variable(value):
            return is_display(value)
        bound = self.values.bindings(self.body, value.text)
        if bound is not None:
            parameter = self.values.traced.parameter(value.text)
            constant = parameter is not None and parameter.kind is Kind.CONSTEXPR and bound == [None]
            return constant or all(isinstance(item, Expr) and is_display(item) for item in bound)
        binder = self.body.binder(value.text) or self.values.names.bodies.module(self.body.file)
        values = binder.values(value.text)
        return bool(values) and all(is_display(item) for item in values or ())


def is_const_expr(expr: Expr) -> bool:
    """Whether an expression is a call of ``const_expr``."""
    return expr.callee.rpartition(".")[2] == "const_expr" and expr.keywords == ("",)


def _flat(exprs: Iterable[Expr]) -> list[Expr]:
    """Expressions, with those of tuples in their place."""
    return [part for expr in exprs for part in (_flat(expr.items) if expr.kind == "tuple" else [expr])]
