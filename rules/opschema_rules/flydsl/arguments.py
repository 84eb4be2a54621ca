"""The arguments of calls of traced functions: Python values, device values, tensors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import msgspec
from msgspec import structs

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.statements import is_variable
from opschema_cli.lint.diagnostic import Related
from opschema_cli.source.bodies import Body, arguments_for
from opschema_cli.source.call_misfits import Misfit, misfits
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Expr, Param, Statement
from opschema_cli.source.text import Place, holds_word
from opschema_rules.flydsl.body_index import index_of
from opschema_rules.flydsl.device_values import DeviceValue, DeviceValues, device_values, is_plain_number, launches
from opschema_rules.flydsl.model import Call, FlyTree, Kind, Parameter, Traced
from opschema_rules.flydsl.rebinding import may_be_another
from opschema_rules.flydsl.tensors import value_of

ATTRIBUTES = ("unit_attrs", "value_attrs")
"""Keywords that the call of any kernel accepts besides its parameters."""

_PLAIN = frozenset({"int", "float", "bool", "str"})
_ARITHMETIC = frozenset({"+", "-", "*", "//", "%"})

ON_DEVICE = frozenset({Kind.TENSOR, Kind.NUMBER, Kind.STREAM, Kind.POINTER})
"""Kinds of parameters whose values are known on the GPU only."""


class Argument(msgspec.Struct, frozen=True, eq=False, dict=True):
    """An argument, its parameter, and the traced function that contains the call."""

    tree: FlyTree
    call: Call
    parameter: Parameter
    expr: Expr
    around: Traced | None

    @property
    def place(self) -> Place:
        """The place of the argument."""
        return self.call.body.at(self.expr)

    @property
    def text(self) -> str:
        """The argument's source text."""
        return self.call.body.file.text(self.expr)

    @cached_property
    def own(self) -> Parameter | None:
        """The enclosing function's parameter that is passed on unchanged, if that function launches kernels."""
        if self.around is None or self.expr.kind != "name" or not launches(self.tree, self.around):
            return None
        found = self.around.parameter(self.expr.text)
        binder = self.call.body.binder(self.expr.text)
        rebound = any(item.target == self.expr.text for body in self._inner for item in body.scope.assigns)
        return found if binder is self.around.body and not rebound else None

    def _is_plain(self, binder: Body, param: Param) -> bool:
        """Whether a parameter of the factory around a traced function is a plain value, by its annotation."""
        factory = self.around.factory if self.around is not None else None
        if factory is not binder or self.tree.around(binder) is not None:
            return False
        if param.annotation is None or param.annotation.text not in _PLAIN or _is_changed(binder, param.name):
            return False
        return all(self.tree.around(body) is None for body, _ in self.tree.bodies.calls_of(binder))

    @property
    def _inner(self) -> Iterator[Body]:
        return self.tree.within(self.around) if self.around is not None else iter(())

    @cached_property
    def value(self) -> Expr:
        """The value that the host passes: the argument, or the value of a local variable that is assigned once and never tested."""
        body = self.call.body
        local = is_variable(self.expr) and body.binds(self.expr.text) and not may_be_another(self.tree, body, self.expr)
        found = value_of(self.tree, body, self.expr.text) if local else None
        tests = (part.text for test in body.scope.conditions for part in test.expr.walk() if part.kind == "name")
        kept = found is None or self.expr.text in tests or _is_shared(body.binder(self.expr.text), self.expr.text)
        return self.expr if found is None or kept else found

    @cached_property
    def device(self) -> DeviceValue:
        """Whether its value is known on the GPU only."""
        return device_values(self.tree, self.around).of(self.call.body, self.expr) if self.around is not None else ""

    @cached_property
    def python(self) -> bool:
        """Whether it is a plain Python value: a constant, a variable with one, or a ``Constexpr`` that is passed on."""
        if self.own is not None:
            return self.own.kind is Kind.CONSTEXPR
        body = self.call.body
        for part in self.expr.walk():
            name = part.text if part.kind == "name" else ""
            binder = body.binder(name.partition(".")[0]) if name else None
            param = binder.function.param(name.partition(".")[0]) if binder is not None and binder.function else None
            if binder is not None and param is not None:
                return part is self.expr and self._is_plain(binder, param)
        found = self.tree.evaluator.fold(body, self.expr)
        if isinstance(found, Folded) and not found.symbol and isinstance(found.value, int | float | str | None):
            return True
        return self.around is not None and _is_counted(device_values(self.tree, self.around), body, self.expr)


