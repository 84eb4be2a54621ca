"""Calls of ops without `torch.compile`: `forward()` with the functions of their operators, and then `eval_roofline()`.

Kernels are not followed: what one returns is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.execution.dialect import Call
from opschema_cli.evaluation.execution.outcomes import Outcome, Raised, Returned
from opschema_cli.evaluation.execution.values import Closure, Object, TensorValue
from opschema_cli.regular_files import content_digest
from opschema_cli.source.python import PythonFile
from opschema_rules.tileops.calls.code import Agreement, Code, code_of
from opschema_rules.tileops.calls.described import DescribedCall
from opschema_rules.tileops.calls.dialect import CALLED_ON, called_on_devices
from opschema_rules.tileops.calls.dtypes import declared_dtypes
from opschema_rules.tileops.calls.fakes import Compiled, Makers
from opschema_rules.tileops.calls.findings import is_error, is_explicit
from opschema_rules.tileops.calls.outcomes import executed_outcome, settles_calls
from opschema_rules.tileops.formula_values import Count, counts
from opschema_rules.tileops.formulas import METHOD, runner
from opschema_rules.tileops.model import OpImplementation
from opschema_rules.tileops.verify.dtypes import assignments

MAX_CALLS = 2
"""Maximum number of calls of rows with different params to follow for one op."""
MAX_DTYPES = 6
"""Maximum number of dtype combinations to try for one op."""
MAX_STEPS = 2000
"""Maximum number of steps of one call: most take a tenth of that, and longer ones mostly end in too many paths."""
MAX_PATHS = 8
"""Maximum number of paths of one call: more would mostly take too many steps."""

_OPERATOR = "calls "
Then: TypeAlias = Callable[[Call, Object], object]
_NOTHING: Then = lambda call, this: ()  # noqa: E731 a value of that type


class Followed(msgspec.Struct, frozen=True, eq=False):
    """A call with the dtypes of its tensors, and its outcome; ``method`` is the one in which it ended."""

    call: DescribedCall
    dtypes: Mapping[str, str]
    method: str
    outcome: Outcome


class OtherCount(msgspec.Struct, frozen=True, eq=False):
    """A count that ``eval_roofline()`` returns after a call, and the manifest's."""

    followed: Followed
    declared: Count
    returned: int | float


class EagerOutcome(msgspec.Struct):
    """Outcome of an op's calls: ``broken`` ones end with an error of Python's, ``refused`` ones with one of the code's own;
    ``dtypes`` are calls whose dtypes the code refuses, though it takes others.
    """

    op: OpImplementation
    broken: list[Followed] = msgspec.field(default_factory=list)
    refused: list[Followed] = msgspec.field(default_factory=list)
    dtypes: list[Followed] = msgspec.field(default_factory=list)
    counts: list[OtherCount] = msgspec.field(default_factory=list)
    operators: set[str] = msgspec.field(default_factory=set)
    """Operators that ``forward()`` calls, by their names."""
    checked: set[str] = msgspec.field(default_factory=set)

    @property
    def agrees(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.broken or self.refused or self.dtypes or self.counts)


def eager_outcome(op: OpImplementation, compiled: Callable[[Code], Compiled], makers: Makers) -> EagerOutcome:
    """Return the outcome of an op; for one that is known to agree, the checked parts."""
    code = code_of(op)
    method = f"eager {content_digest(msgspec.msgpack.encode(makers.of(op)))}"
    known = code.known(op, method)
    if known is not None:
        called = {item.removeprefix(_OPERATOR) for item in known.checked if item.startswith(_OPERATOR)}
        return EagerOutcome(op, operators=called, checked=set(known.checked))
    found = EagerOutcome(op)
    _Follower(op, compiled(code), found).follow()
    if found.agrees:
        operators = [_OPERATOR + name for name in sorted(found.operators)]
        code.keep(op, method, Agreement([*sorted(found.checked), *operators], []))
    return found


_CHECKS_DTYPES = re.compile(
    r"\.dtype\s+(?:not\s+)?in\b|\.dtype\s*[!=]=\s*torch\.|def _?(?!validate_dtypes\()(?:check|require|validate)\w*dtype\w*\("
)


@cached_on_argument
def _dtype_checks(file: PythonFile) -> list[int]:
    """The places in a file where code may refuse dtypes."""
    return [match.start() for match in _CHECKS_DTYPES.finditer(file.source.text)]


def _may_check_dtypes(op: OpImplementation) -> bool:
    """Whether `forward()` may refuse dtypes, by the text of the op's file and of the classes above its own."""
    others = [ref for ref in op.program.lineage(op.ref) if ref.file.path != op.ref.file.path]
    spans = [(ref.cls.outer, at) for ref in others for at in _dtype_checks(ref.file)]
    return bool(_dtype_checks(op.ref.file)) or any(span.start <= at < span.end for span, at in spans)


