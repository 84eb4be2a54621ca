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
"""Most steps that are followed in one file; a step is an expression, a statement, or a few variables that are joined. The
largest orchestration of simpler takes 71,000.
"""

MAX_NESTING = 150
"""Deepest nesting of statements and expressions that is followed, through calls too."""


class Effort(msgspec.Struct):
    """The steps left for a file; those spent on loops whose turns cannot be counted, and where these begin."""

    left: int = MAX_STEPS
    wasted: int = 0
    endless: set[int] = msgspec.field(default_factory=set)


class Parts(msgspec.Struct, frozen=True):
    """Parts that the entries of a file may refer to: functions (None for those that are overloaded), numbers, and macros."""

    functions: Mapping[str, CppNode | None]
    constants: Mapping[str, int]
    macros: Mapping[str, Macro]
    effort: Effort = msgspec.field(default_factory=Effort)


class Frame(msgspec.Struct):
    """A function that is followed: what it returns, the states in which it does, and whether a way through it ends else.

    ``result`` is the number of the object that it makes.
    """

    result: int
    refers: bool = False
    returned: list[Value] = msgspec.field(default_factory=list)
    ended: list[State] = msgspec.field(default_factory=list)
    thrown: bool = False

    @property
    def exits(self) -> tuple[int, int]:
        """The numbers of returned values and of ended states so far."""
        return len(self.returned), len(self.ended)

    def cut(self, exits: tuple[int, int]) -> tuple[list[Value], list[State]]:
        """Take back the ways out that were found since."""
        kept = self.returned[exits[0] :], self.ended[exits[1] :]
        del self.returned[exits[0] :], self.ended[exits[1] :]
        return kept

    def paste(self, kept: tuple[list[Value], list[State]]) -> None:
        """Put back what was taken."""
        self.returned += kept[0]
        self.ended += kept[1]


class Turn(msgspec.Struct):
    """A turn of a loop, or a ``switch``: the states in which it is left, or goes to the next turn."""

    loop: bool
    broken: list[State] = msgspec.field(default_factory=list)
    continued: list[State] = msgspec.field(default_factory=list)