def _is_counted(values: DeviceValues, body: Body, expr: Expr) -> bool:
    """Whether a number is computed from constants and at least one variable of a loop over ``range_constexpr`` or over literal
    numbers.
    """
    if expr.kind == "binary" and expr.text in _ARITHMETIC:
        counted = [_is_counted(values, body, item) for item in expr.items]
        plain = zip(counted, expr.items, strict=True)
        return any(counted) and all(known or is_plain_number(item) for known, item in plain)
    bound = values.bindings(body, expr.text) if is_variable(expr) else None
    loop = bound[0] if bound is not None and len(bound) == 1 else None
    if not isinstance(loop, Statement) or not loop.blocks[0][0].start <= expr.start < loop.blocks[0][-1].end:
        return False
    iterable = loop.exprs[1]
    listed = bool(iterable.elements) and all(map(is_plain_number, iterable.elements or ()))
    return listed or values.names.called(body, iterable) == "range_constexpr"


def _is_shared(body: Body | None, name: str) -> bool:
    """Whether a nested function assigns a variable of a body, or the body deletes it."""
    return body is None or any(name in scope.deleted for scope in body.scope.walk())


def _is_changed(body: Body, name: str) -> bool:
    return any(item.target == name for item in body.scope.assigns) or _is_shared(body, name)


def call_arguments(tree: FlyTree, call: Call) -> Iterator[Argument]:
    """Yield the arguments of a call that matches its signature, with their parameters."""
    around = tree.around(call.body)
    if not fits(tree, call):
        return
    arguments = arguments_for(call.expr, [item.param for item in call.target.call_parameters])
    for parameter in call.target.call_parameters:
        value = arguments.get(parameter.name)
        if value is not None:
            yield Argument(tree, call, parameter, value, around)


def fits(tree: FlyTree, call: Call) -> bool:
    """Whether a call is checked and its signature accepts it."""
    judged = binds_as_written(tree, call) and not (call.compiles and call.target.kind == "kernel")
    return judged and not misfits_of(tree, call)


def misfits_of(tree: FlyTree, call: Call) -> list[Misfit]:
    """Return the mismatches between a call and its signature; empty if the call may be of another function that it matches."""
    if not all(misfits_of(tree, structs.replace(call, target=other, others=())) for other in call.others):
        return []
    also = ATTRIBUTES if call.target.kind == "kernel" else ()
    return list(misfits(_unpacked(tree, call), [item.param for item in call.target.call_parameters], also))


def _unpacked(tree: FlyTree, call: Call) -> Expr:
    """Return a call with one argument for each item of ``*args``, if their number is known."""
    found: list[tuple[str, Expr]] = []
    for word, item in call.expr.args:
        count = _count(tree, call.body, item) if word == "*" else None
        found += [("", item)] * count if count is not None else [(word, item)]
    head = call.expr.items[:1]
    return structs.replace(
        call.expr, items=(*head, *(item for _, item in found)), keywords=tuple(word for word, _ in found)
    )


def _count(tree: FlyTree, body: Body, expr: Expr) -> int | None:
    """Return the number of items of a tuple literal, or of one that a function of the tree returns; None if it is not known."""
    if is_variable(expr):
        if may_be_another(tree, body, expr):
            return None
        expr = index_of(body).value_before(expr.text, expr.start) or expr
    if expr.kind == "call" and not may_be_another(tree, body, expr.items[0]):
        helper = tree.bodies.called(body, expr.callee)
        counts = (
            {_length(item) for item in helper.scope.returns} if helper is not None and is_simple(helper) else {None}
        )
        return counts.pop() if len(counts) == 1 else None
    return _length(expr)


def _length(expr: Expr) -> int | None:
    return len(expr.items) if expr.kind == "tuple" and all(item.kind != "starred" for item in expr.items) else None


@cached_on_argument
def is_simple(helper: Body) -> bool:
    """Whether a function is plain: no method, generator or coroutine, and without decorators."""
    function, around = helper.function, helper.parent
    if function is None or function.decorators or around is None or around.cls is not None:
        return False
    text = helper.file.text(function.outer)
    return not holds_word("yield", text) and not text.startswith("async")


def binds_as_written(tree: FlyTree, call: Call) -> bool:
    """Whether a call binds its arguments by the function's definition: no other decorator changes it, and no instance is passed."""
    through = bool(call.body.this) and call.expr.callee.partition(".")[0] == call.body.this
    return all(_is_plain(tree, item) and (through or not item.takes_instance) for item in (call.target, *call.others))


def _is_plain(tree: FlyTree, traced: Traced) -> bool:
    around = traced.body.parent or traced.body
    others = [item for item in traced.function.decorators if item is not traced.decorator]
    names = [item.callee or item.text for item in others]
    return all(tree.names.external(around, name) == "staticmethod" for name in names)


def is_read(traced: Traced, parameter: Parameter) -> bool:
    """Whether a function, or a nested one, names a parameter or may read all of its variables."""
    return traced.names is None or parameter.name in traced.names


def signature(traced: Traced) -> Related:
    """Return a function's name and parameters as the other side of a finding."""
    return Related(traced.place, f"`{traced.name}({', '.join(item.name for item in traced.call_parameters)})`")
