"""Outcomes of an op's calls: the object that its constructor makes, and the shapes that its code gives the outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.execution.executor import Executor
from opschema_cli.evaluation.execution.outcomes import Outcome, Raised, Returned, Unresolved
from opschema_cli.evaluation.execution.values import DtypeValue, Object, Opaque
from opschema_cli.evaluation.values import ClassValue
from opschema_cli.lint.diagnostic import NotUnderstood, Place
from opschema_cli.schema.dtypes import canonical, is_dtype
from opschema_cli.schema.evaluate import Tensor as Bound
from opschema_cli.schema.outcomes import Failed, Violated
from opschema_cli.schema.outcomes import Unresolved as Open
from opschema_cli.source.yaml import Data
from opschema_rules.tileops.bindings import BoundRow, bind_row
from opschema_rules.tileops.calls.code import Agreement, code_of
from opschema_rules.tileops.calls.described import DescribedCall, Shape, described_calls
from opschema_rules.tileops.calls.dialect import UNDECLARED
from opschema_rules.tileops.entry_parts import Row
from opschema_rules.tileops.model import OpImplementation
from opschema_rules.tileops.param_types import admits_dtypes
from opschema_rules.tileops.signature import Equation

INFER = "_infer_output_shapes"
_OPEN = (Open, Failed)
_OWN = frozenset({"kernel_map", "tune", "target"})
"""Parameters of constructors that say how an op is run."""


class Mismatch(msgspec.Struct, frozen=True):
    """An output whose shape in the code differs from the manifest: ``returned`` by the code, None if it returns none;
    ``declared`` if that is known. ``equation`` is the equation that the returned shape violates.
    """

    output: str
    call: DescribedCall
    returned: Shape | None
    declared: Shape | None = None
    equation: Equation | None = None
    broken: Violated | None = None


class Refusal(msgspec.Struct, frozen=True):
    """A call that the code refuses, in the constructor or in ``method``."""

    call: DescribedCall
    method: str
    raised: Raised


class OpOutcome(msgspec.Struct):
    """The outcomes of one op's calls: the calls whose constructor makes an object, each with the object, and the differences."""

    op: OpImplementation
    made: list[tuple[DescribedCall, Object]] = msgspec.field(default_factory=list)
    checked: set[str] = msgspec.field(default_factory=set)
    mismatches: list[Mismatch] = msgspec.field(default_factory=list)
    refusals: list[Refusal] = msgspec.field(default_factory=list)
    unresolved: list[NotUnderstood] = msgspec.field(default_factory=list)
    rules: set[Equation] = msgspec.field(default_factory=set)


@cached_on_argument
def outcome_of(op: OpImplementation) -> OpOutcome:
    """Return the outcome of the calls that an op's entry describes; for one that is known to agree, the checked parts."""
    known = code_of(op).known(op, INFER)
    if known is not None:
        found = OpOutcome(op, checked=set(known.checked), unresolved=known.unresolved)
    else:
        found = executed_outcome(op)
        if not found.mismatches and not found.refusals:
            code_of(op).keep(op, INFER, Agreement(sorted(found.checked), found.unresolved))
    op.entry.manifest.unresolved.extend(found.unresolved)
    return found


@cached_on_argument
def executed_outcome(op: OpImplementation) -> OpOutcome:
    """Return the outcome with everything that is executed."""
    return _Caller(op).outcome()


