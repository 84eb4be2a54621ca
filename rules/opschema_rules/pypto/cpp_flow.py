"""Branches of an orchestration: each path that may run."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.source.cpp import CppNode
from opschema_cli.source.preprocessor import is_dead
from opschema_rules.pypto.cpp_numbers import truth
from opschema_rules.pypto.cpp_state import SEVERAL, Scope, State
from opschema_rules.pypto.cpp_walk import Turn, Walk


def either(walk: Walk, node: CppNode, scope: Scope, state: State) -> State | None:
    """Follow an ``if``: both paths, or the one that is known to run; a chain of ``else if`` is a single list of paths."""
    branches = walk.branches
    ways: list[State | None] = []
    scopes, current, left = Scope(scope), node, state
    while True:
        holds = truth(walk.expressions.value(current.field("condition"), scopes, left))
        walk.branches += holds is None
        first, other = current.field("consequence"), current.field("alternative")
        inner = other.children[0] if other is not None and other.children else None
        if holds is False:
            walk.skip(first)
        else:
            ways.append(_way(walk, first, scopes, left.copy()))
        if holds:
            walk.skip(inner)
            break
        if inner is None or inner.kind != "if_statement" or walk.spend(1 + len(ways)):
            ways.append(_way(walk, inner, scopes, left.copy()))
            break
        current, scopes = inner, Scope(scopes) if scopes.names else scopes
    walk.branches = branches
    return walk.joined(ways, state)


def _way(walk: Walk, node: CppNode | None, scope: Scope, state: State) -> State | None:
    return state if node is None else walk.statement(node, Scope(scope), state)


def preprocessed(walk: Walk, node: CppNode, scope: Scope, state: State) -> State | None:
    """Follow ``#if`` and its branches: each is one path, in the enclosing scope. An object that two of them fill is lost, as their
    conditions may depend on each other.
    """
    walk.branches += 1
    walk.directives += 1
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
    walk.directives -= 1
    found = walk.joined(ways)
    if found is not None:
        differing = _differing([way for way in ways if way is not None])
        for number in differing & state.compiled:
            found.lose(number, SEVERAL, node.span)
        found.compiled |= differing
    return found


def _differing(ways: Sequence[State]) -> set[int]:
    """Return the objects that hold something else after some of the branches of an ``#if``."""
    first, *others = ways
    pairs = ((number, held, way.held.get(number, held)) for way in others for number, held in first.held.items())
    return {number for number, held, other in pairs if other is not held and other != held}


def switch(walk: Walk, node: CppNode, around: Scope, state: State) -> State | None:
    """Follow a ``switch``: each case is one path, and falls through to the next if nothing ends it."""
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
    """Follow a ``try``: an exception may be thrown anywhere in it, so a handler knows nothing about the objects it fills."""
    body, *handlers = [item for item in node.children if item.kind in ("compound_statement", "catch_clause")] or [node]
    walk.unsure += 1
    end = walk.block(body, scope, state.copy())
    walk.branches += 1
    ways = [end]
    for handler in handlers:
        before = state.copy()
        if end is not None:
            before.widen(end, walk.taken, node.span)
        ways.append(walk.block(handler.field("body"), scope, before))
    walk.branches -= 1
    walk.unsure -= 1
    return walk.joined(ways, state)
