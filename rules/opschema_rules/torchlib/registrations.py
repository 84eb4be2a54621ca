"""Every registering call and decorator of a tree, with the calls of helpers followed into them.

Modules are walked as they would run when they are imported; a helper is entered from each of its calls, so that its
parameters are what that call passes; a function that nothing is seen to call is walked with parameters that are not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property

import msgspec

from opschema_cli.evaluation.binding import arguments_of
from opschema_cli.evaluation.conditions import chosen, doubts, reached, runs
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.lookup import decorate
from opschema_cli.evaluation.values import (
    NO_CALL,
    Arguments,
    BoundArgument,
    ClassValue,
    Frame,
    Func,
    Instance,
    Partial,
    Text,
    Value,
    Values,
)
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import FunctionRef
from opschema_cli.source.python import Class, Expr, Function, PythonFile
from opschema_cli.source.resolution import ClassKey
from opschema_cli.source.text import Span
from opschema_rules.torchlib import apis
from opschema_rules.torchlib.mentions import Helper
from opschema_rules.torchlib.outlines import Words, last_word, libraries, public, renaming
from opschema_rules.torchlib.registering import is_scoped, registration
from opschema_rules.torchlib.values import Waiting

MAX_RECURSION = 16
"""Maximum number of nested calls of a function to follow: recursion from several places has a path for each order of them."""


class Event(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A complete registering call: the function, the place, the arguments. ``conditional`` if it may not take place, or ends
    with its library; ``sole`` if the call can be no other.
    """

    waiting: Waiting
    frame: Frame
    call: Expr
    conditional: bool
    sole: bool = False

    @property
    def api(self) -> apis.Api:
        """The registering API that is called."""
        return self.waiting.api

    @cached_property
    def given(self) -> dict[str, BoundArgument]:
        """The arguments, by the names of its parameters."""
        return self.waiting.arguments.by_name(self.api.params)

    @property
    def open(self) -> bool:
        """Whether it may get further arguments."""
        return self.waiting.arguments.open

    @property
    def helper(self) -> str:
        """The function that makes the call, where it is called for that; else empty."""
        function = self.frame.body.function
        return function.name if self.frame.site is not None and function is not None else ""

    @property
    def refused(self) -> bool:
        """Whether the decorator is a call that torch refuses, since it lacks its function."""
        made, call = self.waiting.arguments.call, self.call
        written = made is call or (call.kind == "call" and made is call.items[0])
        return self.waiting.late and self.api.at_once and self.sole and written and not self.open


