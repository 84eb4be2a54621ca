"""Loops of an orchestration: iteration by iteration if the iterations can be counted, otherwise until nothing changes."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.source.cpp import CppNode
from opschema_rules.pypto.cpp_declarations import declared_name
from opschema_rules.pypto.cpp_notes import Mark
from opschema_rules.pypto.cpp_numbers import truth
from opschema_rules.pypto.cpp_state import Scope, State, with_open_scalars
from opschema_rules.pypto.cpp_values import UNKNOWN, Number, Table, Tensors, Value
from opschema_rules.pypto.cpp_walk import Turn, Walk

MAX_ROUNDS = 4
"""Maximum number of times to follow the body of a loop until nothing changes."""

MAX_TURNS = 32
"""Maximum number of iterations to follow one by one."""

MAX_WASTED = 60_000
"""Maximum number of steps in a file to spend on iterations that are followed in vain."""


def loop(walk: Walk, node: CppNode, around: Scope, state: State) -> State | None:
    """Follow a loop: its body zero, one or several times, or each of its iterations."""
    scope, outer = Scope(around), state
    start = node.field("initializer")
    over: Value = UNKNOWN
    if start is not None:
        state = walk.statement(start, scope, state) or state
    elif node.kind == "for_range_loop":
        over = _over_range(walk, node, scope, state)
    holds = True if node.kind == "do_statement" else _holds_at_first(walk, node, scope, state)
    if holds is False:
        walk.expressions.value(node.field("condition"), scope, state)
        walk.skip(node.field("body"))
        return walk.joined([state], outer)
    mark, counted = walk.notes.mark(), _Counted(walk, node, scope, over)
    ways = _any_turns(walk, node, scope, state.copy(), runs=bool(holds))
    if _is_open(walk, mark, state, ways):
        ways = counted.follow(state, mark) or ways
    return walk.joined(ways, outer)


def _is_open(walk: Walk, mark: Mark, before: State, ways: Sequence[State | None]) -> bool:
    """Whether the loop leaves more open than before: what it submits, does to tensors, or leaves in payloads."""
    submits = walk.notes.submits[mark.submits :]
    lost = any(item.unresolved for submit in submits for item in submit.payloads)
    unknown = any(kernel.value is None for submit in submits for kernel in submit.kernels)
    blurred = any(_is_blurred(before, way) for way in ways if way is not None)
    return bool(walk.notes.unresolved and not mark.unresolved) or lost or unknown or blurred


def _is_blurred(before: State, after: State) -> bool:
    """Whether the contents of an object are no longer known."""
    lost = (number for number in before.held if any(item.unresolved for item in after.payloads(number)))
    return any(not any(item.unresolved for item in before.payloads(number)) for number in lost)


# -- turn by turn ------------------------------------------------------------------------------------------------------


class _Counted:
    """A loop whose iterations are followed one by one."""

    def __init__(self, walk: Walk, node: CppNode, scope: Scope, over: Value) -> None:
        self.walk, self.node, self.scope = walk, node, scope
        self.items = over.items if isinstance(over, Table) else None
        self.turn, self.exits, self.number = Turn(loop=True), walk.frame.exits, 0
        self.ends: list[State | None] = []

    def follow(self, state: State, mark: Mark) -> list[State | None]:
        """Follow all iterations instead of the records made since the mark. Return the states after them; none if that leaves as
        much open.
        """
        walk, effort = self.walk, self.walk.parts.effort
        can = self.node.kind in _COUNTED or self.items is not None
        if not can or self.node.span.start in effort.endless or effort.wasted > MAX_WASTED:
            return []
        kept, removed, left = walk.notes.cut(mark), walk.frame.cut(self.exits), effort.left
        walk.turns.append(self.turn)
        walk.loops += not _is_single(self.node)
        counted = self._turns(state.copy(), effort.left - effort.left // 4)
        walk.loops -= not _is_single(self.node)
        walk.turns.pop()
        if not counted and self.number > 1:
            effort.endless.add(self.node.span.start)
        if not counted or not self.is_better(mark, state):
            effort.wasted += left - effort.left
            walk.notes.cut(mark)
            walk.notes.paste(kept)
            walk.frame.cut(self.exits)
            walk.frame.paste(removed)
            return []
        walk.notes.join_turns(mark)
        for end in self.ends:
            if end is not None:
                walk.notes.carry_round(mark, end)
        return self.ends

    def is_better(self, mark: Mark, state: State) -> bool:
        """Whether following each iteration leaves nothing open."""
        return not _is_open(self.walk, mark, state, self.ends)

    def _turns(self, state: State, least: int) -> bool:
        """Follow iterations until one is the last. Return whether that happens before the limit is reached."""
        before: int | None = None
        for number in range(MAX_TURNS + 1):
            self.number = number
            goes_on = self._goes_on(number, state)
            if not goes_on:
                self.ends = [state, *self.turn.broken]
                return goes_on is not None
            distance = self._distance(state) if number < 2 else None
            if self.walk.parts.effort.left < least or _is_far(before, distance):
                return False
            before = distance
            following = self._follow_once(number, state)
            if following is None:
                self.ends = [*self.turn.broken]
                return True
            state = following
        return False

    def _goes_on(self, number: int, state: State) -> bool | None:
        """Whether there is an iteration of that number; None if that is not known."""
        if self.items is not None:
            return number < len(self.items)
        condition = self.node.field("condition")
        if self.node.kind == "do_statement" and number == 0:
            return True
        return truth(self.walk.expressions.value(condition, self.scope, state)) if condition is not None else True

    def _distance(self, state: State) -> int | None:
        """Return the distance between the two sides of the condition's comparison."""
        condition = self.node.field("condition")
        while condition is not None and condition.kind in ("condition_clause", "parenthesized_expression"):
            condition = condition.children[-1] if condition.children else None
        sides = [condition.field("left"), condition.field("right")] if condition is not None else []
        plain = [side for side in sides if side is not None and side.kind in ("identifier", "number_literal")]
        values = [self.walk.expressions.value(side, self.scope, state) for side in plain]
        known = [value.value for value in values if isinstance(value, Number)]
        return abs(known[1] - known[0]) if len(known) == 2 else None

    def _follow_once(self, number: int, state: State) -> State | None:
        scope, before, body = Scope(self.scope), state.copy(), self.node.field("body")
        if self.items is not None:
            item, name = self.items[number], declared_name(self.node.field("declarator") or self.node)
            self.walk.bind(self.scope, state, name, UNKNOWN if item is None else Number(item))
        end = self.walk.statement(body, scope, state) if body is not None else state
        end = self.walk.joined([end, *self.turn.continued], before)
        self.turn.continued.clear()
        if end is not None:
            self.walk.expressions.value(self.node.field("update"), self.scope, end)
        return end


