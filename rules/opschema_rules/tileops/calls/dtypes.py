"""Dtypes that a hand-written ``_validate_dtypes`` takes and refuses, called with those that the manifest declares and others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.execution.outcomes import Outcome, Raised, Returned, Unresolved
from opschema_cli.evaluation.execution.values import Object, Opaque, TensorValue
from opschema_cli.lint.diagnostic import NotUnderstood
from opschema_cli.schema.dtypes import parse_dtypes
from opschema_rules.tileops.calls.code import Agreement, code_of
from opschema_rules.tileops.calls.described import DescribedCall
from opschema_rules.tileops.calls.dialect import CALLED_ON, UNDECLARED, called_on_devices
from opschema_rules.tileops.calls.findings import is_explicit
from opschema_rules.tileops.calls.outcomes import construct, constructor_arguments, executed_outcome, method_outcome
from opschema_rules.tileops.model import OpEntry, OpImplementation
from opschema_rules.tileops.param_types import admits_dtypes
from opschema_rules.tileops.verify.dtypes import assignments

VALIDATE = "_validate_dtypes"

_ANY_DTYPE = Opaque("the dtype that a constructor is given")

MAX_COMBINATIONS = 64
"""Maximum number of dtype combinations to try for one op."""

PROBES = ("float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool", "float8_e4m3fn")
"""Dtypes that are tried for an input that does not declare them."""


class RefusedDtypes(msgspec.Struct, frozen=True):
    """Declared dtypes of the inputs that the code refuses."""

    dtypes: Mapping[str, str]
    raised: Raised


class AcceptedDtype(msgspec.Struct, frozen=True):
    """A dtype that an input does not declare and the code takes, though it refuses others of that input."""

    name: str
    dtype: str
    declared: tuple[str, ...]


class DtypeOutcome(msgspec.Struct):
    """The answers of `_validate_dtypes` to dtypes; ``known`` is false if no call of it could be followed."""

    known: bool = False
    refused: list[RefusedDtypes] = msgspec.field(default_factory=list)
    accepted: list[AcceptedDtype] = msgspec.field(default_factory=list)
    unresolved: list[NotUnderstood] = msgspec.field(default_factory=list)


@cached_on_argument
def dtype_outcome(op: OpImplementation) -> DtypeOutcome:
    """The outcome of calling a hand-written `_validate_dtypes`; nothing for a generated one."""
    method = op.method(VALIDATE)
    if method is None or _is_stub(method.function.decorator_names):
        return DtypeOutcome()
    known = code_of(op).known(op, VALIDATE)
    if known is not None:
        found = DtypeOutcome(VALIDATE in known.checked, unresolved=known.unresolved)
    else:
        found = DtypeOutcome()
        made = executed_outcome(op).made
        if made:
            _Prober(op, made[0][0], found).probe()
        if not found.refused and not found.accepted:
            code_of(op).keep(op, VALIDATE, Agreement([VALIDATE] if found.known else [], found.unresolved))
    op.entry.manifest.unresolved.extend(found.unresolved)
    return found


def _is_stub(decorators: list[str]) -> bool:
    return any(name.rpartition(".")[2] == "abstractmethod" for name in decorators)


class _Prober:
    """Calls the method of one object."""

    def __init__(self, op: OpImplementation, call: DescribedCall, found: DtypeOutcome) -> None:
        code = code_of(op)
        self.op, self.entry, self.found = code.traced(op), op.entry, found
        self.executor = code.executor
        shapes = call.shapes(op.entry)
        self.shapes = {name: shape for name, shape in shapes.items() if shape is not None}
        self.passed = list(self.shapes)
        arguments = constructor_arguments(self.op, call.bound)
        dtypes = dict.fromkeys(_dtype_params(self.op), _ANY_DTYPE)
        self.certain = not dtypes and UNDECLARED not in arguments.values()
        self.this = construct(self.executor, op, {**arguments, **dtypes})

    def probe(self) -> None:
        if not isinstance(self.this, Returned):
            return
        complete = all(item.optional or item.name in self.shapes for item in self.entry.inputs)
        declared = declared_dtypes(self.entry, self.passed) if complete else []
        taken: list[Mapping[str, str]] = []
        for dtypes in declared:
            outcome = self._outcome(dtypes)
            if isinstance(outcome, Raised) and is_explicit(self.entry.manifest, outcome):
                self.found.refused.append(RefusedDtypes(dtypes, outcome))
            elif isinstance(outcome, Returned):
                taken.append(dtypes)
            else:
                self._lost(outcome)
                return
        self.found.known = bool(declared)
        if taken and self.certain and not self.found.refused:
            self._beyond(taken)

    def _lost(self, outcome: Unresolved | Raised) -> None:
        why = outcome.reason if isinstance(outcome, Unresolved) else f"it ends with `{outcome.exception}`"
        reason = f"`{VALIDATE}()` of {self.op.name} cannot be followed: {why}"
        self.found.unresolved.append(NotUnderstood(outcome.place or self.op.place, reason))

    def _beyond(self, declared: list[Mapping[str, str]]) -> None:
        """Try other dtypes for one input at a time, and for those that must have its dtype."""
        for name in self.passed:
            allowed = self.entry.dtypes.dtypes.get(name, ())
            if _follows(self.entry, name) or not allowed:
                continue
            outcomes = {dtype: self._with(declared[0], name, dtype) for dtype in PROBES if dtype not in allowed}
            if not any(isinstance(item, Raised) for item in outcomes.values()):
                continue
            for dtype, outcome in outcomes.items():
                if isinstance(outcome, Returned):
                    self.found.accepted.append(AcceptedDtype(name, dtype, tuple(allowed)))

    def _with(self, declared: Mapping[str, str], name: str, dtype: str) -> Outcome:
        same = {item for item in self.passed if name in _references(self.entry, item)}
        return self._outcome({**declared, name: dtype, **dict.fromkeys(same, dtype)})

    def _outcome(self, dtypes: Mapping[str, str]) -> Outcome:
        tensors: dict[str, object] = {
            name: TensorValue(shape, dtypes[name], CALLED_ON) for name, shape in self.shapes.items()
        }
        this = self.this.value if isinstance(self.this, Returned) else None
        if not isinstance(this, Object):
            return Unresolved("the constructor makes no object")
        return called_on_devices(lambda given: method_outcome(self.executor, self.op, this, VALIDATE, given), tensors)


def _dtype_params(op: OpImplementation) -> Iterator[str]:
    """The parameters of the constructor whose values are dtypes."""
    for param in op.call_params("__init__") or ():
        declared = op.entry.param(param.name)
        if (declared is not None and admits_dtypes(declared.type)) or param.name.rpartition("_")[2] == "dtype":
            yield param.name


def declared_dtypes(entry: OpEntry, passed: list[str]) -> list[Mapping[str, str]]:
    """The combinations of the inputs' dtypes that the manifest declares; empty where they are not known, or too many."""
    names = [name for name in passed if not _follows(entry, name)]
    allowed = entry.dtypes.dtypes
    if any(name not in allowed for name in passed):
        return []
    dtypes = dict.fromkeys(dtype for name in names for dtype in allowed[name])
    if entry.get("signature", "dtype_combos") is not None:
        found = (assignments(entry, dtype, passed) for dtype in dtypes)
        lists = [item for item in found if isinstance(item, list)]
        return [item.dtypes for items in lists for item in items]
    if prod(len(allowed[name]) for name in names) > MAX_COMBINATIONS:
        return []
    found_all = [dict(zip(names, chosen, strict=True)) for chosen in product(*(allowed[name] for name in names))]
    return [whole for chosen in found_all if (whole := _settled(entry, passed, chosen)) is not None]


def _settled(entry: OpEntry, passed: list[str], chosen: Mapping[str, str]) -> Mapping[str, str] | None:
    """The dtypes of all inputs, those that follow others included."""
    found = dict(chosen)
    for _ in passed:
        for name in passed:
            known = [found[other] for other in _references(entry, name) if other in found]
            if name not in found and known:
                found[name] = known[0]
    return found if all(name in found for name in passed) else None


def _follows(entry: OpEntry, name: str) -> bool:
    """Whether the dtype of an input is that of another one."""
    return bool(_references(entry, name))


def _references(entry: OpEntry, name: str) -> tuple[str, ...]:
    tokens = parse_dtypes(entry.dtype_keys[name].dtype or "").tokens if name in entry.dtype_keys else ()
    return tuple(token.name for token in tokens if token.kind == "same_as") if len(tokens) == 1 else ()