class _Follower:
    """Follows the calls of one op."""

    def __init__(self, op: OpImplementation, compiled: Compiled, found: EagerOutcome) -> None:
        self.op, self.entry, self.compiled, self.found = compiled.code.traced(op), op.entry, compiled, found
        self.method = ""
        self.known: dict[tuple[tuple[str, str], ...], Followed] = {}
        written = runner(op.entry).written
        self.roofline = compiled.executor.evaluator.bodies.function(written) if written is not None else None

    def follow(self) -> None:
        made = executed_outcome(self.found.op).made
        rows = [item for item in made if item[0].origin == "row"][: MAX_CALLS if self.roofline is not None else 1]
        for call, this in rows or made[:1]:
            for dtypes in self._of_row(call):
                followed = self._run(call, this, dtypes, self._evaluate)
                passed = call.shapes(self.entry)
                self.known[tuple((name, dtype) for name, dtype in dtypes.items() if passed.get(name) is not None)] = (
                    followed
                )
                if not self._judge(call, followed):
                    return
        if settles_calls(self.op) and _may_check_dtypes(self.op):
            for call, this in (rows or made)[:1]:
                self._try_dtypes(call, this)

    def _of_row(self, call: DescribedCall) -> Iterator[Mapping[str, str]]:
        """Yield the dtypes of the tensors that a row describes, if its first dtype determines them all."""
        passed = [name for name, shape in call.shapes(self.entry).items() if shape is not None]
        found = assignments(self.entry, call.bound.row.dtypes[0], passed) if call.bound.row.dtypes else ""
        if isinstance(found, list) and len(found) == 1:
            yield found[0].dtypes

    def _run(self, call: DescribedCall, this: Object, dtypes: Mapping[str, str], then: Then = _NOTHING) -> Followed:
        shapes = {name: shape for name, shape in call.shapes(self.entry).items() if shape is not None}
        tensors: dict[str, object] = {
            name: TensorValue(shape, dtypes.get(name), CALLED_ON) for name, shape in shapes.items()
        }

        def run(given: dict[str, object]) -> Outcome:
            self.method = "forward"
            with self.compiled.executor.at_most(MAX_STEPS, MAX_PATHS):
                return self.compiled.run(self.op, this, given, then)

        outcome = called_on_devices(run, tensors)
        return Followed(call, dtypes, self.method, outcome)

    def _evaluate(self, call: Call, this: Object) -> object:
        """The roofline of an object whose `forward()` has run; nothing where it is generated."""
        if self.roofline is None:
            return ()
        self.method = METHOD
        return call.machine.call(Closure(self.roofline), (this,), {})

    def _judge(self, call: DescribedCall, followed: Followed) -> bool:
        """Record what is wrong with a call. Return whether other calls may show more."""
        outcome = followed.outcome
        if isinstance(outcome, Raised) and is_explicit(self.entry.manifest, outcome):
            # What `eval_roofline()` refuses it may lack because `forward()` could not be followed.
            is_certain = call.origin == "row" and followed.method == "forward" and settles_calls(self.op)
            self.found.refused += [followed] if is_certain else []
            return False
        if isinstance(outcome, Raised):
            self.found.broken += [followed] if is_error(self.entry.manifest, call, outcome) else []
            return False
        if isinstance(outcome, Returned):
            self.found.checked.add("forward")
            self.found.operators |= self.compiled.fakes.called
            self._compare(followed, outcome.value)
            return not self.found.counts
        return False

    def _compare(self, followed: Followed, value: object) -> None:
        """Compare the return value of the roofline method with the formulas."""
        row = followed.call.bound
        if followed.call.origin != "row" or not isinstance(value, tuple) or len(value) != 2:
            return
        first = next((item.name for item in self.entry.inputs), None)
        if first is not None and followed.dtypes.get(first) != row.row.dtypes[0]:
            return  # the size of an element is that of the first input
        declared = counts(self.entry, row)
        for name, returned in zip(("flops", "bytes"), value, strict=True):
            stated = declared.get(name)
            if stated is not None and type(returned) in (int, float):
                self.found.checked.add(name)
                if abs(returned - stated.value) >= 1:
                    self.found.counts.append(OtherCount(followed, stated, returned))

    def _try_dtypes(self, call: DescribedCall, this: Object) -> None:
        """Try all combinations of dtypes that the manifest declares."""
        passed = [name for name, shape in call.shapes(self.entry).items() if shape is not None]
        complete = all(item.optional or item.name in passed for item in self.entry.inputs)
        tried = declared_dtypes(self.entry, passed) if complete else []
        if not 1 < len(tried) <= MAX_DTYPES:
            return
        followed = [self.known.get(tuple(dtypes.items())) or self._run(call, this, dtypes) for dtypes in tried]
        taken_ = [item for item in followed if isinstance(item.outcome, Returned)]
        refused = [
            item
            for item in followed
            if isinstance(item.outcome, Raised)
            and item.method == "forward"
            and is_explicit(self.entry.manifest, item.outcome)
        ]
        if taken_ and len(taken_) + len(refused) == len(followed):
            self.found.dtypes += refused