_COUNTED = ("for_statement", "while_statement", "do_statement")


def _is_far(before: int | None, after: int | None) -> bool:
    """Whether a loop would take too many iterations, judging by the progress of the first."""
    return before is not None and after is not None and after > MAX_TURNS * max(before - after, 0)


# -- any number of turns -----------------------------------------------------------------------------------------------


def _any_turns(walk: Walk, node: CppNode, scope: Scope, state: State, *, runs: bool) -> list[State | None]:
    """Return the states after a loop whose body runs zero, one or several times; not zero times if it is known that it ``runs``."""
    once, before = _is_single(node), state.copy()
    walk.loops += not once
    _forget_counters(walk, node.field("update"), scope, state)
    for round_ in range(MAX_ROUNDS):
        mark = walk.notes.mark()
        end, turn = _turn(walk, node, scope, state.copy())
        following = walk.joined([state, end], state) or state
        if once or following == state:
            state.become(following)
            break
        if round_ >= MAX_ROUNDS - 2:
            following.widen(state, walk.taken, node.span)
        state = following
        if round_ == MAX_ROUNDS - 1:
            walk.lose("the analysis of a loop does not converge")
        else:
            walk.notes.undo(mark)
    walk.loops -= not once
    if end is not None and not once:
        walk.notes.carry_round(mark, end)
    behind = end if runs else state
    for way in (behind, *turn.broken):
        if way is not None and not once:
            way.turn_from(before)
    return [*turn.broken] if turn.broken and _is_endless(node) else [behind, *turn.broken]


def _holds_at_first(walk: Walk, node: CppNode, scope: Scope, state: State) -> bool | None:
    """Whether the condition of a loop holds before the first iteration; None if that is not known."""
    condition, mark = node.field("condition"), walk.notes.mark()
    holds = truth(walk.expressions.value(condition, scope, state.copy())) if condition is not None else None
    walk.notes.undo(mark)
    return holds


def _is_single(node: CppNode) -> bool:
    """Whether a loop runs exactly once: ``do { ... } while (0)``."""
    return node.kind == "do_statement" and _text(node.field("condition")) in ("(0)", "(false)")


def _is_endless(node: CppNode) -> bool:
    """Whether only a ``break`` ends a loop: ``for (;;)``, ``while (true)``."""
    condition = node.field("condition")
    return _text(condition) in ("(true)", "(1)") or (node.kind == "for_statement" and condition is None)


def _text(node: CppNode | None) -> str:
    return node.text if node is not None else ""


def _turn(walk: Walk, node: CppNode, scope: Scope, state: State) -> tuple[State | None, Turn]:
    """Follow one iteration of a loop. Return the state after it, and how it is left."""
    condition, update, body = node.field("condition"), node.field("update"), node.field("body")
    late = node.kind == "do_statement"
    turn = Turn(loop=True)
    walk.turns.append(turn)
    if not late:
        walk.expressions.value(condition, scope, state)
    before = state.copy()
    end = walk.statement(body, Scope(scope), state) if body is not None else state
    end = walk.joined([end, *turn.continued], before)
    if end is not None:
        walk.expressions.value(condition if late else update, scope, end)
        with_open_scalars(before, end)
    walk.turns.pop()
    return end, turn


def _forget_counters(walk: Walk, update: CppNode | None, scope: Scope, state: State) -> None:
    """Forget the counters of a loop before its body is followed."""
    for item in update.walk() if update is not None else ():
        number = scope.find(item.text) if item.kind == "identifier" else None
        if number is not None and isinstance(state.values.get(number), Number):
            state.values[number] = UNKNOWN


def _over_range(walk: Walk, node: CppNode, scope: Scope, state: State) -> Value:
    """Declare the variable of a range-based loop, and return the range."""
    declarator = node.field("declarator")
    over = walk.expressions.value(node.field("right"), scope, state)
    name = declared_name(declarator) if declarator is not None else ""
    if isinstance(over, Tensors) and name:
        walk.bind(scope, state, name, over)
        return over
    walk.expressions.give([over], "a loop goes over it", node, state)
    for item in declarator.walk() if declarator is not None else ():
        if item.kind == "identifier":
            walk.bind(scope, state, item.text, UNKNOWN)
    return over if name else UNKNOWN