class _Caller:
    """Calls one op."""

    def __init__(self, op: OpImplementation) -> None:
        code = code_of(op)
        self.op, self.entry = code.traced(op), op.entry
        self.executor = code.executor
        self.made: dict[str, Outcome] = {}
        self.found = OpOutcome(op)

    def outcome(self) -> OpOutcome:
        for call in described_calls(self.entry, edges=_has_cases(self.op)):
            made = self._made(call)
            if isinstance(made, Returned) and isinstance(made.value, Object):
                self.found.made.append((call, made.value))
                self._infer(call, made.value)
            else:
                self._failed(call, "__init__", made)
        return self.found

    def _lost(self, call: DescribedCall, reason: str, place: Place | None = None) -> None:
        """Record what is not known of a row's call."""
        if call.origin != "derived":
            self.found.unresolved.append(NotUnderstood(place or self.op.place, reason))

    def _failed(self, call: DescribedCall, method: str, outcome: Outcome) -> None:
        if isinstance(outcome, Raised):
            self.found.refusals.append(Refusal(call, method, outcome))
        elif isinstance(outcome, Unresolved):
            self._lost(call, f"`{method}()` of {self.op.name} cannot be followed: {outcome.reason}", outcome.place)

    def _made(self, call: DescribedCall) -> Outcome:
        arguments = constructor_arguments(self.op, call.bound)
        key = repr(sorted(arguments.items()))
        if key not in self.made:
            self.made[key] = self._constructed(arguments)
        return self.made[key]

    def _constructed(self, arguments: dict[str, object]) -> Outcome:
        """The outcome of the constructor; where it refuses, parameters that the manifest does not declare may be to blame."""
        found = construct(self.executor, self.op, arguments)
        others = undeclared_params(self.op)
        if isinstance(found, Raised) and others:
            return construct(self.executor, self.op, {**arguments, **dict.fromkeys(others, UNDECLARED)})
        return found

    def _infer(self, call: DescribedCall, this: Object) -> None:
        shapes = call.shapes(self.entry)
        arguments = {f"{name}_shape": self._shape(call, name, shape) for name, shape in shapes.items()}
        found = method_outcome(self.executor, self.op, this, INFER, arguments)
        if not isinstance(found, Returned):
            self._failed(call, INFER, found)
        elif isinstance(found.value, dict) or found.value is None:
            self._compare(call, found.value or {})
        else:
            self._lost(call, f"`{INFER}()` of {self.op.name} returns no dictionary")

    def _shape(self, call: DescribedCall, name: str, shape: Shape | None) -> object:
        open_ = shape is None and isinstance(call.bound.values.get(name), Bound)
        return Opaque(f"the shape of `{name}`, which no workload row gives") if open_ else shape

    def _compare(self, call: DescribedCall, returned: Mapping[object, object]) -> None:
        """Compare the shapes that the code returns with the manifest's statements on the outputs."""
        known: dict[str, Shape] = {}
        for output in self.entry.outputs:
            if output.name not in returned:
                self.found.mismatches.append(Mismatch(output.name, call, None))
                continue
            shape = _sizes(returned[output.name])
            if shape is None:
                reason = f"the shape of `{output.name}` that `{INFER}()` of {self.op.name} returns is not known"
                lost = returned[output.name]
                self._lost(call, reason, lost.place if isinstance(lost, Opaque) else None)
            else:
                known[output.name] = shape
        self._hold(call, known)

    def _agrees(self, call: DescribedCall, known: Mapping[str, Shape]) -> bool:
        """Whether the rules alone give all outputs the shapes that the code returns."""
        complete = len(known) == len(self.entry.outputs) and not call.bound.broken
        return complete and all(_shape_in(call.bound, name) == shape for name, shape in known.items())

    def _hold(self, call: DescribedCall, known: Mapping[str, Shape]) -> None:
        """Report the first output of a call whose returned shape is not the declared one."""
        if self._agrees(call, known):
            self.found.checked.update(known)
            self.found.rules.update(item for item, found in call.bound.outcomes if not isinstance(found, _OPEN))
            return
        outputs = {name: shape for name, shape in known.items() if self.entry.input(name) is None}
        given: dict[str, Data] = {f"{name}_shape": list(shape) for name, shape in outputs.items()}
        row = call.bound.row
        bound = bind_row(self.entry, Row(row.index, row.node, {**row.data, **given}))
        self.found.rules.update(item for item, found in bound.outcomes if not isinstance(found, _OPEN))
        self.found.checked.update(known)
        for name, shape in known.items():
            size = _shape_in(call.bound, name)
            if size is not None and size != shape:
                equation = next((item for item, _ in bound.outcomes if item.name == name), None)
                self.found.mismatches.append(Mismatch(name, call, shape, size, equation))
                return
        for equation, outcome in bound.outcomes:
            if isinstance(outcome, Violated) and known:
                read = {use.name for use in equation.expression.names()}
                name = next((name for name in known if name in read), next(iter(known)))
                self.found.mismatches.append(Mismatch(name, call, known[name], None, equation, outcome))
                return