class Evaluation(Protocol):
    """The expressions of a walk; see :class:`opschema_rules.pypto.cpp_expressions.Expressions`."""

    def value(self, node: CppNode | None, scope: Scope, state: State) -> Value:
        """The value of an expression."""
        ...

    def expand(self, name: str, node: CppNode, scope: Scope, state: State) -> None:
        """Follow a macro."""
        ...

    def keep(self, values: Iterable[Value], reason: str, node: CppNode, state: State) -> None:
        """Note that values are kept where they cannot be followed."""
        ...

    def give(self, values: Iterable[Value], reason: str, node: CppNode, state: State) -> None:
        """Note that values are passed to code that is not followed."""
        ...

    def use(
        self, arguments: frozenset[int], how: Literal["read", "written", "escapes"], node: CppNode, state: State
    ) -> None:
        """Note a use of one of these tensors."""
        ...

    def changed(self, nodes: Sequence[CppNode | None], scope: Scope, state: State) -> None:
        """Forget variables that code which is not followed may change."""
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
        self.reached: set[int] = set()
        self.passed_on: dict[int, str] = {}
        self.graphs: dict[int, str] = {}
        self.submitted: set[int] = set()
        self.submitted_once: set[int] = set()
        self.ranges: dict[int, range] = {}
        self.converting: set[int] = set()
        self._skipped: set[int] = set()
        self.jumps = False
        self.branches = self.loops = self.unsure = 0
        self.turns: list[Turn] = []
        self._numbers = self._depth = 0
        self._frames: list[Frame] = []

    @abstractmethod
    def block(self, node: CppNode | None, around: Scope, state: State | None) -> State | None:
        """Follow the statements of a block; the state behind it, None if it is not reached."""

    @abstractmethod
    def statement(self, node: CppNode, scope: Scope, state: State) -> State | None:
        """Follow a statement; the state behind it, None if it is not reached."""

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
        """Follow a call into a function of the file; its result."""

    @property
    def frame(self) -> Frame:
        """The function that is followed."""
        return self._frames[-1]

    # -- what expressions report ---------------------------------------------------------------------------------------

    def spend(self, steps: int) -> bool:
        """Take some steps; whether none is left."""
        effort = self.parts.effort
        effort.left -= steps
        if effort.left < 0:
            self.lose("it is too long to be followed")
        return effort.left < 0

    def sink(self) -> bool:
        """Go one level deeper; whether that is too deep."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            self.lose("it nests too deeply to be followed")
        return self._depth > MAX_NESTING

    def rise(self) -> None:
        """Come back from a level."""
        self._depth -= 1

    def lose(self, reason: str) -> None:
        """Say that more may be submitted, or done to tensors, than is known."""
        self.notes.unresolved = self.notes.unresolved or reason

    def close(self) -> None:
        """Say what was passed on, filled but not submitted in the file: who gets it may submit it."""
        if self.jumps:
            self.checks.go_on(list(self.checks.late))
        self.checks.unsubmitted(self.submitted)
        names = [name for number, name in self.passed_on.items() if number not in self.submitted]
        if names:
            self.lose(f"`{names[0]}()` is not in this file, and may submit what it gets")

    def submit(self, found: Submit, state: State, *, turned: bool) -> None:
        """Note a submit; ``turned`` says that what it passes hangs on how often a loop turned."""
        found = msgspec.structs.replace(found, conditional=self.may_not_run, looped=self.loops > 0)
        self.notes.submit(found, state, turned=turned)

    def use(self, found: Use, state: State) -> None:
        """Note what happens to a tensor outside of payloads."""
        self.notes.use(msgspec.structs.replace(found, conditional=self.may_not_run), state)

    @property
    def may_not_run(self) -> bool:
        """Whether there may be a path on which the followed code does not run."""
        left = any(frame.ended or frame.thrown for frame in self._frames)
        return self.branches > 0 or left or any(turn.broken or turn.continued for turn in self.turns)

    def need(self, kind: Literal["tensor", "scalar"], index: int, at: Span) -> None:
        """Note an argument of the orchestration that is taken whenever it runs."""
        if not self.may_not_run and not self.loops and not self.unsure:
            self.needed.setdefault(at, Needed(kind, index, at))

    def take(self, found: Beyond | None, at: Span) -> None:
        """Note an output that is taken, and that is beyond the last one, or None; it is so whenever this place is reached."""
        beyond = found if found is not None and not self.unsure else None
        if beyond is None or self.beyond.get(at, beyond) is not None:
            self.beyond[at] = beyond

    def skip(self, node: CppNode | None) -> None:
        """Say of what never runs that it is not forgotten."""
        if node is None or node.span.start in self._skipped:
            return
        self._skipped.add(node.span.start)
        for item in node.walk():
            if item.kind == "call_expression":
                self.reached.add(item.span.start)

    def joined(self, states: Iterable[State | None], within: State | None = None) -> State | None:
        """The state behind several ways."""
        live = [state for state in states if state is not None]
        self.spend(1 + sum(len(state.values) for state in live) // 32)
        return joined(live, within)

    # -- variables -----------------------------------------------------------------------------------------------------

    def number(self) -> int:
        """A number for a new variable."""
        self._numbers += 1
        return self._numbers

    def declare(self, scope: Scope, name: str) -> int:
        """The number of a variable that is declared in a scope; the same for all branches of ``#if``."""
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
        """The payloads that a copy of an object may hold: what was added to the object is in the copy."""
        self.checks.go_on([value.number])
        return state.payloads(value.number)

    def limit(self, number: int, of: str) -> None:
        """Remember which numbers a variable of a type may have."""
        numbers = numbers_of(of)
        if numbers is not None:
            self.ranges[number] = numbers
        if not keeps_bits(of):
            self.converting.add(number)

    def hide(self, number: int) -> None:
        """Say that a variable may be changed at any time from now on in ways that are not followed."""
        self.ranges[number] = NOTHING

    def fitting(self, number: int, value: Value) -> Value:
        """The value of a variable after an assignment; unknown for a number or bits that its type may change."""
        if isinstance(value, Bits):
            return UNKNOWN if number in self.converting else value
        fits = not isinstance(value, Number) or number not in self.ranges or value.value in self.ranges[number]
        return value if fits else UNKNOWN
