"""Base class of the interpreter: its state, and the operations that its parts call on each other.

The parts are modules of functions that take a machine; :class:`~opschema_cli.evaluation.execution.interpreter.Interpreter`
puts them together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import NoReturn, TypeVar, cast

import msgspec

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.execution.choices import Choices
from opschema_cli.evaluation.execution.dialect import ExecutionDialect, ExternalFunction
from opschema_cli.evaluation.execution.signals import NotJoinedError, Thrown, Undecided
from opschema_cli.evaluation.execution.values import Closure, Environment, ErrorValue, Names, Object, Opaque
from opschema_cli.evaluation.limits import MAX_EXECUTED_CALLS, MAX_EXECUTED_STEPS
from opschema_cli.evaluation.values import ExternalName
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, PythonFile, Statement
from opschema_cli.source.resolution import ClassKey, ClassRef, FunctionRef, Resolution, ValueRef
from opschema_cli.source.text import Place

T = TypeVar("T")


class FoundMember(msgspec.Struct, frozen=True):
    """The result of looking up a class attribute: ``found`` in the last of the classes ``searched``, or why that is not known."""

    searched: tuple[ClassRef, ...] = ()
    found: FunctionRef | ValueRef | ClassRef | None = None
    reason: str = ""


class Shared(msgspec.Struct):
    """State shared by the executions of one tree."""

    by_dialect: dict[Body, ExternalFunction | None] = msgspec.field(default_factory=dict)
    """The dialect functions that compute calls of workspace functions."""
    readers: dict[str, tuple[ExternalFunction, ...]] = msgspec.field(default_factory=dict)
    """The dialect functions that compute calls of external names."""
    externals: dict[str, object] = msgspec.field(default_factory=dict)
    """Values of external names."""
    resolved: dict[tuple[str, str], Resolution] = msgspec.field(default_factory=dict)
    """Definitions of module names, by path and name."""
    plain_methods: dict[Body, bool] = msgspec.field(default_factory=dict)
    """Whether the decorators of a method only make another kind of method of it."""
    constants: dict[tuple[str, str], object] = msgspec.field(default_factory=dict)
    """Values of module names that are immutable or unknown."""
    containers: dict[tuple[str, str], object] = msgspec.field(default_factory=dict)
    """Containers held by module names; each execution gets a copy."""
    examined: set[tuple[str, str]] = msgspec.field(default_factory=set)
    """The module names whose containers have been checked for parts shared with other values."""
    members: dict[tuple[ClassKey, str, ClassKey | None], FoundMember] = msgspec.field(default_factory=dict)
    kinds: dict[Body, frozenset[str]] = msgspec.field(default_factory=dict)
    """The kinds of method that decorators make of functions."""
    decorated: dict[ClassKey, bool] = msgspec.field(default_factory=dict)
    """Whether decorators may replace a class."""
    forked: set[tuple[str, int]] = msgspec.field(default_factory=set)
    """The branches that are not joined, by file and place."""
    setters: dict[ClassKey, dict[str, Body]] = msgspec.field(default_factory=dict)
    """The setters of properties, by class."""
    of_classes: dict[tuple[object, ClassKey], object] = msgspec.field(default_factory=dict)
    """Results of functions decorated with :func:`cached_by_class`."""


def cached_by_class(function: Callable[[Machine, ClassRef], T]) -> Callable[[Machine, ClassRef], T]:
    """Cache a fact about a class, which no execution can change, for the tree."""

    @wraps(function)
    def cached(machine: Machine, ref: ClassRef) -> T:
        known, key = machine.shared.of_classes, (function, ref.key)
        if key not in known:
            known[key] = function(machine, ref)
        return cast(T, known[key])

    return cached


class Machine(ABC):
    """One execution along one path: its current place and the work done so far."""

    def __init__(
        self, evaluator: Evaluator, dialects: Sequence[ExecutionDialect], choices: Choices, shared: Shared
    ) -> None:
        self.evaluator = evaluator
        self.dialects = tuple(dialects)
        self.choices = choices
        self.shared = shared
        self.steps = 0
        self.steps_left = MAX_EXECUTED_STEPS
        self.depth = 0
        self.guarded = 0
        """How many ``try`` statements with handlers run."""
        self.decisions = 0
        """How often the path has depended on what is not known."""
        self.naming = 0
        """How many names of modules are being evaluated."""
        self.joining = False
        """Whether to join branches on conditions that are not known."""
        self.joins: list[tuple[str, int]] = []
        """The branches that are being joined, by file and place."""
        self.dropped = False
        """Whether a branch raised that was joined with one that did not."""
        self.born: dict[int, object] = {}
        """The iterators that were made in such branches."""
        self.unsure = 0
        """How many loops run whose turns are not known: what is written in them is not known afterwards."""
        self.handling: list[ErrorValue | Object] = []
        self.tainted: dict[int, object] = {}
        self.globals: dict[tuple[str, str], object] = {}
        self.class_attributes: dict[tuple[ClassKey, str], object] = {}
        """Writes of this execution to classes."""
        self.class_values: dict[tuple[ClassKey, str], object] = {}
        """The attributes of classes that it has read."""
        self.identities: dict[int, tuple[int, object]] = {}
        self._derived: dict[tuple[int, str], tuple[object, Opaque]] = {}
        self._present: dict[tuple[object, str], object] = {}
        self._outside: dict[ExternalName, Opaque] = {}
        self._decided: dict[int, tuple[Opaque, bool]] = {}
        self._body: Body | None = None
        self._item: Expr | Statement | None = None

    # The place of execution

    def at(self, body: Body, item: Expr | Statement) -> None:
        """Record the code that is being executed."""
        self._body, self._item = body, item

    @property
    def place(self) -> Place | None:
        """The place of the code that is being executed."""
        return self._body.at(self._item.span) if self._body is not None and self._item is not None else None

    def spend(self, steps: int) -> None:
        """Count steps of work.

        Raises:
            Undecided: they are beyond the limit.
        """
        self.steps += steps
        if self.steps > self.steps_left:
            raise Undecided("it takes too many steps", self.place)

    def enter(self) -> None:
        """Count a call that is entered.

        Raises:
            Undecided: the chain of calls is too long.
        """
        self.depth += 1
        if self.depth > MAX_EXECUTED_CALLS:
            raise Undecided("calls nest too deeply", self.place)

    def throw(self, name: str, message: object = None) -> NoReturn:
        """Raise a built-in exception in the executed code."""
        text = message if message is not None else self.opaque("the text of an exception")
        raise Thrown(ErrorValue(name, (text,)), self.place)

    def stop(self, reason: str) -> NoReturn:
        """End the execution because its result cannot be known."""
        raise Undecided(reason, self.place)

    def opaque(self, reason: str) -> Opaque:
        """Return an unknown value."""
        return Opaque(reason, self.place)

    def derived(self, value: object, how: str) -> Opaque:
        """Return an unknown value computed from another one, always the same one."""
        key = (id(value), how)
        if key not in self._derived:
            reason = value.reason if isinstance(value, Opaque) else how
            self._derived[key] = value, Opaque(reason, self.place)
        return self._derived[key][1]

    def outside(self, name: ExternalName) -> Opaque:
        """Return the unknown truth value of a name outside the workspace."""
        if name not in self._outside:
            self._outside[name] = self.opaque(f"the truth of `{name.name}`")
        return self._outside[name]

    def negation(self, value: Opaque) -> Opaque:
        """Return the negation of an unknown value."""
        return value.negates if value.negates is not None else Opaque(value.reason, value.place, value)

    def is_decided(self, value: Opaque) -> bool:
        """Whether the truth of an unknown value is decided on this path."""
        return self.is_decided(value.negates) if value.negates is not None else id(value) in self._decided

    def assume(self, value: Opaque, truth: bool | None) -> None:
        """Assume that an unknown value is true or false from here on; None removes the assumption."""
        if value.negates is not None:
            self.assume(value.negates, None if truth is None else not truth)
        elif truth is None:
            self._decided.pop(id(value), None)
        else:
            self._decided[id(value)] = value, truth

    def not_joined(self, key: tuple[str, int]) -> NoReturn:
        """Restart the path, and decide the condition of a branch.

        Raises:
            NotJoinedError: always.
        """
        self.shared.forked.add(key)
        raise NotJoinedError

    def decide(self, value: Opaque) -> bool:
        """Whether an unknown value is true on this path."""
        if value.negates is not None:
            return not self.decide(value.negates)
        self.decisions += 1
        if id(value) not in self._decided:
            self._decided[id(value)] = value, self.choices.choose(value.reason, self.place)
        return self._decided[id(value)][1]

    def choose(self, reason: str) -> bool:
        """Choose one of two paths; the other one is followed later."""
        self.decisions += 1
        return self.choices.choose(reason, self.place)

    def may_raise(self, reason: str, name: str = "") -> None:
        """Follow both outcomes of unknown code, raising and not raising, if a handler could tell them apart."""
        if self.guarded and not self.choose(reason):
            raise Thrown(ErrorValue(name, (self.opaque(reason),)), self.place)

    def may_miss(self, value: Opaque | ExternalName, name: str) -> None:
        """Try both outcomes once per attribute: an unknown value has it, or does not."""
        key = (id(value) if isinstance(value, Opaque) else value.name, name)
        if key not in self._present:
            self.may_raise(f"the attribute `{name}`", "AttributeError")
            self._present[key] = value

    def taint(self, container: object) -> None:
        """Record that the contents of a container are unknown from here on."""
        self.tainted[id(container)] = container

    def changes(self, container: object) -> None:
        """Record that a container is about to be changed."""
        if self.joins:
            self.not_joined(self.joins[0])
        if self.unsure:
            self.taint(container)

    def written(self, value: object) -> object:
        """Return the value to store in a variable or attribute that outlives the call."""
        if self.joins:
            self.not_joined(self.joins[0])
        return self.opaque("it is written in a loop whose turns are not known") if self.unsure else value

    # Operations

    @abstractmethod
    def evaluate(self, scope: Environment, expr: Expr) -> object:
        """Return the value of an expression."""

    @abstractmethod
    def special(self, value: Object, name: str) -> object:
        """Return a method of an object that Python calls implicitly; None if its class has none."""

    @abstractmethod
    def hashes_by_identity(self, value: Object) -> bool:
        """Whether an object only equals itself."""

    @abstractmethod
    def held(self, scope: Environment, expr: Expr) -> object:
        """Return the value of an expression assigned to a module's name."""

    @abstractmethod
    def module_name(self, file: PythonFile, name: str) -> object:
        """Return the value of a module's name."""

    @abstractmethod
    def framed(self, scope: Environment, name: str) -> object:
        """Return the value of a name in the frame of a function that is not executed."""

    @abstractmethod
    def names_of(self, body: Body) -> Names:
        """Return the names of a function."""

    @abstractmethod
    def call(self, function: object, positional: Sequence[object], keywords: Mapping[str, object]) -> object:
        """Call a value, and return the result."""

    @abstractmethod
    def attribute(self, value: object, name: str) -> object:
        """Return an attribute of a value."""

    @abstractmethod
    def annotations(self, function: Closure) -> list[object]:
        """Return the annotations of a function's parameters, evaluated at its definition; None for those without one."""

    @abstractmethod
    def iterate(self, value: object) -> Iterator[object]:
        """Yield the elements of an iterable."""

    @abstractmethod
    def truth(self, value: object) -> bool:
        """Whether a value is true; for an opaque value, both are tried."""

    @abstractmethod
    def run(self, scope: Environment, statements: Sequence[Statement]) -> Iterator[object]:
        """Run statements, and yield what they yield."""
