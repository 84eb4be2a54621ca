"""The results of an op's `forward()` under `torch.compile`: interpreted with the operators' fakes, for the calls of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call, Caller, ExecutionDialect
from opschema_cli.evaluation.execution.outcomes import Outcome, Raised, Returned, Unresolved
from opschema_cli.evaluation.execution.values import Closure, Native, Object, Opaque, TensorValue
from opschema_cli.evaluation.tensors.dialect import TORCH
from opschema_cli.evaluation.values import ClassValue, ExternalName
from opschema_cli.lint.diagnostic import NotUnderstood
from opschema_cli.regular_files import content_digest
from opschema_cli.schema.evaluate import Tensor as Bound
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import ClassRef, FunctionRef
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import ClassKey
from opschema_rules.tileops.calls.code import Agreement, Code, code_of
from opschema_rules.tileops.calls.described import DescribedCall, Shape
from opschema_rules.tileops.calls.dialect import CALLED_ON, called_on_devices
from opschema_rules.tileops.calls.findings import is_error
from opschema_rules.tileops.calls.outcomes import (
    construct,
    constructor_arguments,
    executed_outcome,
    hidden_parameters,
    taken,
)
from opschema_rules.tileops.model import OpImplementation
from opschema_rules.tileops.verify.dtypes import Assignment, assignments
from opschema_rules.torchlib.fake_calls import FakeCalls
from opschema_rules.torchlib.shared import (
    FunctionKey,
    SharedCallable,
    SharedMaker,
    SharedName,
    SharedOperators,
    SharedUnknown,
    SharedValue,
)

MAX_TRIES = 3
"""Maximum number of calls of other sizes to try."""
KEY = "the key of the op"
"""The key by which a registry holds the op whose `forward()` is interpreted: an operator takes it in the place of the op."""


class FakeMismatch(msgspec.Struct, frozen=True, eq=False):
    """An output to which a fake gives another shape or dtype than the manifest: both differing sides, and the fake."""

    output: str
    call: DescribedCall
    dtypes: Mapping[str, str]
    fake: Body
    returned: Shape | str
    declared: Shape | str


class FakeOutcome(msgspec.Struct):
    """Outcome of an op's calls with the fakes of its operators; ``fakes`` are those that agree with the manifest, ``broken`` is a
    call that ends with an error of Python's.
    """

    op: OpImplementation
    mismatch: FakeMismatch | None = None
    broken: tuple[DescribedCall, Raised] | None = None
    fakes: list[FunctionKey] = msgspec.field(default_factory=list)
    unresolved: list[NotUnderstood] = msgspec.field(default_factory=list)


class Compiled:
    """The ops of one file with the operators of their tree; with ``eager`` these run their own functions, not their fakes."""

    def __init__(self, code: Code, makers: Makers, *, eager: bool = False) -> None:
        self.code = code
        self.makers = makers
        self.this: Object | None = None
        self.fakes = FakeCalls(self._fake_of, eager=eager)
        own = ExecutionDialect(functions=lambda name: self._instance, operator=self._registered, reads_own=True)
        self.executor = code.executor_with((self.fakes.dialect, own))

    def run(
        self,
        op: OpImplementation,
        this: Object,
        tensors: dict[str, object],
        then: Callable[[Call, Object], object] | None = None,
    ) -> Outcome:
        """Return the outcome of an object's `forward()` after the calls that define the operators of its class; with ``then``,
        of the following use of the object.
        """
        words = taken(op, "forward", tensors)
        if words is None:
            return hidden_parameters("forward")
        self.fakes.clear()
        makers = [(self._body(maker.function), self._words(maker)) for maker in self.makers.of(op)]

        def drive(call: Call) -> object:
            (again,) = call.positional
            self.this = _with_key(again) if isinstance(again, Object) else None
            for body, words in makers:
                if body is not None:
                    call.machine.call(Closure(body), (), words)
            found = call.machine.call(call.machine.attribute(again, "forward"), (), call.keywords)
            return then(call, again) if then is not None and isinstance(again, Object) else found

        return self.executor.call(Native("forward", drive), words, (this,))

    def _instance(self, call: Call) -> object:
        """The op itself, where a function is passed nothing but its key."""
        return self.this if self.this is not None and call.positional == (KEY,) and not call.keywords else NOT_KNOWN

    def _registered(self, machine: Caller, word: str, operands: Sequence[object]) -> object:
        """The op itself, as the item of a registry at its key."""
        is_own = word == "[]" and isinstance(operands[1], str) and operands[1] == KEY
        return self.this if is_own and self.this is not None else NOT_KNOWN

    # Operators

    def _words(self, maker: SharedMaker) -> dict[str, object]:
        return {name: self._value(value) for name, value in maker.arguments.items()}

    def _value(self, value: SharedValue) -> object:
        match value:
            case SharedName():
                known = TORCH.value(value.name)
                return known if known is not NOT_KNOWN else ExternalName(value.name)
            case SharedUnknown():
                return Opaque("an argument that is not known")
            case SharedCallable():
                body = self._body(value.key)
                return Closure(body) if body is not None else Opaque("a function that is not read")
            case tuple():
                ref = self._class(value)
                return ClassValue(ref) if ref is not None else Opaque("a class that is not read")
        return value

    def _class(self, key: ClassKey) -> ClassRef | None:
        file = self.executor.evaluator.program.load(key[0])
        found = next((item for item in file.body.classes if item.start == key[1]), None) if file is not None else None
        return ClassRef(file, found) if file is not None and found is not None else None

    def _fake_of(self, name: str) -> Body | None:
        key = self.makers.fakes.get(name)
        return self._body(key) if key is not None else None

    def _body(self, key: FunctionKey) -> Body | None:
        """The function or lambda of a module at a place."""
        file, bodies = self.executor.evaluator.program.load(key[0]), self.executor.evaluator.bodies
        if file is None:
            return None
        found = next((item for item in file.body.functions if item.start == key[1]), None)
        if found is not None:
            return bodies.function(FunctionRef(file, found))
        written = next((item for item in file.body.lambdas if item.start == key[1]), None)
        module = bodies.module(file)
        return bodies.of_lambda(module, Expr("lambda", *written.span)) if written is not None else None


def _with_key(this: Object) -> Object:
    """An object with :data:`KEY` for the attributes that hold its key in a registry."""
    for name, value in this.attributes.items():
        if name.endswith("_key") and isinstance(value, str | Opaque):
            this.attributes[name] = KEY
    return this


class Makers:
    """The calls that define operators for classes, and the fakes of operators by their names."""

    def __init__(self, operators: SharedOperators) -> None:
        self.fakes = operators.fakes
        self._makers = operators.makers
        self._by_class: dict[ClassKey, list[int]] = {}
        for index, maker in enumerate(operators.makers):
            for key in {value for value in maker.arguments.values() if isinstance(value, tuple)}:
                self._by_class.setdefault(key, []).append(index)

    def of(self, op: OpImplementation) -> list[SharedMaker]:
        """Return those for the class of an op, or for one of its bases."""
        lineage = op.program.lineage(op.ref)
        return [
            self._makers[index] for index in sorted({i for ref in lineage for i in self._by_class.get(ref.key, ())})
        ]


# Outcomes


def fake_outcome(op: OpImplementation, compiled: Callable[[Code], Compiled], makers: Makers) -> FakeOutcome:
    """Return the outcome of an op; for one that is known to agree, the fakes."""
    code = code_of(op)
    method = f"forward {content_digest(msgspec.msgpack.encode((makers.of(op), sorted(makers.fakes))))}"
    known = code.known(op, method)
    if known is not None:
        found = FakeOutcome(op, fakes=[_parsed(key) for key in known.checked], unresolved=known.unresolved)
    else:
        found = _executed(op, compiled(code))
        if found.mismatch is None and found.broken is None:
            code.keep(op, method, Agreement([f"{start}:{path}" for path, start in found.fakes], found.unresolved))
    op.entry.manifest.unresolved.extend(found.unresolved)
    return found


def _parsed(key: str) -> FunctionKey:
    start, _, path = key.partition(":")
    return path, int(start)


def _executed(op: OpImplementation, compiled: Compiled) -> FakeOutcome:
    """The results of the fakes of an op's operators for one of its rows, and for the first call of other sizes that it accepts."""
    found = FakeOutcome(op)
    made = executed_outcome(op).made
    others = [item for item in made if item[0].origin == "derived"] or made[1:]
    for index, (call, this) in enumerate([*made[:1], *others[:MAX_TRIES]]):
        assignments = list(_assignments(op, call))
        agreeing = len(found.fakes)
        if assignments and not _judge(compiled, call, this, assignments[index % len(assignments)], found):
            break
        if index and len(found.fakes) > agreeing:
            break
    return found


