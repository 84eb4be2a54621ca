"""State of a walk through an orchestration that its statements, expressions and calls share.

The walk itself is :class:`opschema_rules.pypto.cpp_statements.Statements`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from opschema_cli.source.cpp import CppNode
from opschema_cli.source.preprocessor import Macro
from opschema_cli.source.text import Span
from opschema_rules.pypto.cpp_checks import Checks
from opschema_rules.pypto.cpp_notes import Notes
from opschema_rules.pypto.cpp_numbers import NOTHING, keeps_bits, numbers_of
from opschema_rules.pypto.cpp_state import Scope, State, joined
from opschema_rules.pypto.cpp_values import UNKNOWN, Bits, Number, Object, Value
from opschema_rules.pypto.facts import Beyond, Needed, Payload, Submit, Use

MAX_STEPS = 300_000
"""Maximum number of steps to follow in one file; a step is an expression, a statement, or a few joined variables. The largest
orchestration of simpler takes 71,000.
"""

MAX_NESTING = 150
"""Maximum nesting of statements and expressions to follow, including calls."""


class Effort(msgspec.Struct):
    """The remaining steps for a file, the steps spent on loops whose iterations cannot be counted, and where these begin."""

    left: int = MAX_STEPS
    wasted: int = 0
    endless: set[int] = msgspec.field(default_factory=set)


class Parts(msgspec.Struct, frozen=True):
    """The parts of a file that its entries may refer to: functions (None for overloaded ones), numbers, and macros."""

    functions: Mapping[str, CppNode | None]
    constants: Mapping[str, int]
    macros: Mapping[str, Macro]
    effort: Effort = msgspec.field(default_factory=Effort)


class Frame(msgspec.Struct):
    """A function that is followed: its returned values, the states in which it returns, and whether a path ends in another way.

    ``result`` is the number of the object that it makes.
    """

    result: int
    refers: bool = False
    returned: list[Value] = msgspec.field(default_factory=list)
    ended: list[State] = msgspec.field(default_factory=list)
    thrown: bool = False

    @property
    def exits(self) -> tuple[int, int]:
        """The numbers of returned values and ended states so far."""
        return len(self.returned), len(self.ended)

    def cut(self, exits: tuple[int, int]) -> tuple[list[Value], list[State]]:
        """Remove and return the exits found since then."""
        kept = self.returned[exits[0] :], self.ended[exits[1] :]
        del self.returned[exits[0] :], self.ended[exits[1] :]
        return kept

    def paste(self, kept: tuple[list[Value], list[State]]) -> None:
        """Add removed exits again."""
        self.returned += kept[0]
        self.ended += kept[1]


class Turn(msgspec.Struct):
    """An iteration of a loop, or a ``switch``: the states in which it is left or continues with the next iteration."""

    loop: bool
    broken: list[State] = msgspec.field(default_factory=list)
    continued: list[State] = msgspec.field(default_factory=list)


class Evaluation(Protocol):
    """The expressions of a walk; see :class:`opschema_rules.pypto.cpp_expressions.Expressions`."""

    def value(self, node: CppNode | None, scope: Scope, state: State) -> Value:
        """Return the value of an expression."""
        ...

    def expand(self, name: str, node: CppNode, scope: Scope, state: State) -> None:
        """Follow a macro."""
        ...

    def keep(self, values: Iterable[Value], reason: str, node: CppNode, state: State) -> None:
        """Record that values are kept where they cannot be followed."""
        ...

    def give(self, values: Iterable[Value], reason: str, node: CppNode, state: State) -> None:
        """Record that values are passed to code that is not followed."""
        ...

    def use(
        self, arguments: frozenset[int], how: Literal["read", "written", "escapes"], node: CppNode, state: State
    ) -> None:
        """Record a use of one of these tensors."""
        ...

    def changed(self, nodes: Sequence[CppNode | None], scope: Scope, state: State) -> None:
        """Forget variables that unfollowed code may change."""
        ...


class Walk(ABC):
    """One entry, followed from its first statement."""

    expressions: Evaluation

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.notes = Notes()
        self.checks = Checks()
        self.taken: dict[int, Span] = {}
        self.beyond: dict[Span, Beyond | None] = {}
        self.needed: dict[Span, Needed] = {}
        self.certain: dict[int, Span] = {}
        self.reached: set[int] = set()
        self.passed_on: dict[int, str] = {}
        self.graphs: dict[int, str] = {}
        self.submitted: set[int] = set()
        self.submitted_once: set[int] = set()
        self.ranges: dict[int, range] = {}
        self.converting: set[int] = set()
        self._skipped: set[int] = set()
        self.jumps = False
        self.branches = self.loops = self.unsure = self.directives = 0
        self.turns: list[Turn] = []
        self._numbers = self._depth = 0
        self._frames: list[Frame] = []

    @abstractmethod
    def block(self, node: CppNode | None, around: Scope, state: State | None) -> State | None:
        """Follow the statements of a block. Return the state after it; None if its end is not reached."""

    @abstractmethod
    def statement(self, node: CppNode, scope: Scope, state: State) -> State | None:
        """Follow a statement. Return the state after it; None if its end is not reached."""

    @abstractmethod
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

    @property
    def frame(self) -> Frame:
        """The innermost function that is being followed."""
        return self._frames[-1]

    # -- what expressions report ---------------------------------------------------------------------------------------

    def spend(self, steps: int) -> bool:
        """Spend some steps. Return whether none is left."""
        effort = self.parts.effort
        effort.left -= steps
        if effort.left < 0:
            self.lose("it is too long to be followed")
        return effort.left < 0

    def sink(self) -> bool:
        """Go one level deeper. Return whether that is too deep."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            self.lose("it nests too deeply to be followed")
        return self._depth > MAX_NESTING

    def rise(self) -> None:
        """Go back one level."""
        self._depth -= 1

    def lose(self, reason: str) -> None:
        """Record that more may be submitted, or done to tensors, than is known."""
        self.notes.unresolved = self.notes.unresolved or reason

    def close(self) -> None:
        """Record payloads that were passed on, and filled but not submitted in the file: the receiver may submit them."""
        if self.jumps:
            self.checks.go_on(list(self.checks.late))
        self.checks.unsubmitted(self.submitted)
        names = [name for number, name in self.passed_on.items() if number not in self.submitted]
        if names:
            self.lose(f"`{names[0]}()` is not in this file, and may submit its arguments")

    def submit(self, found: Submit, state: State, *, turned: bool) -> None:
        """Record a submit; ``turned`` if its payload depends on the number of iterations of a loop."""
        found = msgspec.structs.replace(
            found, conditional=self.may_not_run, looped=self.loops > 0, absent=self.directives > 0
        )
        self.notes.submit(found, state, turned=turned)

    def use(self, found: Use, state: State) -> None:
        """Record a use of a tensor outside of payloads."""
        self.notes.use(msgspec.structs.replace(found, conditional=self.may_not_run), state)

    @property
    def may_not_run(self) -> bool:
        """Whether some path may skip the followed code."""
        left = any(frame.ended or frame.thrown for frame in self._frames)
        return self.branches > 0 or left or any(turn.broken or turn.continued for turn in self.turns)

    def need(self, kind: Literal["tensor", "scalar"], index: int, at: Span) -> None:
        """Record an argument of the orchestration that is taken in every run, or in every run that turns some loops."""
        if self.may_not_run or self.unsure:
            return
        if kind == "tensor":
            self.certain.setdefault(index, at)
        if not self.loops:
            self.needed.setdefault(at, Needed(kind, index, at))

    def take(self, found: Beyond | None, at: Span) -> None:
        """Record an output that is taken beyond the last one, or None; it is so whenever this place is reached."""
        beyond = found if found is not None and not self.unsure else None
        if beyond is None or self.beyond.get(at, beyond) is not None:
            self.beyond[at] = beyond

    def skip(self, node: CppNode | None) -> None:
        """Record code that never runs, so that it does not count as forgotten."""
        if node is None or node.span.start in self._skipped:
            return
        self._skipped.add(node.span.start)
        for item in node.walk():
            if item.kind == "call_expression":
                self.reached.add(item.span.start)

    def joined(self, states: Iterable[State | None], within: State | None = None) -> State | None:
        """Return the state after several paths."""
        live = [state for state in states if state is not None]
        self.spend(1 + sum(len(state.values) for state in live) // 32)
        return joined(live, within)

    # -- variables -----------------------------------------------------------------------------------------------------

    def number(self) -> int:
        """Return a number for a new variable."""
        self._numbers += 1
        return self._numbers

    def declare(self, scope: Scope, name: str) -> int:
        """Return the number of a variable declared in a scope; the same for all branches of ``#if``."""
        if name not in scope.names:
            scope.names[name] = self.number()
            scope.own.add(scope.names[name])
        return scope.names[name]

    def bind(self, scope: Scope, state: State, name: str, value: Value, *, copies: bool = True) -> None:
        """Declare a variable with a value; an object is copied."""
        number = self.declare(scope, name)
        if isinstance(value, Object) and copies and not value.pointer:
            state.held[number] = self.copied(value, state)
            value = Object(number)
        state.values[number] = self.fitting(number, value)

    def copied(self, value: Object, state: State) -> frozenset[Payload]:
        """Return the payloads that a copy of an object may hold, including everything added to the object."""
        self.checks.go_on([value.number])
        return state.payloads(value.number)

    def limit(self, number: int, of: str) -> None:
        """Record the numbers that a variable of a type may have."""
        numbers = numbers_of(of)
        if numbers is not None:
            self.ranges[number] = numbers
        if not keeps_bits(of):
            self.converting.add(number)

    def hide(self, number: int) -> None:
        """Record that a variable may be changed at any later time in unfollowed ways."""
        self.ranges[number] = NOTHING

    def fitting(self, number: int, value: Value) -> Value:
        """Return the value of a variable after an assignment; unknown for a number or bits that its type may change."""
        if isinstance(value, Bits):
            return UNKNOWN if number in self.converting else value
        fits = not isinstance(value, Number) or number not in self.ranges or value.value in self.ranges[number]
        return value if fits else UNKNOWN