class Walker:
    """Walks the bodies of some files for registrations."""

    def __init__(self, evaluator: Evaluator, files: Iterable[PythonFile], words: Words) -> None:
        self.evaluator = evaluator
        self.bodies: Bodies = evaluator.bodies
        self.files = list(files)
        self.words = {file.path: words.of(file.path) for file in self.files}
        self.events: list[Event] = []
        self._walked: set[Frame] = set()
        self._bodies: set[Body] = set()
        self._registers: dict[Body, bool] = {}
        self._recursions: Counter[Frame] = Counter()
        self._in_lambdas: list[tuple[Body, Frame, Expr]] = []
        """Calls that a lambda makes, which count where that is not seen to be called."""
        self._objects: dict[ClassKey, list[Instance]] = {}
        """The objects that are made, by class."""

    def walk_all(self) -> list[Event]:
        """All registering calls of the files."""
        for file in self.files:
            self.walk(self.evaluator.frames.module(file), conditional=False)
        for body in self._callers_first():
            if body not in self._bodies:
                for frame in self._later(body):
                    self.walk(frame, conditional=True)
        for body, frame, call in self._in_lambdas:
            if body not in self._bodies:
                self._call(frame, call, conditional=True)
        return self.events

    def _callers_first(self) -> list[Body]:
        """Return the registering functions that nothing is seen to call; then those that another one of them calls, with the
        arguments that it passes.
        """
        found = [
            (body, body.function.name)
            for file in self.files
            for body in self._registering(file)
            if body.function is not None and body not in self._bodies and self._registers_itself(body)
        ]
        calls = Counter(name for body, _ in found for name in _called(body))
        found.sort(key=lambda item: calls[item[1]] > (item[1] in _called(item[0])))
        return [body for body, _ in found]

    def _later(self, body: Body) -> list[Frame]:
        """The frames of a function that nothing is seen to call: of a method, one for each object that is seen to be made."""
        assumed = self.evaluator.frames.assumed(body)
        owner = body.owner if body.method is body else None
        objects = self._objects.get(owner.key, []) if owner is not None and body.parent is not None else []
        if not objects or body.function is None or body.function.decorator_names not in ([], ["property"]):
            return [assumed]
        function = Func(body, self.evaluator.frames.assumed(body.parent or body))
        called = [
            Arguments(item.frame or assumed, NO_CALL, (BoundArgument(assumed, None, (item,)),), open=True)
            for item in objects
        ]
        frames = [self.evaluator.frames.entered(function, arguments) for arguments in called]
        return [frame or assumed for frame in frames]

    def walk(self, frame: Frame, *, conditional: bool) -> None:
        """Record the registrations in a frame's body, and its writes to classes."""
        if frame in self._walked:
            return
        self._walked.add(frame)
        self._bodies.add(frame.body)
        words = self.words.get(frame.body.file.path, frozenset())
        for call in frame.body.scope.calls:
            if last_word(call.items[0]) in words:
                inner = self._lambda_around(frame.body, call)
                for turn in self.evaluator.turns(frame, call.start):
                    if inner is not None:
                        self._in_lambdas.append((inner, turn, call))
                    else:
                        self._call(turn, call, conditional=conditional)
        for body in self.bodies.within(frame.body):
            if body.cls is not None:
                self._class(frame, body, words, conditional=conditional)
            elif body.function is not None and _is_decorated(body.function, words):
                for turn in self.evaluator.turns(frame, body.function.start):
                    self._decorated(turn, body, body.function, conditional=conditional)
        self._properties(frame, words, conditional=conditional)
        self._writes(frame)

    def _lambda_around(self, body: Body, call: Expr) -> Body | None:
        """The lambda of a body that makes a call, when it is called."""
        spans = (item.span for item in body.scope.lambdas if item.start <= call.start and call.end <= item.end)
        found = next((Expr("lambda", span.start, span.end) for span in spans), None)
        return self.bodies.of_lambda(body, found) if found is not None else None

    def _class(self, frame: Frame, body: Body, words: frozenset[str], *, conditional: bool) -> None:
        self.walk(self.evaluator.frames.of_class(body, frame), conditional=conditional)
        for decorator in body.cls.decorators if body.cls is not None else ():
            if last_word(decorator) in words and body.cls is not None:
                given = BoundArgument(frame, None, self.evaluator.lookup(frame, body.cls.name))
                self._apply(frame, decorator, Arguments(frame, decorator, (given,)), conditional)

    def _decorated(self, frame: Frame, body: Body, function: Function, *, conditional: bool) -> None:
        if not runs(self.evaluator, frame, function.span):
            return
        found: Values = (Func(body, frame),)
        doubtful = conditional or bool(doubts(self.evaluator, frame, function.start))
        for decorator in reversed(function.decorators):
            self._apply(frame, decorator, Arguments(frame, decorator, (BoundArgument(frame, None, found),)), doubtful)
            found = decorate(self.evaluator, frame, decorator, found)

    def _call(self, frame: Frame, call: Expr, *, conditional: bool) -> None:
        if self._may_run(frame, call.span):
            self._apply(frame, call.items[0], arguments_of(self.evaluator, frame, call), conditional)

    def _may_run(self, frame: Frame, span: Span) -> bool:
        return all(test(self.evaluator, frame, span) for test in (runs, chosen, reached))

    def _apply(self, frame: Frame, callee: Expr, arguments: Arguments, conditional: bool) -> None:
        doubtful = conditional or bool(doubts(self.evaluator, frame, arguments.call.start))
        values = self.evaluator.evaluate(frame, callee)
        for value in values:
            waiting = registration(self.evaluator, value, arguments)
            if waiting is not None:
                passing = doubtful or is_scoped(self.evaluator, waiting)
                self.events.append(Event(waiting, frame, arguments.call, passing, len(values) == 1))
            else:
                self._enter(value, frame, arguments, doubtful)

    def _enter(self, value: Value, frame: Frame, arguments: Arguments, conditional: bool) -> None:
        """Walk the functions that a call runs."""
        if isinstance(value, ClassValue):
            made = (item for item in self.evaluator.apply(value, arguments) if isinstance(item, Instance))
            self._objects.setdefault(value.ref.key, []).extend(made)
        if isinstance(value, Partial):
            arguments = value.arguments.joined(arguments)
            value = value.target
        for target in self._entered(value):
            passed = target.arguments.joined(arguments) if isinstance(target, Partial) else arguments
            function = target.target if isinstance(target, Partial) else target
            if isinstance(function, Func) and self.registers(function.body) and self._may_recur(frame, function.body):
                entered = self.evaluator.frames.entered(function, passed)
                if entered is not None:
                    self.walk(entered, conditional=conditional)

    # Properties

    @cached_property
    def _property_names(self) -> frozenset[str]:
        """The names of properties of classes."""
        methods = (method for file in self.files for cls in file.body.classes for method in cls.body.functions)
        return frozenset(method.name for method in methods if method.is_property)

    def _properties(self, frame: Frame, words: frozenset[str], *, conditional: bool) -> None:
        """Walk the properties that the body of a frame reads: reading one of an object is a call."""
        wanted = words & self._property_names
        for use in frame.body.scope.uses if wanted else ():
            owner, _, name = use.name.rpartition(".")
            if owner and name in wanted:
                read = Expr("name", use.start, use.end, use.name)
                for turn in self.evaluator.turns(frame, use.start):
                    if self._may_run(turn, read.span):
                        self._read(turn, read, owner, name, conditional=conditional)

    def _read(self, frame: Frame, read: Expr, owner: str, name: str, *, conditional: bool) -> None:
        doubtful = conditional or bool(doubts(self.evaluator, frame, read.start))
        holder = self.evaluator.keep(frame, Expr("name", read.start, read.start + len(owner), owner))
        for value in self.evaluator.evaluate(frame, holder):
            member = self.evaluator.program.member(value.ref, name) if isinstance(value, Instance) else None
            body = self.bodies.function(member) if isinstance(member, FunctionRef) else None
            if body is not None and body.parent is not None and body.function is not None and body.function.is_property:
                function = Func(body, self.evaluator.frames.assumed(body.parent))
                this = BoundArgument(frame, None, (value,))
                self._enter(function, frame, Arguments(frame, read, (this,)), doubtful)

    def _may_recur(self, frame: Frame, body: Body) -> bool:
        """Whether one more call of a function is followed; always, if it is not running already."""
        running = [item for item in frame.callers() if item.body is body]
        if running:
            self._recursions[running[-1]] += 1
        return not running or self._recursions[running[-1]] <= MAX_RECURSION

    def _entered(self, value: Value) -> Iterable[Value]:
        """The functions that a call of a value runs."""
        if isinstance(value, ClassValue):
            return self.evaluator.attribute(Instance(value.ref), "__init__")
        if isinstance(value, Instance):
            return self.evaluator.attribute(value, "__call__")
        return [value]

    def registers(self, body: Body) -> bool:
        """Whether a function may register something when it is called."""
        name = body.function.name if body.function is not None else "<lambda>"
        # What registers is a word; a lambda has no name to be one.
        if name != "<lambda>" and name not in self.words.get(body.file.path, frozenset()):
            return False
        inner = (item for item in self.bodies.within(body) if item.cls is None)
        return self._registers_itself(body) or any(map(self.registers, inner))

    def _registering(self, file: PythonFile) -> list[Body]:
        """The bodies of a file that may register something, or in which one is written that may: their names are words."""
        words = self.words[file.path]
        return self.bodies.of(file, lambda function: function.name in words)

    def _registers_itself(self, body: Body) -> bool:
        if body not in self._registers:
            words = self.words.get(body.file.path, frozenset())
            called = any(last_word(item.items[0]) in words for item in body.scope.calls)
            self._registers[body] = called or any(_is_decorated(item, words) for item in body.scope.functions)
        return self._registers[body]

    # Attributes of classes

    def _writes(self, frame: Frame) -> None:
        """Record a body's writes to attributes of classes: operators may be called through them."""
        for assign in frame.body.scope.assigns:
            holder, _, name = assign.target.rpartition(".")
            if holder and "." not in holder and assign.value is not None:
                key = self.evaluator.keep(frame, Expr("name", assign.start, assign.start + len(holder), holder))
                self._written(frame, key, BoundArgument(frame, None, (Text(frozenset({name})),)), assign.value)
        for call in frame.body.scope.calls:
            if call.callee == "setattr" and len(plain := call.positional()) == 3:
                self._written(frame, plain[0], BoundArgument(frame, plain[1]), plain[2])

    def _written(self, frame: Frame, holder: Expr, name: BoundArgument, value: Expr) -> None:
        for turn in self.evaluator.turns(frame, holder.start):
            word = self.evaluator.text(BoundArgument(turn, name.expr, name.values))
            for item in self.evaluator.evaluate(turn, holder) if word else ():
                if isinstance(item, ClassValue) and word:
                    self.evaluator.written.setdefault((item.ref.key, word), []).append(BoundArgument(turn, value))


