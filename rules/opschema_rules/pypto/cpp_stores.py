"""Assignments in an orchestration: to variables, to fields, to memory."""

from __future__ import annotations

from opschema_cli.source.cpp import CppNode
from opschema_rules.pypto.cpp_declarations import FIELDS, is_fresh, kernel_of
from opschema_rules.pypto.cpp_numbers import computed
from opschema_rules.pypto.cpp_state import EMPTY, Scope, State
from opschema_rules.pypto.cpp_values import UNKNOWN, Mixed, Number, Object, Pointer, Several, Tensors, Value, merged
from opschema_rules.pypto.cpp_walk import Evaluation, Walk


class Stores:
    """Follows the assignments of a walk."""

    def __init__(self, walk: Walk, expressions: Evaluation) -> None:
        self.walk = walk
        self.expressions = expressions

    def updated(self, node: CppNode, scope: Scope, state: State) -> Value:
        """Follow ``i++`` and ``--i``."""
        argument = node.field("argument")
        before = self.expressions.value(argument, scope, state) if _is_name(argument) else UNKNOWN
        by = 1 if operator_of(node) == "++" else -1
        after = Number(before.value + by) if isinstance(before, Number) else UNKNOWN
        if argument is not None:
            self._store(argument, after, node, scope, state, changes=True)
        return after if node.text.startswith(("++", "--")) else before

    def assigned(self, node: CppNode, scope: Scope, state: State) -> Value:
        """Return the value of an assignment, with its effect applied."""
        value, target = self.expressions.value(node.field("right"), scope, state), node.field("left")
        while target is not None and target.kind == "parenthesized_expression" and target.children:
            target = target.children[0]
        if target is None:
            return value
        operator = operator_of(node)
        if operator != "=":
            before = self.expressions.value(target, scope, state) if _is_name(target) else UNKNOWN
            value = _changed(operator, before, value)
        self._store(target, value, node, scope, state, changes=operator != "=")
        return value

    def _store(
        self, target: CppNode, value: Value, node: CppNode, scope: Scope, state: State, *, changes: bool
    ) -> None:
        """Store a value in a variable or in a part of one, or change its present value."""
        if target.kind == "identifier":
            number = scope.find(target.text)
            if changes and number is not None and isinstance(state.values.get(number), Tensors | Pointer):
                return
            if number is not None:
                self._store_variable(number, value, node, state)
            else:
                self.expressions.keep([value], "a variable outside of the function takes it", node, state)
        elif target.kind == "field_expression":
            self._store_field(target, value, node, scope, state)
        else:
            self._store_item(target, value, scope, state, changes=changes)

    def _store_variable(self, number: int, value: Value, node: CppNode, state: State) -> None:
        """Assign to a variable: an object gets the contents of another, a pointer refers to another object."""
        own = state.values.get(number)
        if isinstance(own, Several):
            self.expressions.give([own], "it is one of several", node, state)
        elif not isinstance(own, Object) or own.pointer:
            copies = isinstance(value, Object) and not value.pointer
            if isinstance(value, Object) and copies:
                state.held[number] = self.walk.copied(value, state)
            state.values[number] = Object(number) if copies else self.walk.fitting(number, value)
        elif isinstance(value, Object) and not value.pointer:
            state.held[own.number] = self.walk.copied(value, state)
        elif is_fresh(node.field("right")):
            state.held[own.number] = EMPTY
        else:
            state.lose(own.number, "it is assigned an unknown value", node.span)

    def _store_field(self, target: CppNode, value: Value, node: CppNode, scope: Scope, state: State) -> None:
        owner, name, right = target.field("argument"), target.field("field"), node.field("right")
        number = scope.find(owner.text) if owner is not None and owner.kind == "identifier" else None
        mixed = state.values.get(number, UNKNOWN) if number is not None else self.expressions.value(owner, scope, state)
        if name is None or name.text not in FIELDS:
            self.expressions.keep([value], "a field takes it", node, state)
        elif isinstance(mixed, Mixed) and number is not None and right is not None:
            kernel = kernel_of(right, FIELDS[name.text], value)
            state.values[number] = mixed.having(name.text, kernel)

    def _store_item(self, target: CppNode, value: Value, scope: Scope, state: State, *, changes: bool) -> None:
        """Follow ``pointer[i] = ...`` and ``*pointer = ...``."""
        owner = target.field("argument")
        base = self.expressions.value(owner, scope, state)
        self.expressions.value(target.field("indices"), scope, state)
        number = scope.find(owner.text) if owner is not None and owner.kind == "identifier" else None
        if isinstance(base, Pointer):
            if changes:
                self.expressions.use(base.arguments, "read", target, state)
            self.expressions.use(base.arguments, "written", target, state)
        elif isinstance(base, Tensors) and isinstance(value, Tensors) and number is not None:
            state.values[number] = merged([base, value])
        else:
            self.expressions.give([base, value], "it is one of several", target, state)


def _changed(operator: str, before: Value, by: Value) -> Value:
    """Return the value after ``before += by``."""
    if not isinstance(before, Number) or not isinstance(by, Number):
        return UNKNOWN
    return Number(before.value - by.value) if operator == "-=" else computed(operator[:-1], before.value, by.value)


def _is_name(node: CppNode | None) -> bool:
    return node is not None and node.kind == "identifier"


def operator_of(node: CppNode) -> str:
    """Return the operator of an expression; empty without one."""
    found = node.field("operator")
    return found.text if found is not None else ""