def _assignments(op: OpImplementation, call: DescribedCall) -> Iterator[Assignment]:
    """The dtypes of a call's tensors, for each dtype that its row lists."""
    passed = [name for name, shape in call.shapes(op.entry).items() if shape is not None]
    listed = call.bound.row.data.get("dtypes")
    for dtype in listed if isinstance(listed, list) else ():
        found = assignments(op.entry, dtype, passed) if isinstance(dtype, str) else ""
        yield from found if isinstance(found, list) else ()


def _judge(compiled: Compiled, call: DescribedCall, this: Object, assignment: Assignment, found: FakeOutcome) -> bool:
    """Compare the result of one call of an object with the manifest. Return whether others may agree, because this one does or
    the code rejects it.
    """
    op = compiled.code.traced(found.op)
    shapes = {name: shape for name, shape in call.shapes(op.entry).items() if shape is not None}
    tensors: dict[str, object] = {
        name: TensorValue(shape, assignment.dtypes.get(name), CALLED_ON) for name, shape in shapes.items()
    }
    outcome = called_on_devices(lambda given: compiled.run(op, this, given), tensors)
    if isinstance(outcome, Unresolved):  # the operators that its constructor makes are not known of the object
        made = construct(compiled.executor, op, constructor_arguments(op, call.bound))
        if isinstance(made, Returned) and isinstance(made.value, Object):
            again = made.value
            outcome = called_on_devices(lambda given: compiled.run(op, again, given), tensors)
    if isinstance(outcome, Raised):
        is_broken = is_error(op.entry.manifest, call, outcome)
        found.broken = (call, outcome) if is_broken else None
        return not is_broken
    reason = _unknown(op, compiled, outcome)
    if reason:
        place = outcome.place if isinstance(outcome, Unresolved) else None
        text = f"the result of `forward()` of {op.name} with its fakes is not known: {reason}"
        found.unresolved.append(NotUnderstood(place or op.place, text))
        return False
    fake = compiled.fakes.used[-1]
    for output, value in zip(op.entry.outputs, _values(outcome), strict=True):
        for returned, declared in _sides(call, output.name, value, assignment):
            if returned != declared:
                found.mismatch = FakeMismatch(output.name, call, assignment.dtypes, fake, returned, declared)
                return False
    found.fakes.append((fake.file.path, fake.function.start if fake.function is not None else 0))
    return True


