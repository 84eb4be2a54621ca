"""Execution of functions of the workspace with concrete values.

Nothing of the tree is run: :class:`Executor` walks over the facts of the code and computes what Python would. An outcome is exact,
or :class:`~opschema_cli.evaluation.execution.outcomes.Unresolved`. Code outside the workspace is taken to return, so that its
result is the only thing that is not known of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.execution.choices import Choices
from opschema_cli.evaluation.execution.class_hooks import made_member
from opschema_cli.evaluation.execution.conversion import closure_of
from opschema_cli.evaluation.execution.copies import Copier
from opschema_cli.evaluation.execution.dialect import ExecutionDialect
from opschema_cli.evaluation.execution.exceptions import class_name, message_of
from opschema_cli.evaluation.execution.interpreter import Interpreter
from opschema_cli.evaluation.execution.machine import Machine, Shared
from opschema_cli.evaluation.execution.merging import merged
from opschema_cli.evaluation.execution.outcomes import Outcome, Raised, Returned, Unresolved
from opschema_cli.evaluation.execution.patterns import PATTERNS
from opschema_cli.evaluation.execution.results import sealed
from opschema_cli.evaluation.execution.signals import NotJoinedError, Thrown, Undecided, forget_frames
from opschema_cli.evaluation.execution.values import Closure, Object, Opaque
from opschema_cli.evaluation.limits import MAX_EXECUTED_STEPS, MAX_PATHS, MAX_TOTAL_STEPS
from opschema_cli.evaluation.values import ClassValue, Func
from opschema_cli.source.bodies import Body


class Executor:
    """Executes functions of one tree; ``dialects`` say what names of other packages mean, the first that knows one first.

    ``most_steps`` are those of one execution, on all of its paths, and ``most_paths`` the paths, before and after branches are
    joined.
    """

    def __init__(
        self, evaluator: Evaluator, dialects: Sequence[ExecutionDialect] = (), most_steps: int = MAX_EXECUTED_STEPS
    ) -> None:
        self.evaluator = evaluator
        self.most_steps = most_steps
        self.most_paths = MAX_PATHS
        self.dialects = (*dialects, PATTERNS)
        self.steps = 0
        self._shared = Shared()

    @contextmanager
    def at_most(self, steps: int, paths: int = MAX_PATHS) -> Iterator[None]:
        """Limit each execution to fewer steps and paths."""
        before = self.most_steps, self.most_paths
        self.most_steps, self.most_paths = min(self.most_steps, steps), min(self.most_paths, paths)
        try:
            yield
        finally:
            self.most_steps, self.most_paths = before

    def call(
        self,
        function: Func | Body | object,
        arguments: Mapping[str, object] | None = None,
        positional: Sequence[object] = (),
    ) -> Outcome:
        """Call a function with arguments by name, and others before them by position.

        The arguments are not changed: the function works on copies of containers and objects.
        """
        words = dict(arguments or {})

        def run(machine: Machine, copy: Copier) -> object:
            values = {name: copy.copy(value) for name, value in words.items()}
            return machine.call(self._callable(machine, function), copy.tuple(tuple(positional)), values)

        return self._outcome(run)

    def construct(
        self, cls: ClassValue, arguments: Mapping[str, object] | None = None, positional: Sequence[object] = ()
    ) -> Outcome:
        """Create an object of a class: an :class:`Object` with the attributes that its ``__init__`` sets."""
        return self.call(cls, arguments, positional)

    def method(
        self, this: Object, name: str, arguments: Mapping[str, object] | None = None, positional: Sequence[object] = ()
    ) -> Outcome:
        """Call a method of an object."""
        words = dict(arguments or {})

        def run(machine: Machine, copy: Copier) -> object:
            again = copy.copy(this)
            values = {word: copy.copy(value) for word, value in words.items()}
            return machine.call(machine.attribute(again, name), copy.tuple(tuple(positional)), values)

        return self._outcome(run)

    def made(self, cls: ClassValue, name: str) -> Outcome:
        """Return the member of a class after ``__init_subclass__`` of its bases has run."""
        return self._outcome(lambda machine, copy: made_member(machine, cls, name))

    def _callable(self, machine: Machine, function: object) -> object:
        if isinstance(function, Func):
            return closure_of(machine, function)
        if isinstance(function, Body):
            parent = function.parent
            assumed = self.evaluator.frames.assumed(parent) if parent is not None else None
            return closure_of(machine, Func(function, assumed)) if assumed is not None else Closure(function)
        return function

    # Paths

    def _outcome(self, run: Callable[[Machine, Copier], object]) -> Outcome:
        """Return the outcome of all paths: those that raise do not count if others return."""
        found = self._followed(run, joining=False) or self._followed(run, joining=True)
        return found or Unresolved("there are too many paths")

    def _followed(self, run: Callable[[Machine, Copier], object], *, joining: bool) -> Outcome | None:
        """Return the outcome of all paths; None if there are too many."""
        waiting = deque[tuple[bool, ...]]([()])
        found: list[tuple[list[bool], Outcome]] = []
        budget = self.most_steps
        while waiting:
            # In the order in which they branched off: most paths branch off early ones, so that too many are soon seen.
            machine = Interpreter(self.evaluator, self.dialects, Choices(waiting.popleft()), self._shared)
            machine.joining = joining
            machine.steps_left = budget
            try:
                outcome = self._path(run, machine)
            except NotJoinedError as restart:
                forget_frames(restart)
                waiting.appendleft(machine.choices.script)
                budget -= machine.steps
                continue
            budget -= machine.steps
            if isinstance(outcome, Unresolved):
                crowded = machine.choices.exceeded or (budget <= 0 and found)
                return None if crowded and not joining else outcome
            found.append(([not decision for decision in machine.choices.made], outcome))
            waiting += machine.choices.others
            if len(found) + len(waiting) > self.most_paths:
                reason = f"there are too many paths: {machine.choices.reason}"
                return Unresolved(reason, machine.choices.place) if joining else None
        return merged([outcome for _, outcome in sorted(found, key=itemgetter(0))])

    def _path(self, run: Callable[[Machine, Copier], object], machine: Machine) -> Outcome:
        if self.steps > MAX_TOTAL_STEPS:
            return Unresolved("the executions of this tree take too many steps")
        try:
            value = sealed(machine, run(machine, Copier()))
        except Thrown as thrown:
            forget_frames(thrown)
            name = class_name(thrown.error) if not machine.dropped else "Exception"
            return Raised(name, message_of(machine, thrown.error) if not machine.dropped else None, thrown.place)
        except Undecided as undecided:
            forget_frames(undecided)
            return Unresolved(undecided.reason, undecided.place)
        except RecursionError:
            return Unresolved("the code or its values nest too deeply", machine.place)
        finally:
            self.steps += machine.steps
        return Unresolved(value.reason, value.place) if isinstance(value, Opaque) else Returned(value)
