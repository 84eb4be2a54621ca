"""Branches on unknown conditions, executed one after the other and joined.

This is tried where following each path on its own takes too many of them. The branches may only bind variables of their
function; one that changes anything else, or leaves the function where the other does not, is decided after all, from the
beginning of the path.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

import msgspec

from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.merging import Merger
from opschema_cli.evaluation.execution.plain import Identical, is_scalar
from opschema_cli.evaluation.execution.signals import NotJoinedError, Thrown, forget_frames
from opschema_cli.evaluation.execution.values import Environment, Opaque, TensorValue
from opschema_cli.evaluation.values import ExternalName
from opschema_cli.source.python import Statement

T = TypeVar("T")


class Branch(msgspec.Struct):
    """How a branch ended: its completion and variables, or its exception."""

    completion: object
    variables: dict[str, object]
    thrown: Thrown | None = None


def may_join(machine: Machine, scope: Environment, item: Statement, value: Opaque) -> bool:
    """Whether to join the branches of an ``if`` with that condition."""
    if not machine.joining or machine.guarded or machine.is_decided(value):
        return False
    key = (scope.body.file.path, item.start)
    return key not in machine.shared.forked and not machine.names_of(scope.body).yields


def joined(
    machine: Machine,
    scope: Environment,
    item: Statement,
    condition: Opaque,
    run: Callable[[bool], Generator[object, object, T]],
) -> T | None:
    """Execute both branches of an ``if``, and set the variables to the values after either branch."""
    before = dict(scope.variables)
    machine.joins.append((scope.body.file.path, item.start))
    machine.assume(condition, True)
    first = _branch(machine, scope, run(True))
    scope.variables = dict(before)
    machine.assume(condition, False)
    second = _branch(machine, scope, run(False))
    machine.assume(condition, None)
    machine.joins.pop()
    if first.thrown is not None and second.thrown is not None:
        raise first.thrown
    for branch, other in ((first, second), (second, first)):
        if branch.thrown is not None:
            machine.dropped = True
            machine.assume(condition, branch is second)
            scope.variables = other.variables
            return other.completion  # type: ignore[return-value]
    if type(first.completion) is not type(second.completion):
        machine.not_joined((scope.body.file.path, item.start))
    merger = _Joiner(machine, (scope.body.file.path, item.start))
    names = dict.fromkeys([*first.variables, *second.variables])
    for name in names:
        known = [branch.variables[name] for branch in (first, second) if name in branch.variables]
        scope.variables[name] = merger.one(known[0], known[-1])
    return _completion(merger, first.completion, second.completion)  # type: ignore[return-value]


def _branch(machine: Machine, scope: Environment, steps: Generator[object, object, object]) -> Branch:
    try:
        next(steps)
    except StopIteration as ended:
        return Branch(ended.value, scope.variables)
    except Thrown as thrown:
        forget_frames(thrown)
        return Branch(None, scope.variables, thrown)
    raise NotJoinedError


def _completion(merger: _Joiner, left: object, right: object) -> object:
    """Return the completion of both branches: nothing, the same jump, or a result."""
    if left is None or left is right:
        return left
    if not hasattr(left, "value") or not hasattr(right, "value"):
        merger.lost()
    return msgspec.structs.replace(left, value=merger.one(left.value, right.value))  # type: ignore[type-var, attr-defined]


class _Joiner(Merger):
    """Merges values of variables; containers and objects only if they are identical."""

    def __init__(self, machine: Machine, key: tuple[str, int]) -> None:
        super().__init__()
        self.machine = machine
        self.key = key

    def lost(self) -> None:
        """Give up joining, and decide the condition."""
        self.machine.not_joined(self.key)

    def _merged(self, left: object, right: object) -> object:
        for item in (left, right):
            immutable = is_scalar(item) or isinstance(item, tuple | Opaque | TensorValue | ExternalName | Identical)
            if not immutable:
                self.lost()
        return super()._merged(left, right)
