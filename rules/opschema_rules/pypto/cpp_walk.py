"""Follows the statements of an orchestration, each way through its branches, and its loops until nothing changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import msgspec

from opschema_cli.source.cpp import CppNode
from opschema_cli.source.preprocessor import is_dead
from opschema_cli.source.text import Span
from opschema_rules.pypto.cpp_expressions import Expressions
from opschema_rules.pypto.cpp_values import (
    OTHER,
    UNKNOWN,
    Created,
    Mixed,
    Object,
    Outside,
    Scope,
    State,
    Tensors,
    Value,
    grown,
    joined,
    merged,
    with_open_scalars,
)
from opschema_rules.pypto.facts import KernelId, Submit, Use

MAX_CALLS = 8
"""Deepest nesting of calls that are followed into functions of the file."""

MAX_STATEMENTS = 50_000
"""Most statements that are followed from one entry."""

MAX_ROUNDS = 3
"""How often the body of a loop is followed."""

_TENSOR = re.compile(r"\b(?:Chip)?Tensor\b|\bContinuousTensor\b")
_CREATED = re.compile(r"\bTensorCreateInfo\b")
_MIXED = re.compile(r"\bMixedKernels\b")
_PLAIN = re.compile(
    r"\b(?:u?int\w*|size_t|bool|float|double|char|long|short|unsigned|DataType|PTO2TaskId|TaskId|\w*Config)\b"
)
_CORES = ("aic", "aiv", "aiv")


class Walk:
    """One entry, followed from its first statement."""

    def __init__(self, functions: Mapping[str, CppNode], constants: Mapping[str, int]) -> None:
        self.functions = functions
        self.constants = constants
        self.submits: list[Submit] = []
        self.uses: list[Use] = []
        self.taken: dict[int, Span] = {}
        self.unresolved = ""
        self.arguments_lost = False
        self.expressions = Expressions(self)
        self._numbers = self._order = self._left = self._branches = self._loops = 0
        self._open: list[str] = []
        self._returned: list[list[Value]] = []
        self._ended: list[list[State]] = []
        self._turned: list[list[State]] = []
        self._left = MAX_STATEMENTS

    # -- what expressions report ---------------------------------------------------------------------------------------

    def constant(self, name: str) -> int | None:
        """The value of a constant of the file."""
        return self.constants.get(name.rpartition("::")[2])

    def has_function(self, name: str) -> bool:
        """Whether the file defines a function of that name."""
        return name in self.functions

    def lose(self, reason: str) -> None:
        """Say that more may be submitted than is known."""
        self.unresolved = self.unresolved or reason

    def lose_arguments(self) -> None:
        """Say that tensors are taken by a number that is not known."""
        self.arguments_lost = True

    def submit(self, found: Submit) -> None:
        """Note a submit."""
        self._order += 1
        self.submits.append(
            msgspec.structs.replace(found, order=self._order, conditional=self._branches > 0, looped=self._loops > 0)
        )

    def use(self, found: Use) -> None:
        """Note what happens to a tensor outside of payloads."""
        self._order += 1
        self.uses.append(msgspec.structs.replace(found, order=self._order))

    # -- functions -----------------------------------------------------------------------------------------------------

    def run(self, function: CppNode) -> None:
        """Follow an entry, whose first parameter that is none of the runtime holds the arguments."""
        scope, state = Scope(), State()
        for parameter in _parameters(function):
            name = _declared_name(parameter)
            if name:
                self._bind(scope, state, name, Outside() if "Args" in parameter.text else UNKNOWN)
        self._returned.append([])
        self._ended.append([])
        self._block(function.field("body"), scope, state)
        self._returned.pop()
        self._ended.pop()

    def enter(self, name: str, call: CppNode, values: Sequence[Value], state: State) -> Value:
        """Follow a call into a function of the file; what it returns."""
        function = self.functions[name]
        parameters = _parameters(function)
        if len(self._open) >= MAX_CALLS or name in self._open or len(parameters) < len(values):
            self._give_up(name, call, values, state)
            return UNKNOWN
        scope = Scope()
        for parameter, value in zip(parameters, values, strict=False):
            declared = _declared_name(parameter)
            if isinstance(value, Object) and "&" not in parameter.text and "*" not in parameter.text:
                value = self._copied(value, state)
            if declared:
                self._bind(scope, state, declared, value)
        self._open.append(name)
        self._returned.append([])
        self._ended.append([])
        end = joined([self._block(function.field("body"), scope, state.copy()), *self._ended.pop()])
        if end is not None:
            state.values, state.held = end.values, end.held
        self._open.pop()
        found = self._returned.pop()
        if found:
            return merged(found)
        return OTHER if _TENSOR.search(_type_of(function)) else UNKNOWN

    def _give_up(self, name: str, call: CppNode, values: Sequence[Value], state: State) -> None:
        self.lose(f"`{name}()` is not followed")
        for value in values:
            if isinstance(value, Object):
                state.lose(value.number, f"`{name}()` is not followed", call.span)

    def _copied(self, value: Object, state: State) -> Object:
        self._numbers += 1
        state.held[self._numbers] = state.payloads(value.number)
        return Object(self._numbers)

    def _bind(self, scope: Scope, state: State, name: str, value: Value) -> None:
        self._numbers += 1
        scope.names[name] = self._numbers
        state.values[self._numbers] = value

    # -- statements ----------------------------------------------------------------------------------------------------

    def _block(self, node: CppNode | None, around: Scope, state: State | None) -> State | None:
        scope = Scope(around)
        for child in node.children if node is not None else ():
            if state is None:
                return None
            state = self._statement(child, scope, state)
        return state

    def _statement(self, node: CppNode, scope: Scope, state: State) -> State | None:
        self._left -= 1
        if self._left < 0:
            self.lose("it is too long to be followed")
            return None
        handler = self._handlers.get(node.kind)
        if handler is not None:
            return handler(node, scope, state)
        if node.kind == "declaration":
            self._declaration(node, scope, state)
        elif node.kind == "ERROR":
            self.lose("it does not parse")
        else:
            self.expressions.value(node, scope, state)
        return state

    @cached_property
    def _handlers(self) -> dict[str, Callable[[CppNode, Scope, State], State | None]]:
        blocks = ("compound_statement", "linkage_specification", "labeled_statement", "declaration_list")
        loops = ("for_statement", "while_statement", "do_statement", "for_range_loop")
        ends = ("return_statement", "break_statement", "continue_statement", "goto_statement", "throw_statement")
        return {
            **dict.fromkeys(blocks, self._block),
            **dict.fromkeys(loops, self._loop),
            **dict.fromkeys(ends, self._end),
            **dict.fromkeys(("preproc_if", "preproc_ifdef"), self._preprocessed),
            "function_definition": self._scoped,
            "if_statement": self._if,
            "switch_statement": self._switch,
        }

    def _scoped(self, node: CppNode, scope: Scope, state: State) -> State | None:
        """A macro before a block, ``PTO2_SCOPE() {``, which reads like a function."""
        return self._block(node.field("body"), scope, state)

    def _end(self, node: CppNode, scope: Scope, state: State) -> None:
        """What leaves a function or a turn of a loop."""
        if node.kind == "return_statement":
            if node.children:
                self._returned[-1].append(self.expressions.value(node.children[0], scope, state))
            self._ended[-1].append(state)
        elif self._turned:
            self._turned[-1].append(state)

    def _declaration(self, node: CppNode, scope: Scope, state: State) -> None:
        of = _type_of(node)
        for declarator in node.fields("declarator"):
            name = _declared_name(declarator)
            if not name:
                continue
            value = self._initial(declarator, of, scope, state)
            self._bind(scope, state, name, value)

    def _initial(self, declarator: CppNode, of: str, scope: Scope, state: State) -> Value:
        """The value of a variable that is declared."""
        given = declarator.field("value") if declarator.kind == "init_declarator" else None
        array = declarator.kind == "array_declarator" or "array_declarator" in (
            item.kind for item in declarator.children
        )
        if _MIXED.search(of):
            return Mixed(self._mixed(given, scope, state))
        value = self.expressions.value(given, scope, state) if given is not None else UNKNOWN
        if _CREATED.search(of):
            return Created()
        if isinstance(value, Object) and "&" not in declarator.text.partition("=")[0]:
            return self._copied(value, state)
        if not isinstance(value, type(UNKNOWN)):
            return value
        if _TENSOR.search(of):
            return self._tensor(given, scope, state)
        if _PLAIN.search(of) or "*" in declarator.text.partition("=")[0]:
            return UNKNOWN
        if array:
            return self._array(declarator, state)
        if given is None or given.kind in ("argument_list", "initializer_list"):
            self._numbers += 1
            return Object(self._numbers)
        return UNKNOWN

    def _array(self, declarator: CppNode, state: State) -> Value:
        self._numbers += 1
        state.lose(self._numbers, "it is one of several", declarator.span)
        return Object(self._numbers)

    def _tensor(self, given: CppNode | None, scope: Scope, state: State) -> Value:
        """A tensor that is made of others, ``Tensor t(other)``, or of none."""
        if given is None or given.kind not in ("argument_list", "initializer_list"):
            return OTHER
        parts = [self.expressions.value(item, scope, state) for item in given.children]
        found = [item.arguments for item in parts if isinstance(item, Tensors)]
        return Tensors(frozenset().union(*found)) if found else OTHER

    def _mixed(self, given: CppNode | None, scope: Scope, state: State) -> tuple[KernelId, ...]:
        if given is None:
            return ()
        if given.kind != "initializer_list":
            value = self.expressions.value(given, scope, state)
            return value.kernels if isinstance(value, Mixed) else (KernelId(None, given.text, given.span),)
        found: list[KernelId | None] = []
        for index, item in enumerate(given.children):
            named = item.kind == "initializer_pair"
            target = item.field("value") if named else item
            core = "aic" if "aic" in item.text.partition("=")[0] else "aiv"
            core = core if named else _CORES[min(index, 2)]
            found.append(self.expressions.kernel(target, core, scope, state) if target is not None else None)
        return tuple(item for item in found if item is not None)

    # -- branches ------------------------------------------------------------------------------------------------------

    def _if(self, node: CppNode, scope: Scope, state: State) -> State | None:
        inner = Scope(scope)
        self.expressions.value(node.field("condition"), inner, state)
        self._branches += 1
        ways = [self._way(node.field("consequence"), inner, state)]
        other = node.field("alternative")
        ways.append(self._way(other.children[0] if other is not None and other.children else None, inner, state))
        self._branches -= 1
        return joined(ways)

    def _way(self, node: CppNode | None, scope: Scope, state: State) -> State | None:
        copy = state.copy()
        return copy if node is None else self._statement(node, Scope(scope), copy)

    def _preprocessed(self, node: CppNode, scope: Scope, state: State) -> State | None:
        """``#if`` and its other branches: each is one way, in the scope around it."""
        self._branches += 1
        ways: list[State | None] = []
        current: CppNode | None = node
        while current is not None:
            other = current.field("alternative")
            skipped = {current.field("condition"), current.field("name"), other}
            body = [child for child in current.children if child not in skipped]
            dead = body and is_dead(current.tree.conditions(body[0]))
            if not dead:
                way: State | None = state.copy()
                for child in body:
                    way = self._statement(child, scope, way) if way is not None else None
                ways.append(way)
            if other is None and current.kind != "preproc_else":
                ways.append(state.copy())
            current = other
        self._branches -= 1
        return joined(ways)

    def _switch(self, node: CppNode, scope: Scope, state: State) -> State | None:
        self.expressions.value(node.field("condition"), scope, state)
        body = node.field("body")
        cases = [item for item in (body.children if body is not None else ()) if item.kind == "case_statement"]
        self._branches += 1
        ways: list[State | None] = []
        falling: State | None = None
        for case in cases:
            way = joined([state.copy(), falling])
            for child in case.children:
                if way is None or child.kind == "break_statement":
                    break
                way = self._statement(child, Scope(scope), way) if child != case.field("value") else way
            falling = None if any(child.kind == "break_statement" for child in case.children) else way
            ways.append(way if falling is None else None)
        self._branches -= 1
        default = any(case.field("value") is None for case in cases)
        return joined([*ways, falling, *([] if default else [state.copy()])])

    # -- loops ---------------------------------------------------------------------------------------------------------

    def _loop(self, node: CppNode, around: Scope, state: State) -> State | None:
        scope = Scope(around)
        start = node.field("initializer")
        if start is not None:
            self._statement(start, scope, state)
        elif node.kind == "for_range_loop":
            self._over_range(node, scope, state)
        self._loops += 1
        before = state
        for round_ in range(MAX_ROUNDS):
            marks = len(self.submits), len(self.uses), self._order
            after = self._turn(node, scope, before.copy())
            if after is None:
                break
            more = grown(before, after)
            with_open_scalars(before, after, more)
            if not [number for number in more if not after.payloads(number) <= before.payloads(number)]:
                before = joined([before, after]) or before
                break
            if round_ == MAX_ROUNDS - 1:
                break
            del self.submits[marks[0] :], self.uses[marks[1] :]
            self._order = marks[2]
            before = joined([before, after]) or before
            if round_ == MAX_ROUNDS - 2:
                for number in grown(state, before):
                    if any(payload.slots for payload in before.payloads(number)):
                        before.lose(number, "a loop adds to it", node.span)
        self._loops -= 1
        return before

    def _turn(self, node: CppNode, scope: Scope, state: State) -> State | None:
        self.expressions.value(node.field("condition"), scope, state)
        body = node.field("body")
        self._turned.append([])
        end = self._statement(body, Scope(scope), state) if body is not None else state
        return joined([end, *self._turned.pop()])

    def _over_range(self, node: CppNode, scope: Scope, state: State) -> None:
        declarator = node.field("declarator")
        over = self.expressions.value(node.field("right"), scope, state)
        name = _declared_name(declarator) if declarator is not None else ""
        if name:
            self._bind(scope, state, name, over if isinstance(over, Tensors) else UNKNOWN)


def _parameters(function: CppNode) -> list[CppNode]:
    declarator = function.field("declarator")
    while declarator is not None and declarator.kind != "function_declarator":
        declarator = declarator.field("declarator") or (declarator.children[-1] if declarator.children else None)
    found = declarator.field("parameters") if declarator is not None else None
    return [item for item in found.children if "parameter_declaration" in item.kind] if found is not None else []


def _declared_name(node: CppNode) -> str:
    """The name that a declarator declares; empty without one."""
    current: CppNode | None = node
    while current is not None and current.kind not in ("identifier", "field_identifier"):
        inner = current.field("declarator")
        if inner is None and current.kind == "reference_declarator":
            inner = current.children[0] if current.children else None
        current = inner
    return current.text if current is not None else ""


def _type_of(node: CppNode) -> str:
    found = node.field("type")
    return found.text if found is not None else ""
