"""Branches and loops of an orchestration: each way through branches, and loops until nothing changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opschema_cli.source.cpp import CppNode
from opschema_cli.source.preprocessor import is_dead
from opschema_rules.pypto.cpp_declarations import declared_name
from opschema_rules.pypto.cpp_state import Scope, State, with_open_scalars
from opschema_rules.pypto.cpp_values import UNKNOWN, Number, Tensors

if TYPE_CHECKING:
    from opschema_rules.pypto.cpp_walk import Walk

MAX_ROUNDS = 4
"""How often the body of a loop is followed until it changes nothing more."""


@dataclass
class Turn:
    """A turn of a loop, or a ``switch``: the states in which it is left, or goes to the next turn."""

    loop: bool
    broken: list[State] = field(default_factory=list)
    continued: list[State] = field(default_factory=list)


def either(walk: Walk, node: CppNode, scope: Scope, state: State) -> State | None:
    """``if``: both ways; a chain of ``else if`` is one row of ways."""
    walk.branches += 1
    ways: list[State | None] = []
    scopes, current, left = Scope(scope), node, state
    while True:
        walk.expressions.value(current.field("condition"), scopes, left)
        ways.append(_way(walk, current.field("consequence"), scopes, left.copy()))
        other = current.field("alternative")
        inner = other.children[0] if other is not None and other.children else None
        if inner is None or inner.kind != "if_statement" or walk.spend(len(ways)):
            ways.append(_way(walk, inner, scopes, left.copy()))
            break
        current, scopes = inner, Scope(scopes) if scopes.names else scopes
    walk.branches -= 1
    return walk.joined(ways, state)


def _way(walk: Walk, node: CppNode | None, scope: Scope, state: State) -> State | None:
    return state if node is None else walk.statement(node, Scope(scope), state)


def preprocessed(walk: Walk, node: CppNode, scope: Scope, state: State) -> State | None:
    """``#if`` and its other branches: each is one way, in the scope around it."""
    walk.branches += 1
    ways: list[State | None] = []
    current: CppNode | None = node
    while current is not None:
        other = current.field("alternative")
        skipped = {current.field("condition"), current.field("name"), other}
        body = [child for child in current.children if child not in skipped]
        if not body or not is_dead(current.tree.conditions(body[0])):
            way: State | None = state.copy()
            for child in body:
                way = walk.statement(child, scope, way) if way is not None else None
            ways.append(way)
        if other is None and current.kind != "preproc_else":
            ways.append(state.copy())
        current = other
    walk.branches -= 1
    return walk.joined(ways)


def switch(walk: Walk, node: CppNode, around: Scope, state: State) -> State | None:
    """``switch``: each case is one way, and goes on in the next where nothing ends it."""
    scope, turn, body = Scope(around), Turn(loop=False), node.field("body")
    walk.expressions.value(node.field("condition"), scope, state)
    walk.turns.append(turn)
    walk.branches += 1
    way: State | None = None
    default = False
    for child in body.children if body is not None else ():
        value = child.field("value") if child.kind == "case_statement" else None
        default = default or (child.kind == "case_statement" and value is None)
        items = [child]
        if child.kind == "case_statement":
            way = walk.joined([state.copy(), way])
            items = [item for item in child.children if item != value]
        for item in items:
            way = walk.statement(item, scope, way) if way is not None else None
    walk.branches -= 1
    walk.turns.pop()
    return walk.joined([way, *turn.broken, None if default else state], state)


def attempt(walk: Walk, node: CppNode, scope: Scope, state: State) -> State | None:
    """``try``: what is thrown may be so anywhere in it, so that a handler knows nothing of what it fills."""
    body, *handlers = [item for item in node.children if item.kind in ("compound_statement", "catch_clause")] or [node]
    end = walk.block(body, scope, state.copy())
    walk.branches += 1
    ways = [end]
    for handler in handlers:
        before = state.copy()
        if end is not None:
            before.widen(end, walk.taken, node.span)
        ways.append(walk.block(handler.field("body"), scope, before))
    walk.branches -= 1
    return walk.joined(ways, state)


def loop(walk: Walk, node: CppNode, around: Scope, state: State) -> State | None:
    """A loop: its body none, one or several times."""
    scope, outer = Scope(around), state
    start = node.field("initializer")
    if start is not None:
        state = walk.statement(start, scope, state) or state
    elif node.kind == "for_range_loop":
        _over_range(walk, node, scope, state)
    once = node.kind == "do_statement" and _text(node.field("condition")) in ("(0)", "(false)")
    walk.loops += not once
    _forget_counters(walk, node.field("update"), scope, state)
    for round_ in range(MAX_ROUNDS):
        mark = walk.mark()
        end, turn = _turn(walk, node, scope, state.copy())
        following = walk.joined([state, end], state) or state
        if once or following == state:
            break
        if round_ >= MAX_ROUNDS - 2:
            following.widen(state, walk.taken, node.span)
        state = following
        if round_ == MAX_ROUNDS - 1:
            walk.lose("a loop changes on and on")
        else:
            walk.undo(mark)
    walk.loops -= not once
    behind = end if node.kind == "do_statement" else state
    return walk.joined(turn.broken if turn.broken and _is_endless(node) else [behind, *turn.broken], outer)


def _is_endless(node: CppNode) -> bool:
    """Whether a loop ends by a ``break`` alone: ``for (;;)``, ``while (true)``."""
    condition = node.field("condition")
    return _text(condition) in ("(true)", "(1)") or (node.kind == "for_statement" and condition is None)


def _text(node: CppNode | None) -> str:
    return node.text if node is not None else ""


def _turn(walk: Walk, node: CppNode, scope: Scope, state: State) -> tuple[State | None, Turn]:
    """One turn of a loop: the state behind it, and how it is left."""
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
    """Say at once that what counts the turns of a loop is not known in it."""
    for item in update.walk() if update is not None else ():
        number = scope.find(item.text) if item.kind == "identifier" else None
        if number is not None and isinstance(state.values.get(number), Number):
            state.values[number] = UNKNOWN


def _over_range(walk: Walk, node: CppNode, scope: Scope, state: State) -> None:
    declarator = node.field("declarator")
    over = walk.expressions.value(node.field("right"), scope, state)
    name = declared_name(declarator) if declarator is not None else ""
    if isinstance(over, Tensors) and name:
        walk.bind(scope, state, name, over)
        return
    walk.expressions.give([over], "a loop goes over it", node, state)
    for item in declarator.walk() if declarator is not None else ():
        if item.kind == "identifier":
            walk.bind(scope, state, item.text, UNKNOWN)
