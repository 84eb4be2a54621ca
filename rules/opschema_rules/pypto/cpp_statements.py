"""Follows the statements of an orchestration, each path through its branches, into the functions of its file.

Branches are in :mod:`opschema_rules.pypto.cpp_flow`, loops in ``cpp_loops``, expressions in ``cpp_expressions``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

from opschema_cli.source.cpp import CppNode
from opschema_rules.pypto import cpp_flow, cpp_loops
from opschema_rules.pypto.cpp_declarations import Declarations, declared_name, is_tensor, parameters_of, type_of
from opschema_rules.pypto.cpp_expressions import Expressions
from opschema_rules.pypto.cpp_numbers import is_zero, keeps_bits
from opschema_rules.pypto.cpp_state import EMPTY, Scope, State
from opschema_rules.pypto.cpp_values import OTHER, UNKNOWN, Bits, Object, Outside, Tensors, Value, merged
from opschema_rules.pypto.cpp_walk import Frame, Parts, Walk

MAX_CALLS = 8
"""Maximum depth of calls to follow into functions of the file."""

CALL_STEPS = 10
"""The cost of calling a function of the file, in addition to its statements."""

Handler: TypeAlias = Callable[[CppNode, Scope, State], State | None]


class Statements(Walk):
    """The walk through one entry."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.expressions = Expressions(self)
        self.declarations = Declarations(self)
        self._open: list[str] = []

    # -- functions -----------------------------------------------------------------------------------------------------

    def run(self, function: CppNode) -> None:
        """Follow an entry. Its first parameter that does not belong to the runtime holds the arguments."""
        scope, state = Scope(), State()
        for parameter in parameters_of(function):
            name = declared_name(parameter)
            if name:
                self.bind(scope, state, name, Outside() if "Args" in parameter.text else UNKNOWN)
                self.checks.declare(scope.names[name], type_of(parameter), self.loops)
        self._frames.append(Frame(self.number()))
        self.block(function.field("body"), scope, state)
        self.close()
        if self.jumps:
            self.notes.lose_payloads("`goto` is not followed", function.span)
            self.beyond.clear()
            self.needed.clear()
            self.certain.clear()

    def enter(
        self,
        name: str,
        call: CppNode,
        arguments: Sequence[CppNode],
        values: Sequence[Value],
        scope: Scope,
        state: State,
    ) -> Value:
        """Follow a call into a function of the file, and return its result."""
        function = self.parts.functions[name]
        parameters = parameters_of(function) if function is not None else []
        variadic = any("variadic" in item.kind for item in parameters)
        known = len(self._open) < MAX_CALLS and name not in self._open and not variadic
        if function is None or not known or len(parameters) < len(values) or self.spend(CALL_STEPS):
            self.lose(f"`{name}()` is not followed")
            self.expressions.give(values, f"`{name}()` is not followed", call, state)
            self.expressions.changed(arguments, scope, state)
            return UNKNOWN
        declarator = function.field("declarator")
        frame = Frame(self.number(), declarator is not None and declarator.kind != "function_declarator")
        state.held[frame.result] = EMPTY
        inner = self._passed(parameters, arguments, values, scope, state)
        before, turns, self.turns = state.copy(), self.turns, []
        self._open.append(name)
        self._frames.append(frame)
        end = self.block(function.field("body"), inner, state.copy())
        self._frames.pop()
        self._open.pop()
        self.turns = turns
        state.become(self.joined([end, *frame.ended], before) or before)
        if frame.returned:
            found = merged(frame.returned)
            return UNKNOWN if isinstance(found, Bits) and not keeps_bits(type_of(function)) else found
        return OTHER if is_tensor(type_of(function)) else UNKNOWN

    def _passed(
        self,
        parameters: Sequence[CppNode],
        arguments: Sequence[CppNode],
        values: Sequence[Value],
        scope: Scope,
        state: State,
    ) -> Scope:
        """Return the scope of a function with its parameters; a reference parameter is an alias of its variable."""
        inner = Scope()
        for index, parameter in enumerate(parameters):
            name, value = declared_name(parameter), values[index] if index < len(values) else UNKNOWN
            refers = "&" in parameter.text.partition("=")[0]
            argument = arguments[index] if index < len(values) else None
            number = scope.find(argument.text) if refers and argument is not None else None
            if index >= len(values):
                value = self.expressions.value(parameter.field("default_value"), Scope(), state)
            if not name:
                continue
            if number is not None:
                inner.names[name] = number
            else:
                self.limit(self.declare(inner, name), type_of(parameter))
                self.checks.declare(inner.names[name], type_of(parameter), self.loops)
                if argument is not None and not is_zero(argument.text):
                    self.checks.declare_real(inner.names[name], type_of(parameter), parameter)
                self.bind(inner, state, name, value, copies=not refers)
        return inner

    # -- statements ----------------------------------------------------------------------------------------------------

    def block(self, node: CppNode | None, around: Scope, state: State | None) -> State | None:
        """Follow the statements of a block. Return the state after it; None if its end is not reached."""
        scope = Scope(around)
        for child in node.children if node is not None else ():
            if state is None:
                return None
            state = self.statement(child, scope, state)
        if state is not None:
            state.forget(scope.own)
        return state

    def statement(self, node: CppNode, scope: Scope, state: State) -> State | None:
        """Follow a statement. Return the state after it; None if its end is not reached."""
        if self.spend(1) or self.sink():
            self.rise()
            return None
        handler = self._handlers.get(node.kind)
        if handler is not None:
            found = handler(node, scope, state)
        else:
            self.expressions.value(node, scope, state)
            found = state
        self.rise()
        return found

    @cached_property
    def _handlers(self) -> dict[str, Handler]:
        blocks = ("compound_statement", "linkage_specification", "declaration_list")
        loops = ("for_statement", "while_statement", "do_statement", "for_range_loop")
        ends = ("return_statement", "break_statement", "continue_statement", "throw_statement")
        return {
            **dict.fromkeys(blocks, self.block),
            **dict.fromkeys(("labeled_statement", "attributed_statement", "init_statement"), self._inner),
            **dict.fromkeys(loops, self._with(cpp_loops.loop)),
            **dict.fromkeys(ends, self._end),
            **dict.fromkeys(("preproc_if", "preproc_ifdef"), self._with(cpp_flow.preprocessed)),
            "declaration": self._declaration,
            "function_definition": self._macro_block,
            "goto_statement": self._jump,
            "if_statement": self._with(cpp_flow.either),
            "switch_statement": self._with(cpp_flow.switch),
            "try_statement": self._with(cpp_flow.attempt),
        }

    def _with(self, follow: Callable[[Walk, CppNode, Scope, State], State | None]) -> Handler:
        return lambda node, scope, state: follow(self, node, scope, state)

    def _declaration(self, node: CppNode, scope: Scope, state: State) -> State:
        self.declarations.declare(node, scope, state)
        return state

    def _inner(self, node: CppNode, scope: Scope, state: State | None) -> State | None:
        """Follow the statement after a label or an attribute."""
        for child in node.children:
            state = self.statement(child, scope, state) if state is not None else None
        return state

    def _macro_block(self, node: CppNode, scope: Scope, state: State) -> State | None:
        """Follow a macro before a block, which parses like a function: ``PTO2_SCOPE() {``, or one that may hide a loop."""
        declarator = node.field("declarator")
        name = declarator.text.partition("(")[0].strip() if declarator is not None else ""
        if "SCOPE" in name and name not in self.parts.macros:
            return self.block(node.field("body"), scope, state)
        return cpp_loops.loop(self, node, scope, state)

    def _jump(self, node: CppNode, scope: Scope, state: State) -> State:
        self.jumps = True
        self.lose("`goto` is not followed")
        return state

    def _end(self, node: CppNode, scope: Scope, state: State) -> None:
        """Follow a statement that leaves a function, a loop or an iteration."""
        frame = self.frame
        if node.kind == "return_statement":
            if node.children:
                frame.returned.append(self._result(node.children[0], scope, state, frame))
            frame.ended.append(state)
            return
        turns = [turn for turn in self.turns if turn.loop or node.kind == "break_statement"]
        if node.kind == "throw_statement" or not turns:
            frame.thrown = True
        elif node.kind == "break_statement":
            turns[-1].broken.append(state)
        else:
            turns[-1].continued.append(state)

    def _result(self, node: CppNode, scope: Scope, state: State, frame: Frame) -> Value:
        """Return the returned value; an object returned by value outlives the function."""
        value = self.expressions.value(node, scope, state)
        if isinstance(value, Tensors) or not isinstance(value, Object) or frame.refers or value.pointer:
            return value
        state.held[frame.result] = self.copied(value, state)
        return Object(frame.result)
