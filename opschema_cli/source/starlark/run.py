"""Runs functions of build files symbolically: both branches of an unknown condition, and each iteration of a loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from opschema_cli.source.cmake.conditions import ALWAYS, Origin, joined
from opschema_cli.source.python import Expr, Function, Param, PythonFile, Statement
from opschema_cli.source.starlark.expressions import Scope, evaluate, formatted
from opschema_cli.source.starlark.values import (
    UNKNOWN,
    FunctionValue,
    ListValue,
    NamedRule,
    Value,
    is_extension,
    list_of,
    truth,
)

MAX_DEPTH = 12
"""Maximum nesting of calls to follow."""


class Runner(ABC):
    """Runs the code of one file. ``conditions`` are those of the current statement."""

    def __init__(self, file: PythonFile) -> None:
        self.file = file
        self.depth = 0
        self.made = 0
        """The number of libraries that were made so far."""
        self.conditions: frozenset[tuple[str, bool]] = ALWAYS
        self._entry: frozenset[tuple[str, bool]] = ALWAYS
        """The conditions under which the current function was called."""
        self._stays: frozenset[tuple[str, bool]] = ALWAYS
        """The conditions under which it has not returned yet."""
        self._returned: list[tuple[Value, frozenset[tuple[str, bool]]]] = []
        """The values that it returns under other conditions."""

    @abstractmethod
    def spend(self, work: int) -> None:
        """Count work; see :class:`~opschema_cli.source.starlark.expressions.Host`."""

    @abstractmethod
    def outside(self, dotted: str, positional: list[Value], named: dict[str, Value], call: Expr) -> Value:
        """Return the value of a call of a function from outside the tree."""

    @abstractmethod
    def module_of(self, value: FunctionValue) -> Scope:
        """Return the names that a function sees outside itself."""

    @abstractmethod
    def ran(self, value: FunctionValue, named: Mapping[str, Value], *, makes: bool) -> None:
        """Called after a function has run; ``makes`` says whether it made a library."""

    def member(self, value: Value, name: str) -> Value:
        """Return an attribute of a value that is neither a dictionary nor from outside the tree."""
        return UNKNOWN

    # Calls

    def call(self, expr: Expr, scope: Scope) -> Value:
        """Return the value of a call."""
        if self.depth >= MAX_DEPTH:
            return UNKNOWN
        method = self.method(expr, scope)
        if method is not None:
            return method
        callee = evaluate(expr.items[0], scope, self)
        positional, named = self.arguments(expr, scope)
        if isinstance(callee, FunctionValue):
            before = self.made
            value = self.run(callee, positional, named)
            self.ran(callee, named, makes=self.made > before)
            return value
        if isinstance(callee, NamedRule):
            return self.outside(callee.name, positional, named, expr)
        return UNKNOWN

    def arguments(self, call: Expr, scope: Scope) -> tuple[list[Value], dict[str, Value]]:
        """Return the values of a call's arguments, by position and by name."""
        positional: list[Value] = []
        named: dict[str, Value] = {}
        for keyword, item in call.args:
            value = evaluate(item, scope, self)
            if keyword == "**":
                named.update(value if isinstance(value, dict) else {})
            elif keyword == "*":
                positional += [item for item, _ in value.items] if isinstance(value, ListValue) else []
            elif keyword:
                named[keyword] = value
            else:
                positional.append(value)
        self.spend(len(positional) + len(named))
        return positional, named

    def method(self, call: Expr, scope: Scope) -> Value | None:
        """Return the result of a method of a known value; None for any other call."""
        owner = call.items[0].owner
        value = evaluate(owner, scope, self) if owner is not None else UNKNOWN
        name = call.items[0].member
        if isinstance(value, str) and name == "format":
            return formatted(value, *self.arguments(call, scope))
        if isinstance(value, dict) and name in ("get", "pop", "setdefault", "update", "items", "keys", "values"):
            return self._of_dictionary(value, name, *self.arguments(call, scope))
        if isinstance(value, ListValue) and name in ("append", "extend"):
            (item, *_), _ = (*self.arguments(call, scope)[:1], None) if call.args else ([UNKNOWN], None)
            added = item if name == "extend" else list_of([item])
            longer = value + (added.under(self.conditions) if isinstance(added, ListValue) else added)
            self.spend(len(longer.items))
            value.items[:], value.open = longer.items, longer.open
            return UNKNOWN
        return None

    def _of_dictionary(self, value: dict[str, Value], name: str, given: list[Value], named: dict[str, Value]) -> Value:
        key = given[0] if given else None
        if name == "update":
            value.update({**(key if isinstance(key, dict) else {}), **named})
        elif name in ("get", "pop", "setdefault") and isinstance(key, str):
            found = value.get(key, given[1] if len(given) > 1 else None)
            if name == "pop":
                value.pop(key, None)
            elif name == "setdefault":
                value[key] = found
            return found
        return UNKNOWN

    # Functions

    def run(self, value: FunctionValue, positional: list[Value], named: dict[str, Value]) -> Value:
        """Return the result of a function."""
        module = cast("dict[str, Value]", self.module_of(value))
        local = self._bound(value.function, positional, named, module)
        before = self.conditions, self._entry, self._stays, self._returned
        self._entry, self._stays, self._returned = self.conditions, ALWAYS, []
        self.depth += 1
        returned = self.block(value.function.statements, local, ChainMap(local, module))
        self.depth -= 1
        last = returned if returned is not None else UNKNOWN
        found = [*self._returned, (last, self._stays)]
        self.conditions, self._entry, self._stays, self._returned = before
        return one_of(found)

    def default(self, function: Function, param: Param, module: Scope) -> Value:
        """Return the default of a parameter; no call can change it in Starlark."""
        return evaluate(param.default, module, self) if param.default is not None else UNKNOWN

    def block(self, statements: Iterable[Statement], local: dict[str, Value], scope: Scope) -> Value | None:
        """Run statements. Return the value that they return, if any."""
        for item in statements:
            self.spend(1)
            if item.kind == "expr":
                evaluate(item.exprs[0], scope, self)
            elif item.kind == "assign":
                self.assign(item.exprs[:-1], evaluate(item.exprs[-1], scope, self), local, scope)
            elif item.kind == "augassign":
                self._extend(item, local, scope)
            elif item.kind == "return":
                return evaluate(item.exprs[0], scope, self) if item.exprs else UNKNOWN
            else:
                run = {"if": self._branch, "for": self._loop}.get(item.kind, self.other)
                returned = run(item, local, scope)
                if returned is not None:
                    return returned
        return None

    @abstractmethod
    def other(self, statement: Statement, local: dict[str, Value], scope: Scope) -> Value | None:
        """Run another kind of statement. Return the value that it always returns, if any."""

    def leave(self, value: Value, condition: tuple[str, bool]) -> None:
        """Record that the function returns a value if a condition holds in addition to the current ones; otherwise the rest
        runs.
        """
        self._returned.append((value, (self.conditions - self._entry) | {condition}))
        name, holds = condition
        direct = self.conditions == self._entry | self._stays
        self._stays |= {(name, not holds) if direct else (f"{name} does not return", True)}
        self.conditions |= self._stays

    def continue_under(self, conditions: frozenset[tuple[str, bool]]) -> None:
        """Run the following statements under conditions, and under those for which the function has not returned."""
        self.conditions = conditions | self._stays

    def assign(self, targets: Sequence[Expr], value: Value, local: dict[str, Value], scope: Scope) -> None:
        """Bind names and items of dictionaries to a value."""
        for target in targets:
            if target.kind == "name" and "." not in target.text:
                local[target.text] = value if not self.conditions else UNKNOWN
            elif target.kind == "subscript":
                owner, key = (evaluate(item, scope, self) for item in target.items[:2])
                if isinstance(owner, dict) and isinstance(key, str):
                    owner[key] = value if not self.conditions else UNKNOWN

    def _extend(self, statement: Statement, local: dict[str, Value], scope: Scope) -> None:
        target, item = statement.exprs
        before, added = evaluate(target, scope, self), evaluate(item, scope, self)
        value: Value = UNKNOWN
        if statement.text.startswith("+") and isinstance(before, ListValue):
            longer = before + (added.under(self.conditions) if isinstance(added, ListValue) else added)
            self.spend(len(longer.items))
            before.items[:], before.open = longer.items, longer.open
            value = before
        if target.kind == "name":
            local[target.text] = value

    def _branch(self, statement: Statement, local: dict[str, Value], scope: Scope) -> Value | None:
        holds = truth(evaluate(statement.exprs[0], scope, self))
        if holds is not None:
            return self.block(statement.blocks[not holds], local, scope)
        before = self.conditions
        name = f"{self.file.path} {statement.start}"
        returned: list[tuple[Value | None, tuple[str, bool]]] = []
        for truth_value, block in zip((True, False), statement.blocks, strict=False):
            self.continue_under(before | {(name, truth_value)})
            returned.append((self.block(block, local, scope), (name, truth_value)))
        self.continue_under(before)
        found = [(value, condition) for value, condition in returned if value is not None]
        if len(found) == 2:
            return one_of([(value, frozenset({condition})) for value, condition in found])
        for value, condition in found:
            self.leave(value, condition)
        return None

    def _loop(self, statement: Statement, local: dict[str, Value], scope: Scope) -> Value | None:
        target, iterable = statement.exprs
        listed = evaluate(iterable, scope, self)
        items = listed.items if isinstance(listed, ListValue) and not listed.open else [(UNKNOWN, None)]
        before = self.conditions
        for at, (value, origin) in enumerate(items):
            known = origin if origin is not None else frozenset({(f"{self.file.path} {statement.start} {at}", True)})
            self.continue_under(before | known)
            if target.kind == "name":
                local[target.text] = value
            returned = self.block(statement.blocks[0], local, scope)
            if returned is not None and known == ALWAYS:
                self.continue_under(before)
                return returned
            if returned is not None:
                self.leave(returned, (f"{self.file.path} {statement.start} {at}", True))
        self.continue_under(before)
        return None

    def _bound(
        self, function: Function, positional: Sequence[Value], named: Mapping[str, Value], module: Scope
    ) -> dict[str, Value]:
        """Return the variables that a function begins with."""
        found: dict[str, Value] = {}
        rest = dict(named)
        given = list(positional)
        for item in function.params:
            if item.kind == "vararg":
                found[item.name], given = list_of(given), []
            elif item.kind == "kwarg":
                found[item.name] = rest
            elif item.name in rest:
                found[item.name] = rest.pop(item.name)
            elif given and item.kind != "kwonly":
                found[item.name] = given.pop(0)
            else:
                found[item.name] = self.default(function, item, module)
        return found


def one_of(values: Sequence[tuple[Value, frozenset[tuple[str, bool]]]]) -> Value:
    """Return one of several values, each under its conditions; one of them is known to hold."""
    first = values[0][0]
    lists = [(item, origin) for item, origin in values if isinstance(item, ListValue)]
    if all(item is first for item, _ in values):
        return first
    if not lists:
        plain = first is None or isinstance(first, (str, bool, int))
        same = plain and all(type(item) is type(first) and item == first for item, _ in values)
        return first if same or all(is_extension(item) for item, _ in values) else UNKNOWN
    origins: dict[str, list[tuple[Origin, Origin]]] = {}
    found = ListValue([], open=len(lists) < len(values) or any(item.open for item, _ in lists))
    for listed, conditions in lists:
        for item, origin in listed.items:
            if isinstance(item, str):
                origins.setdefault(item, []).append((origin, joined(origin, conditions)))
            else:
                found.items.append((item, joined(origin, conditions)))
    for name, places in origins.items():
        own = {origin for origin, _ in places}
        everywhere = len(places) == len(values) and len(own) == 1
        found.items.append((name, places[0][1] if len(places) == 1 else own.pop() if everywhere else None))
    return found
