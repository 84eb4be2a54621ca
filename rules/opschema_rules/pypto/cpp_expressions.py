"""Expressions of an orchestration except calls and assignments: their values and effects on variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

from opschema_cli.source.cpp import CppNode
from opschema_rules.pypto.cpp_calls import MEMORY, Calls
from opschema_rules.pypto.cpp_declarations import is_tensor, type_of
from opschema_rules.pypto.cpp_numbers import computed, item_of, keeps_bits, number_of, table_of, truth
from opschema_rules.pypto.cpp_state import Scope, State
from opschema_rules.pypto.cpp_stores import Stores, operator_of
from opschema_rules.pypto.cpp_values import (
    UNKNOWN,
    Bits,
    Mixed,
    Number,
    Object,
    Outside,
    Pointer,
    Several,
    Table,
    Tensors,
    Unknown,
    Value,
    merged,
    objects_of,
    united,
)
from opschema_rules.pypto.cpp_walk import Walk
from opschema_rules.pypto.facts import Use

_INNER = ("parenthesized_expression", "cast_expression", "expression_statement", "else_clause")
_PASSIVE = ("sizeof_expression", "alignof_expression", "alias_declaration", "using_declaration", "type_definition")
_CLASSES = ("struct_specifier", "class_specifier", "union_specifier", "template_declaration", "preproc_def")
_WORD = re.compile(r"[A-Za-z_]\w*")
SUBMITS = re.compile(r"\brt_submit_|\badd_(?:input|output|inout|no_dep)\b")
"""Pattern of calls that fill or submit payloads."""

Handler: TypeAlias = Callable[[CppNode, Scope, State], Value]


class Expressions:
    """Evaluates expressions in a walk."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.calls = Calls(walk, self)
        self.stores = Stores(walk, self)

    def value(self, node: CppNode | None, scope: Scope, state: State) -> Value:
        """Return the value of an expression; its effects are applied to the state."""
        if node is None:
            return UNKNOWN
        if self.walk.spend(1) or self.walk.sink():
            self.walk.rise()
            return UNKNOWN
        found = self._handlers.get(node.kind, self._any)(node, scope, state)
        self.walk.rise()
        return found

    @cached_property
    def _handlers(self) -> dict[str, Handler]:
        return {
            **dict.fromkeys(_INNER, self._inner),
            **dict.fromkeys(_PASSIVE, lambda node, scope, state: UNKNOWN),
            **dict.fromkeys(_CLASSES, self._class),
            **dict.fromkeys(("identifier", "qualified_identifier", "type_identifier"), self._name),
            **dict.fromkeys(("initializer_list", "compound_literal_expression"), self._made),
            **dict.fromkeys(("compound_statement", "declaration", "init_statement"), self._statement),
            "true": lambda node, scope, state: Number(1),
            "false": lambda node, scope, state: Number(0),
            "number_literal": lambda node, scope, state: _number(node.text),
            "call_expression": self.calls.call,
            "field_expression": self._field,
            "subscript_expression": self._item,
            "assignment_expression": self.stores.assigned,
            "update_expression": self.stores.updated,
            "conditional_expression": self._either,
            "binary_expression": self._binary,
            "unary_expression": self._unary,
            "pointer_expression": self._pointer,
            "lambda_expression": self._lambda,
            "comma_expression": self._last,
            "condition_clause": self._last,
            "ERROR": self._garbled,
        }

    def _any(self, node: CppNode, scope: Scope, state: State) -> Value:
        """Return the value of another kind of expression; its parts may be used anywhere."""
        self.keep([self.value(child, scope, state) for child in node.children], "it is not followed", node, state)
        return UNKNOWN

    def _inner(self, node: CppNode, scope: Scope, state: State) -> Value:
        inner = node.field("value") or (node.children[-1] if node.children else None)
        found, of = self.value(inner, scope, state), node.field("type")
        is_same = not isinstance(found, Bits) or of is None or keeps_bits(of.text)
        return found if is_same else UNKNOWN

    def _last(self, node: CppNode, scope: Scope, state: State) -> Value:
        values = [self.value(child, scope, state) for child in node.children]
        return values[-1] if values else UNKNOWN

    def _statement(self, node: CppNode, scope: Scope, state: State) -> Value:
        """Follow a statement in an expression, ``({ ...; })``, or a declaration in a condition."""
        state.become(self.walk.statement(node, scope, state) or state)
        return UNKNOWN

    # -- names ---------------------------------------------------------------------------------------------------------

    def _name(self, node: CppNode, scope: Scope, state: State) -> Value:
        name = node.text
        number = scope.find(name)
        if number is not None:
            return state.values.get(number, UNKNOWN)
        constant = self.walk.parts.constants.get(name.rpartition("::")[2])
        if constant is not None:
            return Number(constant)
        if name in self.walk.parts.macros:
            self.expand(name, node, scope, state)
        elif node.kind == "identifier":
            self.walk.checks.name("", node, name)
        elif name.startswith("DataType::"):
            self.walk.checks.name("DataType", node, name.removeprefix("DataType::"))
        return UNKNOWN

    def expand(self, name: str, node: CppNode, scope: Scope, state: State) -> None:
        """Expand a macro of the file, which may do anything to the variables that it names."""
        body = self.walk.parts.macros[name].body
        self.touch(_WORD.findall(body), f"the macro `{name}` names it", node, scope, state)
        if SUBMITS.search(body):
            self.walk.lose(f"the macro `{name}` is not followed")

    def touch(self, names: Iterable[str], reason: str, node: CppNode, scope: Scope, state: State) -> None:
        """Record that variables of these names are used in a way that is not followed, now or at any later time."""
        for name in dict.fromkeys(names):
            number = scope.find(name)
            value = state.values.get(number, UNKNOWN) if number is not None else UNKNOWN
            self.keep([value], reason, node, state)
            if number is not None:
                self.walk.hide(number)
            if number is not None and isinstance(value, Object | Several | Number | Mixed | Bits):
                state.values[number] = UNKNOWN

    def keep(self, values: Iterable[Value], reason: str, node: CppNode, state: State) -> None:
        """Record that values are kept where they are not followed, and may be used at any later time."""
        found = list(values)
        self.give(found, reason, node, state)
        for number in {number for value in found for number in objects_of(value)}:
            state.leak(number, reason, node.span)

    def give(self, values: Iterable[Value], reason: str, node: CppNode, state: State) -> None:
        """Record that values are used where they are not followed."""
        for value in values:
            self.walk.checks.go_on(objects_of(value))
            for number in objects_of(value):
                state.lose(number, reason, node.span)
            if isinstance(value, Outside):
                self.walk.lose(f"the arguments go where they are not followed: {reason}")
            elif isinstance(value, Tensors | Pointer):
                self.use(value.arguments, "escapes", node, state)

    def use(
        self, arguments: frozenset[int], how: Literal["read", "written", "escapes"], node: CppNode, state: State
    ) -> None:
        """Record the use of tensors."""
        for argument in sorted(arguments):
            if argument >= 0:
                self.walk.use(Use(argument, how if len(arguments) == 1 else "escapes", node.span), state)

    def _lambda(self, node: CppNode, scope: Scope, state: State) -> Value:
        """Follow a lambda: its body may affect what it captures whenever it is called."""
        self._hide(node, "a lambda may use it", scope, state)
        if SUBMITS.search(node.text):
            self.walk.lose("a lambda that submits tasks is not followed")
        return UNKNOWN

    def _class(self, node: CppNode, scope: Scope, state: State) -> Value:
        self._hide(node, "a class may use it", scope, state)
        if SUBMITS.search(node.text):
            self.walk.lose("a class that submits tasks is not followed")
        return UNKNOWN

    def _garbled(self, node: CppNode, scope: Scope, state: State) -> Value:
        """Follow a node that does not parse; a lone word, or a string beside one, belongs to a macro among strings (``"%"
        PRIu64``).
        """
        self._hide(node, "the code that uses it does not parse", scope, state)
        if not _WORD.fullmatch(node.text) and any(token.kind != "string_literal" for token in node.tokens):
            self.walk.lose("it does not parse")
        return UNKNOWN

    def _hide(self, node: CppNode, reason: str, scope: Scope, state: State) -> None:
        names = (item.text for item in node.walk() if item.kind == "identifier")
        self.touch(names, reason, node, scope, state)

    # -- operators -----------------------------------------------------------------------------------------------------

    def _either(self, node: CppNode, scope: Scope, state: State) -> Value:
        holds = truth(self.value(node.field("condition"), scope, state))
        fields = ("consequence", "alternative")
        if holds is not None:
            self.walk.skip(node.field(fields[holds]))
            return self.value(node.field(fields[not holds]), scope, state)
        self.walk.branches += 1
        ways = [state.copy(), state.copy()]
        values = [self.value(node.field(name), scope, way) for name, way in zip(fields, ways, strict=True)]
        self.walk.branches -= 1
        state.become(self.walk.joined(ways) or state)
        return merged(values)

    def _binary(self, node: CppNode, scope: Scope, state: State) -> Value:
        operator = operator_of(node)
        left = self.value(node.field("left"), scope, state)
        if operator in ("&&", "||", "and", "or"):
            return self._shortened(operator in ("&&", "and"), truth(left), node.field("right"), scope, state)
        right = self.value(node.field("right"), scope, state)
        if isinstance(left, Number) and isinstance(right, Number):
            return computed(operator, left.value, right.value) if _is_certain(node, left, right) else UNKNOWN
        if operator == ">>":
            self.changed([node.field("right")], scope, state)
        return united(item for item in (left, right) if isinstance(item, Pointer)) if operator in "+-" else UNKNOWN

    def _shortened(self, both: bool, left: bool | None, node: CppNode | None, scope: Scope, state: State) -> Value:
        """Follow ``left && right`` and ``left || right``: the right side is skipped if the left one decides."""
        if left is (not both):
            self.walk.skip(node)
            return Number(int(left))
        if left is both:
            holds = truth(self.value(node, scope, state))
            return Number(int(holds)) if holds is not None else UNKNOWN
        self.walk.branches += 1
        way = state.copy()
        right = truth(self.value(node, scope, way))
        self.walk.branches -= 1
        state.become(self.walk.joined([state, way]) or state)
        return Number(int(right)) if right is (not both) else UNKNOWN

    def _unary(self, node: CppNode, scope: Scope, state: State) -> Value:
        inner, operator = self.value(node.field("argument"), scope, state), operator_of(node)
        if not isinstance(inner, Number) or operator not in ("-", "!", "not"):
            return UNKNOWN
        return Number(-inner.value) if operator == "-" else Number(int(not inner.value))

    def _pointer(self, node: CppNode, scope: Scope, state: State) -> Value:
        """Follow ``*pointer`` and ``&variable``."""
        argument = node.field("argument")
        inner = self.value(argument, scope, state)
        is_address = node.text.startswith("&")
        if isinstance(inner, Object):
            return Object(inner.number, is_address)
        if isinstance(inner, Pointer) and not is_address:
            self.use(inner.arguments, "read", node, state)
            return UNKNOWN
        if is_address and argument is not None and argument.kind == "identifier" and not isinstance(inner, Several):
            self.expose(argument, scope, state)
        if is_address and isinstance(inner, Number | Mixed | Table):
            return UNKNOWN
        return inner

    def expose(self, node: CppNode, scope: Scope, state: State) -> None:
        """Record that a number in a variable may be changed from elsewhere from now on."""
        number = scope.find(node.text)
        if number is not None:
            self.walk.hide(number)
            self.changed([node], scope, state)

    def changed(self, nodes: Sequence[CppNode | None], scope: Scope, state: State) -> None:
        """Record that numbers and kernels in variables may have changed."""
        for node in nodes:
            number = scope.find(node.text) if node is not None and node.kind == "identifier" else None
            if number is not None and isinstance(state.values.get(number), Number | Mixed | Bits):
                state.values[number] = UNKNOWN

    # -- members -------------------------------------------------------------------------------------------------------

    def _field(self, node: CppNode, scope: Scope, state: State) -> Value:
        owner, name = self.value(node.field("argument"), scope, state), node.field("field")
        if isinstance(owner, Outside) and name is not None and "tensor" in name.text:
            self.walk.lose("a tensor is taken in a way that is not followed")
        if isinstance(owner, Tensors | Pointer) and name is not None and MEMORY.match(name.text.partition("<")[0]):
            return Pointer(owner.arguments)
        return UNKNOWN

    def _item(self, node: CppNode, scope: Scope, state: State) -> Value:
        owner = self.value(node.field("argument"), scope, state)
        indices = [self._last(child, scope, state) for child in node.children[1:]]
        if isinstance(owner, Pointer):
            self.use(owner.arguments, "read", node, state)
        if isinstance(owner, Table):
            return item_of(owner, indices[0] if len(indices) == 1 else UNKNOWN)
        self.keep([item for item in [owner] if objects_of(item)], "it is one of several", node, state)
        return owner if isinstance(owner, Tensors) else UNKNOWN

    def _made(self, node: CppNode, scope: Scope, state: State) -> Value:
        """Return one of the tensors in ``{a, b}`` or ``ChipTensor{a}``."""
        listed = node.field("value") if node.kind == "compound_literal_expression" else node
        values = [self.value(child, scope, state) for child in (listed.children if listed is not None else ())]
        if listed is not node and not is_tensor(type_of(node)):
            self.keep(values, "it makes another object", node, state)
            return UNKNOWN
        self.keep([item for item in values if objects_of(item)], "a list takes it", node, state)
        return table_of(values) if _are_numbers(values) else united(values)


def _is_certain(node: CppNode, left: Number, right: Number) -> bool:
    """Whether a comparison of numbers is certain; a negative one is not if the other side may be unsigned."""
    sides = [node.field("right") if left.value < 0 else None, node.field("left") if right.value < 0 else None]
    return all(side is None or re.fullmatch(r"-?\d+", side.text) for side in sides)


def _are_numbers(values: Sequence[Value]) -> bool:
    """Whether these are numbers, at least one of them known."""
    return any(isinstance(item, Number) for item in values) and all(
        isinstance(item, Number | Unknown) for item in values
    )


def _number(text: str) -> Value:
    found = number_of(text)
    return Number(found) if found is not None else UNKNOWN
