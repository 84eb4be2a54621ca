"""Calls of op classes, their instances and methods, in library code, tests and benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import ClassRef, External, FunctionRef, Program
from opschema_cli.source.python import Expr, PythonFile

FunctionKey = tuple[str, int]
"""A function's file and place."""


def key_of(ref: FunctionRef) -> FunctionKey:
    """Return the key that identifies a referenced function."""
    return ref.file.path, ref.function.start


class CallSite(msgspec.Struct, frozen=True):
    """A call, and the functions that it may run; ``targets`` is None if they are not known.

    ``owner`` is the class whose method calls another one of its instance. ``ahead`` is the number of arguments before those of
    ``call``: one, the callee, where ``functools.partial`` binds them. ``unpacked`` are the dicts that it unpacks, without a
    parameter ``**name``, whose contents the callers of its function pass.
    """

    file: PythonFile
    call: Expr
    targets: tuple[FunctionRef, ...] | None
    owner: ClassRef | None = None
    ahead: int = 0
    unpacked: tuple[Expr, ...] = ()


class CallSites:
    """Finds the functions that calls run. Calling a class runs ``__init__``, calling an instance ``forward``."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.bodies = Bodies(program, ())

    def of(self, file: PythonFile) -> Iterator[CallSite]:
        """Every call of a file; ``functools.partial`` counts as the call that it binds arguments of."""
        for body in self.bodies.of(file):
            for outer in body.scope.calls:
                call = self._bound(body, outer)
                callee = call.items[0]
                on_self = callee.kind == "name" and body.this and callee.text.rpartition(".")[0] == body.this
                ahead = len(outer.items) - len(call.items)
                handed_on = {param.name for param in body.params if param.kind == "kwarg"}
                unpacked = tuple(value for word, value in call.args if word == "**" and value.text not in handed_on)
                owner = body.owner if on_self else None
                yield CallSite(file, call, self._targets(body, callee), owner, ahead, unpacked)

    def _bound(self, body: Body, call: Expr) -> Expr:
        """The call that ``functools.partial`` binds arguments of; any other call itself."""
        if call.callee.rpartition(".")[2] != "partial" or not call.positional():
            return call
        found = self.bodies.resolve(body, call.callee)
        if not isinstance(found, External) or found.name != "functools.partial":
            return call
        return Expr("call", call.start, call.end, items=call.items[1:], keywords=call.keywords[1:])

    def _targets(self, body: Body, callee: Expr) -> tuple[FunctionRef, ...] | None:
        classes = self._classes(body, callee)
        if classes:
            return self._members(classes, "__init__")
        if callee.kind == "attribute" and callee.items[0].callee == "super":
            return self._inherited(body, callee.text)
        holder, _, name = callee.text.rpartition(".") if callee.kind == "name" else ("", "", "")
        if holder and holder == body.this and body.owner is not None and name in _methods(self.program, body.owner):
            return self._members([body.owner], name)
        instances = self._instances(body, callee, MAX_CALLS)
        if instances:
            return self._members(instances, "forward")
        owners = self._instances(body, _name(callee, holder), MAX_CALLS) if holder else None
        if owners:
            return self._members(owners, name)
        found = self.bodies.resolve(body, callee.text) if callee.kind == "name" else None
        return (found,) if isinstance(found, FunctionRef) else None

    def _inherited(self, body: Body, name: str) -> tuple[FunctionRef, ...] | None:
        """Return the method of the next class, as far as the calling class can know."""
        lineage = self.program.lineage(body.owner)[1:] if body.owner is not None else []
        found = next((item for ref in lineage if (item := self.program.own_member(ref, name)) is not None), None)
        return (found,) if isinstance(found, FunctionRef) else None

    def _members(self, classes: Iterable[ClassRef], name: str) -> tuple[FunctionRef, ...] | None:
        found = [self.program.member(ref, name) for ref in classes]
        functions = tuple(item for item in found if isinstance(item, FunctionRef))
        return functions if len(functions) == len(found) else None

    def _classes(self, body: Body, callee: Expr) -> list[ClassRef] | None:
        """Return the classes that an expression refers to: its own, or all that a loop iterates over."""
        if callee.kind != "name":
            return None
        found = self.bodies.resolve(body, callee.text) if body.binder(callee.text.partition(".")[0]) is None else None
        if isinstance(found, ClassRef):
            return [found]
        imported = self._locally_imported(body, callee.text)
        return [imported] if imported is not None else None

    def _locally_imported(self, body: Body, dotted: str) -> ClassRef | None:
        first = dotted.partition(".")[0]
        binder = body.binder(first)
        plain = binder is not None and first in (item.name for item in binder.scope.imports)
        found = (
            self.bodies.resolve(body, dotted)
            if plain and binder is not None and not _is_written(binder, first)
            else None
        )
        return found if isinstance(found, ClassRef) else None

    def _instances(self, body: Body, expr: Expr, hops: int) -> list[ClassRef] | None:
        """Return the classes that an expression may be an instance of; None if one of them is not known."""
        if hops <= 0:
            return None
        if expr.kind == "call":
            return self._classes(body, expr.items[0])
        if expr.kind == "boolop":
            return self._of_all(body, expr.items, hops - 1)
        if expr.kind != "name":
            return None
        if expr.text == body.this:
            return [body.owner] if body.owner is not None else None
        holder, _, name = expr.text.rpartition(".")
        if holder:
            return self._of_attribute(body, name, hops) if holder == body.this else None
        binder = body.binder(expr.text)
        values = binder.values(expr.text) if binder is not None else self._module_values(body.file, expr.text)
        return self._of_all(binder or self.bodies.module(body.file), values or [], hops - 1)

    def _module_values(self, file: PythonFile, name: str) -> list[Expr] | None:
        return self.bodies.module(file).values(name)

    def _of_attribute(self, body: Body, name: str, hops: int) -> list[ClassRef] | None:
        """Return the classes of the values that the methods of one class assign to an attribute."""
        found: list[ClassRef] = []
        for other in self.bodies.of(body.file):
            if other.owner != body.owner:
                continue
            for assign in other.scope.assigns:
                if other.attribute_of(assign.target) == name:
                    classes = self._instances(other, assign.value, hops - 1) if assign.value is not None else None
                    if classes is None:
                        return None
                    found += classes
        return found or None

    def _of_all(self, body: Body, values: Iterable[Expr], hops: int) -> list[ClassRef] | None:
        found: list[ClassRef] = []
        for value in values:
            classes = self._instances(body, value, hops)
            if classes is None:
                return None
            found += classes
        return list(dict.fromkeys(found)) or None


def _is_written(body: Body, name: str) -> bool:
    return any(item.target == name for item in body.scope.assigns) or any(item.name == name for item in body.params)


def _methods(program: Program, ref: ClassRef) -> set[str]:
    return {function.name for owner in program.lineage(ref) for function in owner.cls.body.functions}


def _name(callee: Expr, text: str) -> Expr:
    """The stretch of a dotted name that is ``text``."""
    return Expr("name", callee.start, callee.start + len(text), text)