def helpers(files: Iterable[PythonFile], words: Words, dependent: Words) -> Iterator[Helper]:
    """Yield the functions and classes whose calls may register in other files: those that register their arguments, and others
    with parameters; those with ``dependent`` words register something that depends on them. Variables that hold a library are
    included.
    """
    for file in files:
        yield from (Helper(file.path, name, library=True) for name in libraries(file))
        own, depending = words.of(file.path), dependent.of(file.path)
        aliases = (name for name in renaming(file) if name in own and len(name) > 3)
        yield from (Helper(file.path, name, dependent=name in depending) for name in aliases)
        for item in public(file):
            plain = isinstance(item, Function) and not item.params
            if item.name in own and not plain and len(item.name) > 3 and item.name not in ("main", "forward"):
                yield _helper(file, item, words, dependent=item.name in depending)


def _helper(file: PythonFile, item: Function | Class, words: Words, *, dependent: bool) -> Helper:
    registrars = words.registrars(item.name) if isinstance(item, Class) else None
    if registrars is None or not isinstance(item, Class):
        return Helper(file.path, item.name, isinstance(item, Class), dependent=dependent)
    others = frozenset(method.name for method in item.body.functions) - registrars
    return Helper(file.path, item.name, True, registrars, others, dependent)


def _called(body: Body) -> frozenset[str]:
    """Return the last words of a body's calls."""
    return frozenset(last_word(call.items[0]) for call in body.scope.calls)


def _is_decorated(function: Function, words: frozenset[str]) -> bool:
    return any(last_word(item) in words for item in function.decorators)