def _values(outcome: Outcome) -> tuple[object, ...]:
    """The results of a call, one by one."""
    value = outcome.value if isinstance(outcome, Returned) else ()
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _unknown(op: OpImplementation, compiled: Compiled, outcome: Outcome) -> str:
    """The reason why the results of a call are not known; empty if they are."""
    if isinstance(outcome, Unresolved):
        return outcome.reason
    if not compiled.fakes.used:
        return "it calls no operator with a fake"
    values = _values(outcome)
    if len(values) != len(op.entry.outputs):
        return f"it returns {len(values)} values"
    for output, value in zip(op.entry.outputs, values, strict=True):
        if not isinstance(value, TensorValue) or not all(isinstance(size, int) for size in value.shape):
            return f"the shape of `{output.name}`"
    return ""


def _sides(
    call: DescribedCall, name: str, value: object, assignment: Assignment
) -> Iterator[tuple[Shape | str, Shape | str]]:
    """The shapes and dtypes of an output that are known on both sides."""
    assert isinstance(value, TensorValue)  # others are not known
    bound = call.bound.values.get(name)
    declared = bound.shape if isinstance(bound, Bound) else None
    if declared is not None:
        yield tuple(size for size in value.shape if isinstance(size, int)), declared
    dtype = assignment.dtypes.get(name)
    if dtype is not None and value.dtype is not None:
        yield value.dtype, dtype
