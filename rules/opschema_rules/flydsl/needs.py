"""Places where Python itself needs a value while a function is traced: to count, index, decide, or make a shape."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.evaluation.statements import all_statements, is_variable, names_read, own_expressions, targets
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Statement
from opschema_rules.flydsl.candidates import displays, is_display, may_need
from opschema_rules.flydsl.device_values import DeviceValue, DeviceValues, stays_python
from opschema_rules.flydsl.model import Kind

Use: TypeAlias = Literal["count", "index", "shape", "decide", "decide: const_expr", "identity"]

_SHAPED = {"full": 1, "make_rmem_tensor": 1, "filled": 1, "UniversalCopy": 1, "make_tile": 9}
"""FlyDSL functions whose first arguments are shapes that are needed while tracing, and the number of such arguments."""
_GUARD = re.compile(r"\b(?:isinstance|hasattr|type|is_static)\(\s*([A-Za-z_]\w*)")
_COUNTING = frozenset({"int", "float", "round", "hex", "oct", "bin", "chr", "bytes"})
_DECIDING = frozenset({"any", "all", "sorted", "min", "max"})
_SEARCHING = frozenset({"index", "count", "pop"})
"""List methods that compare or count."""
_OF_INTEGERS = frozenset({"bit_length", "bit_count", "to_bytes", "as_integer_ratio", "conjugate", "hex"})
"""Methods of Python numbers that no FlyDSL number has, in any release from 0.1.8 to 0.5.0."""
_CHANGED = r"\b{0}\s*\.\s*(?!(?:index|count|append|extend)\b)|\b{0}\s*\[[^\n]*\]\s*=(?!=)|\bdel\b[^\n]*\b{0}\b"
"""Code that may change the first items of a list of this name."""
_CALLED = frozenset({"range_constexpr", "range", "bool", *_COUNTING, *_DECIDING, *_SEARCHING, *_OF_INTEGERS, *_SHAPED})
_SEQUENCES = frozenset({"list", "tuple", "typing.List", "typing.Tuple"})


class Need(msgspec.Struct, frozen=True, eq=False):
    """A device value that Python needs: ``by`` names the operation that needs it, and ``outer`` is its expression."""

    body: Body
    expr: Expr
    value: DeviceValue
    use: Use
    by: str
    outer: Expr


def needs(values: DeviceValues) -> Iterator[Need]:
    """Yield the device values of a traced function that Python needs."""
    inner, traced = values.bodies, values.traced
    constants = [item.name for item in traced.parameters if item.kind is Kind.CONSTEXPR]
    captured = [
        item.name for body in traced.body.outward() for item in body.params if _is_sequence_type(item.annotation)
    ]
    arrays = {"Array", *constants, *captured, *displays([*traced.body.outward(), *inner])}
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
            yield from self._in(expr)

    def _in(self, expr: Expr) -> Iterator[Need]:
        match expr.kind:
            case "for":
                for test in expr.items[2:]:
                    yield from self._decided(test, "if", test)
            case "call":
                yield from self._called(expr)
            case "subscript":
                yield from self._indexed(expr)
            case "compare" if expr.text in ("in", "not-in"):
                yield from self._searched(expr.items[0], expr.items[1], "in", expr)
            case "compare" if expr.text in ("is", "is-not"):
                yield from self._identified(expr)
            case "binary" if expr.text == "*":
                yield from self._repeated(expr)
            case "field" if not expr.text and any(part.items for part in expr.items[1:]):
                yield from self._need(expr.items[0], "count", "a format", expr)

    def _need(self, expr: Expr, use: Use, by: str, outer: Expr) -> Iterator[Need]:
        value = self.values.of(self.body, expr)
        if value and self._guarded.isdisjoint(names_read([expr])):
            yield Need(self.body, expr, value, use, by, outer)

    @cached_property
    def _guarded(self) -> set[str]:
        """The names whose kind of value the function tests."""
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
            shapes = [self._tuple(item) for item in arguments[: _SHAPED[own]]]
            yield from self._each(_flat(shapes), "shape", name, call)
        elif external in _COUNTING or external.startswith("math."):
            yield from self._each(arguments, "count", external, call)
        elif external == "bool" and len(arguments) == 1:
            yield from self._decided(arguments[0], external, call)
        elif external in _DECIDING and arguments:
            yield from self._compared(external, arguments, call)
        elif (owner := call.items[0].owner) is not None:
            yield from self._called_on(owner, call, arguments)

    def _called_on(self, owner: Expr, call: Expr, arguments: list[Expr]) -> Iterator[Need]:
        """Yield the number that a method of Python numbers is called on, or that is passed to a list method."""
        method = call.items[0].member
        if method in _OF_INTEGERS:
            yield from self._need(owner, "count", method, call)
        elif method == "pop":
            yield from self._each(arguments if self._is_sequence(owner) else (), "count", call.callee, call)
        elif method in _SEARCHING and len(arguments) == 1:
            yield from self._searched(arguments[0], owner, call.callee, call)

    def _compared(self, name: str, arguments: list[Expr], call: Expr) -> Iterator[Need]:
        """Yield the number that a built-in function compares with others or tests for truth."""
        if "key" in call.keywords:
            return
        only = arguments[0] if len(arguments) == 1 else None
        written = list(only.items) if only is not None and only.kind in ("list", "tuple") else None
        items = written if written is not None else arguments
        if only is not None and only.kind in ("generator", "listcomp"):
            yield from self._each([only.items[0]] if self._repeats(only) else (), "decide", name, call)
        elif any(item.kind == "starred" for item in items):
            return
        elif name in ("any", "all"):
            first = written[:1] if written is not None else []
            yield from self._each([item for item in first if self._is_number(item)], "decide", name, call)
        elif len(items) > 1 and (name != "sorted" or written is not None):
            yield from self._each([item for item in items if self._is_number(item)][:1], "decide", name, call)

    def _repeats(self, made: Expr) -> bool:
        """Whether a comprehension is known to produce a number at least twice."""
        element, *loops = made.items
        iterable = self._display(loops[0].items[1]) if len(loops) == 1 and len(loops[0].items) == 2 else None
        several = len(iterable.elements or ()) > 1 if iterable is not None else False
        return several and self._is_number(element)

    def _is_number(self, expr: Expr) -> bool:
        return self.values.of(self.body, expr) == "number"

    def _tuple(self, expr: Expr) -> Expr:
        """Return the tuple assigned to a variable of the function, or the expression itself."""
        bound = self.values.bindings(self.body, expr.text) if is_variable(expr) else None
        one = bound[0] if bound is not None and len(bound) == 1 else None
        return one if isinstance(one, Expr) and one.kind == "tuple" else expr

    def _display(self, expr: Expr) -> Expr | None:
        """Return the list or tuple literal of an expression, or the only one assigned to its variable; lists may grow at their
        ends.
        """
        found: Expr | None = expr
        if is_variable(expr):
            bound = self.values.bindings(self.body, expr.text)
            binder = self.body.binder(expr.text) or self.values.names.bodies.module(self.body.file)
            outside = () if _is_parameter(binder, expr.text) else binder.values(expr.text) or ()
            values = bound if bound is not None else outside
            one = values[0] if len(values) == 1 else None
            found = one if isinstance(one, Expr) else None
            if found is not None and found.kind == "list" and _may_shrink(self.body.file.source.text, expr.text):
                return None
        if found is None or found.kind not in ("list", "tuple"):
            return None
        return found if all(item.kind != "starred" for item in found.items) else None

    def _searched(self, item: Expr, within: Expr, by: str, outer: Expr) -> Iterator[Need]:
        """Yield a number that is compared with the items of a list whose first item is an integer or float."""
        found = self._display(within) if self._is_number(item) else None
        if found is not None and found.items and _is_integer(found.items[0]):
            yield from self._need(item, "decide", by, outer)

    def _identified(self, expr: Expr) -> Iterator[Need]:
        """Yield the number that ``is`` compares with a constant."""
        for one, other in (expr.items, expr.items[::-1]):
            if one.kind == "const" and isinstance(one.value, int | float | str):
                yield from self._need(other, "identity", expr.text.replace("-", " "), expr)

    def _repeated(self, expr: Expr) -> Iterator[Need]:
        """Yield the number that a list, tuple or string is multiplied by."""
        for one, other in (expr.items, expr.items[::-1]):
            text = one.kind == "literal" or (one.kind == "const" and isinstance(one.value, str))
            if text or one.kind in ("list", "tuple", "listcomp"):
                yield from self._need(other, "count", "*", expr)

    def _each(self, exprs: Iterable[Expr], use: Use, by: str, outer: Expr) -> Iterator[Need]:
        for expr in exprs:
            yield from self._need(expr, use, by, outer)

    def _indexed(self, expr: Expr) -> Iterator[Need]:
        value, *indices = expr.items
        several = indices[0].items if indices[0].kind == "tuple" else indices if len(indices) > 1 else ()
        if self._is_array(value) and several:
            yield from self._each(several[1:], "shape", value.text, expr)
        elif not several and (self._is_sequence(value) or self._is_inner_list(value)):
            by = "a list" if is_display(value) else self.body.file.text(value)
            parts = indices[0].items if indices[0].kind == "slice" else indices
            yield from self._each(parts, "index", by, expr)

    def _is_array(self, value: Expr) -> bool:
        name = value.text if value.kind == "name" else ""
        return name.rpartition(".")[2] == "Array" and self.values.names.full(self.body, name).endswith(".Array")

    def _is_inner_list(self, value: Expr) -> bool:
        """Whether an expression is an item of a list of lists that the function only uses by indexing twice."""
        if (
            value.kind != "subscript"
            or not is_variable(value.items[0])
            or value.items[0].text not in self._only_indexed
        ):
            return False
        bound = self.values.bindings(self.body, value.items[0].text) or []
        made = bound[0] if len(bound) == 1 else None
        if not isinstance(made, Expr) or made.kind not in ("list", "listcomp"):
            return False
        return all(map(is_display, made.items[:1] if made.kind == "listcomp" else made.items))

    @cached_property
    def _only_indexed(self) -> set[str]:
        """The variables that the function only reads as ``x[i][j]``."""
        exprs = [expr for item in self.statements for expr in own_expressions(item)]
        doubly = [expr for expr in exprs if expr.kind == "subscript" and expr.items[0].kind == "subscript"]
        clauses = [part for expr in exprs if expr.kind == "for" for part in expr.items[0].walk()]
        written = {part.span for item in self.statements for target in targets(item) for part in target.walk()}
        read = {expr.items[0].items[0].span for expr in doubly} - written
        uses = [(use.name.partition(".")[0], use.span in read) for use in self.body.scope.uses]
        inside = {use.name.partition(".")[0] for scope in list(self.body.scope.walk())[1:] for use in scope.uses}
        others = {name for name, indexed in uses if not indexed}.union(inside, names_read(clauses))
        return {name for name, _ in uses} - others

    def _is_sequence(self, value: Expr) -> bool:
        """Whether an expression is a Python list or tuple."""
        if not is_variable(value):
            return is_display(value)
        bound = self.values.bindings(self.body, value.text)
        if bound is not None:
            parameter = self.values.parameter(self.body, value.text)
            constant = parameter is not None and parameter.kind is Kind.CONSTEXPR
            return constant or all(isinstance(item, Expr) and is_display(item) for item in bound)
        binder = self.body.binder(value.text) or self.values.names.bodies.module(self.body.file)
        param = binder.function.param(value.text) if binder.function is not None else None
        if param is not None and param.annotation is not None:
            head = param.annotation.items[0] if param.annotation.kind == "subscript" else param.annotation
            return self.values.names.external(binder, head.text) in _SEQUENCES and not _is_assigned(binder, value.text)
        values = binder.values(value.text)
        return bool(values) and all(is_display(item) for item in values or ())


def _may_shrink(text: str, name: str) -> bool:
    """Whether a module may remove or replace items of a list."""
    return re.search(_CHANGED.format(name), text) is not None


def _is_integer(expr: Expr) -> bool:
    return expr.kind == "const" and isinstance(expr.value, int | float) and not isinstance(expr.value, bool)


def _is_sequence_type(annotation: Expr | None) -> bool:
    head = annotation.items[0] if annotation is not None and annotation.kind == "subscript" else annotation
    return head is not None and head.text.rpartition(".")[2].lower() in ("list", "tuple")


def _is_parameter(body: Body, name: str) -> bool:
    return body.function is not None and body.function.param(name) is not None


def _is_assigned(body: Body, name: str) -> bool:
    return any(item.target == name for item in body.scope.assigns)


def is_const_expr(expr: Expr) -> bool:
    """Whether an expression is a call of ``const_expr``."""
    return expr.callee.rpartition(".")[2] == "const_expr" and expr.keywords == ("",)


def _flat(exprs: Iterable[Expr]) -> list[Expr]:
    """Return expressions, with the items of tuples in place of the tuples."""
    return [part for expr in exprs for part in (_flat(expr.items) if expr.kind == "tuple" else [expr])]