_CASES = re.compile(r"\b(?:if|or|and|max|min)\b|//")


def _has_cases(op: OpImplementation) -> bool:
    """Whether the shapes of an op may depend on sizes otherwise than by sums and products, as its code or its rules are written."""
    method = op.method(INFER)
    texts = [method.file.text(method.function.outer)] if method is not None else []
    return any(_CASES.search(text) for text in (*texts, *(item.text for item in op.entry.shape_rules)))


def taken(op: OpImplementation, method: str, arguments: dict[str, object]) -> dict[str, object] | None:
    """Return the arguments that a method accepts; the signature rules report the others. None if a decorator may accept others."""
    params = op.call_params(method)
    if params is None:
        return {} if op.method(method) is None else None
    if any(item.kind == "kwarg" for item in params):
        return arguments
    return {item.name: arguments[item.name] for item in params if item.name in arguments}


def method_outcome(
    executor: Executor, op: OpImplementation, this: Object, method: str, arguments: dict[str, object]
) -> Outcome:
    """The outcome of a method of an op's object with those of the arguments that it takes."""
    words = taken(op, method, arguments)
    return executor.method(this, method, words) if words is not None else hidden_parameters(method)


def hidden_parameters(method: str) -> Unresolved:
    """The outcome of a method whose decorators may change its parameters."""
    return Unresolved(f"a decorator may change the parameters of `{method}()`")


def construct(executor: Executor, op: OpImplementation, arguments: dict[str, object]) -> Outcome:
    """The outcome of an op's constructor."""
    if op.method("__init__") is not None and op.call_params("__init__") is None:
        return hidden_parameters("__init__")
    return executor.construct(ClassValue(op.ref), arguments)


def constructor_arguments(op: OpImplementation, bound: BoundRow) -> dict[str, object]:
    """Return the arguments of the constructor: the values in a row, and :data:`UNDECLARED` for a parameter that the manifest
    does not declare.
    """
    found: dict[str, object] = {}
    for param in op.call_params("__init__") or ():
        name, declared = param.name, op.entry.param(param.name)
        if declared is not None and name in bound.row.data and admits_dtypes(declared.type):
            found[name] = _dtype(bound.row.data[name])
        elif declared is not None and (name in bound.values or name in bound.row.data):
            found[name] = bound.values.get(name, bound.row.data.get(name))
        elif param.default is None and param.kind in ("posonly", "normal", "kwonly"):
            found[name] = bound.values.get(name, UNDECLARED)
    return found


def undeclared_params(op: OpImplementation) -> list[str]:
    """Return the named parameters of the constructor that the manifest does not declare, without those that only control how an
    op is run.
    """
    params = [item for item in op.call_params("__init__") or () if item.kind not in ("vararg", "kwarg")]
    return [item.name for item in params if op.entry.param(item.name) is None and item.name not in _OWN]


def settles_calls(op: OpImplementation) -> bool:
    """Whether the manifest and the tensors say all of a call: the constructor takes no other parameters, and no dtype."""
    params = op.call_params("__init__")
    sure = params is not None and all(item.by_name and item.name.rpartition("_")[2] != "dtype" for item in params)
    return sure and not undeclared_params(op)


def _shape_in(bound: BoundRow, name: str) -> Shape | None:
    value = bound.values.get(name)
    return value.shape if isinstance(value, Bound) else None


def _dtype(value: object) -> object:
    """A dtype as code gets it."""
    name = value.removeprefix("torch.") if isinstance(value, str) else ""
    return DtypeValue(canonical(name)) if is_dtype(name) else value


def _sizes(value: object) -> Shape | None:
    """A shape, if all of its sizes are known; a fraction is one that no tensor has."""
    if not isinstance(value, tuple | list):
        return None
    sizes = tuple(size for size in value if type(size) in (int, float) and size >= 0)
    return sizes if len(sizes) == len(value) else None
