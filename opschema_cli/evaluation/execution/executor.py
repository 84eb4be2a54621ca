"""Execution of functions of the workspace with concrete values.

Nothing of the tree is run: :class:`Executor` walks over the facts of the code and computes what Python would. An outcome is exact,
or :class:`~opschema_cli.evaluation.execution.outcomes.Unresolved`. Code outside the workspace is taken to return, so that its
result is the only thing that is not known of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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
from opschema_cli.evaluation.execution.results import sealed
from opschema_cli.evaluation.execution.signals import Thrown, Undecided
from opschema_cli.evaluation.execution.values import Closure, Object, Opaque
from opschema_cli.evaluation.limits import MAX_PATHS, MAX_TOTAL_STEPS
from opschema_cli.evaluation.values import ClassValue, Func
from opschema_cli.source.bodies import Body


class Executor:
    """Executes functions of one tree; ``dialects`` say what names of other packages mean, the first that knows one first."""

    def __init__(self, evaluator: Evaluator, dialects: Sequence[ExecutionDialect] = ()) -> None:
        self.evaluator = evaluator
        self.dialects = tuple(dialects)
        self.steps = 0
        self._shared = Shared()

    def call(
        self,
        function: Func | Body | object,
        arguments: Mapping[str, object] | None = None,
        positional: Sequence[object] = (),
    ) -> Outcome:
        """The outcome of calling a function with arguments by name, and others before them by place.

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
        """The outcome of making an object of a class, an :class:`Object` with the attributes that its ``__init__`` sets."""
        return self.call(cls, arguments, positional)

    def method(
        self, this: Object, name: str, arguments: Mapping[str, object] | None = None, positional: Sequence[object] = ()
    ) -> Outcome:
        """The outcome of calling a method of an object."""
        words = dict(arguments or {})

        def run(machine: Machine, copy: Copier) -> object:
            again = copy.copy(this)
            values = {word: copy.copy(value) for word, value in words.items()}
            return machine.call(machine.attribute(again, name), copy.tuple(tuple(positional)), values)

        return self._outcome(run)

    def made(self, cls: ClassValue, name: str) -> Outcome:
        """The member of a class, by what ``__init_subclass__`` of its bases makes of it."""
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
        """The outcome of all paths: those that raise do not count where others return."""
        waiting: list[tuple[bool, ...]] = [()]
        found: list[Outcome] = []
        while waiting:
            choices = Choices(waiting.pop())
            outcome = self._path(run, choices)
            if isinstance(outcome, Unresolved):
                return outcome
            found.append(outcome)
            waiting += choices.others
            if len(found) + len(waiting) > MAX_PATHS:
                return Unresolved(f"there are too many paths: {choices.reason}", choices.place)
        return merged(found)

    def _path(self, run: Callable[[Machine, Copier], object], choices: Choices) -> Outcome:
        if self.steps > MAX_TOTAL_STEPS:
            return Unresolved("the executions of this tree take too many steps")
        machine = Interpreter(self.evaluator, self.dialects, choices, self._shared)
        try:
            value = sealed(machine, run(machine, Copier()))
        except Thrown as thrown:
            return Raised(class_name(thrown.error), message_of(machine, thrown.error), thrown.place)
        except Undecided as undecided:
            return Unresolved(undecided.reason, undecided.place)
        except RecursionError:
            return Unresolved("the code or its values nest too deeply", machine.place)
        finally:
            self.steps += machine.steps
        return Unresolved(value.reason, value.place) if isinstance(value, Opaque) else Returned(value)
