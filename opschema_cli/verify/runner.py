"""Runs cells of one op on one side: binds, makes the op once for equal arguments, calls it under the checks, saves the results."""

from __future__ import annotations

import inspect
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from inspect import Signature

import msgspec
import torch
from torch import Tensor

from opschema_cli.verify import methods
from opschema_cli.verify.binding import bind, call_signature, for_call, for_constructor
from opschema_cli.verify.checks import (
    changed,
    differs_at_first,
    digest,
    inference_tensors,
    kept,
    metadata,
    poisoned,
    repeats,
    returned,
    shared_outputs,
    shared_storage,
    snapshot,
    unasked_gradients,
)
from opschema_cli.verify.devices import Function, call_on, second_device
from opschema_cli.verify.guards import Bands, banded, banded_call, guarded_call
from opschema_cli.verify.inputs import dtype_of, place
from opschema_cli.verify.large.running import LargeRun
from opschema_cli.verify.loading import ITS_OWN, RefusedError, described, passes
from opschema_cli.verify.memory import MEASURABLE, memory_kept
from opschema_cli.verify.model import Cell, Finding, Ran
from opschema_cli.verify.operator_checks import OperatorChecks
from opschema_cli.verify.own_gradients import Recorded, recorded
from opschema_cli.verify.params import listed, typed
from opschema_cli.verify.protocol import Load, Run
from opschema_cli.verify.recipes import Recipe, has
from opschema_cli.verify.reference import drawn_inputs
from opschema_cli.verify.refusals import WRONG_DEVICE
from opschema_cli.verify.results_file import INPUT, attached, named, save, structure
from opschema_cli.verify.sanitizers import SANITIZED
from opschema_cli.verify.spread import Spread, measure
from opschema_cli.verify.state import left_changed, state

Op = Callable[..., object]

_OTHER_SEED = 1000
_SPREAD_CALLS = 8


class Runner:
    """One op on one side. ``kind`` is its class, or a function, which is its own op."""

    def __init__(self, kind: Op, load: Load, recipe: Recipe) -> None:
        self._kind = kind
        self._load = load
        self._side = load.side
        self.recipe = self._recipe = recipe
        self.root = load.target.root
        self._constructor = inspect.signature(kind) if isinstance(kind, type) else Signature()
        self._ops: dict[str, Op] = {}
        self._digests: dict[str, dict[str, str]] = {}
        self._operator_checks = OperatorChecks(load.side, self.root, recipe)
        self._weighed = SANITIZED in os.environ  # it holds back what is freed

    def run(self, request: Run) -> Ran:
        """Run one cell.

        Raises:
            RefusedError, UnboundError: it cannot be run here.
            Exception: whatever the op raises.
        """
        cell, device = request.cell, request.device
        if reason := self._recipe.skip(cell):
            raise RefusedError(reason)
        if cell.growth is not None:
            return LargeRun(request, self._side, self._recipe, self._plainly_called(device)).run()
        seconds: dict[str, float] = {}
        with _timed(seconds, "inputs"):
            drawn = drawn_inputs(cell, self._recipe)
        # Memory that was filled counts as initialised.
        with torch.no_grad(), poisoned(fill=os.environ.get(SANITIZED) != "initcheck"):
            with _timed(seconds, "construct"):
                op, made_with = self._made(cell, device)
            call = partial(self._call, op, cell, made_with)
            if cell.wrong:
                return self._refusable(request, call, drawn)
            if request.repeats:
                spread = self._spread(request, call, drawn, request.repeats)
                file = save(spread.tensors(), request.folder, cell.id)
                return Ran(cell=cell.id, status="ok", file=file, findings=tuple(spread.findings(self._side)))
            return self._called(request, call, op, drawn, seconds)

    def outputs(self, cell: Cell, device: str, tensors: dict[str, Tensor]) -> object:
        """Make the op and call it once, on tensors of the device.

        Raises:
            RefusedError, UnboundError: it cannot be called so.
            Exception: whatever the op raises.
        """
        op, made_with = self._made(cell, device)
        return self._call(op, cell, made_with, tensors)

    def _plainly_called(self, device: str) -> Callable[[Cell, dict[str, Tensor]], dict[str, Tensor]]:
        """Return a function that calls the op on existing tensors, without checks. It also returns the inputs that the call may
        change.
        """

        def outputs(cell: Cell, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
            found = named(self.outputs(cell, device, tensors), cell.call)
            return {**found, **_mutated(cell, tensors)}

        return outputs

    def blames_op(self, error: BaseException) -> bool:
        """Whether an exception is the op's: it was made or called, or code of its tree or of the recipes was run."""
        recipes = os.path.join(self._load.target.root, self._load.target.recipe)
        frames = [(frame.filename, frame.name) for frame in traceback.extract_tb(error.__traceback__)]
        mine = any(name in ("_made", "_call") if file == __file__ else file == recipes for file, name in frames)
        return mine or passes(error, self._load.target.root)

    def _spread(self, request: Run, call: Op, drawn: Mapping[str, Tensor], calls: int) -> Spread:
        """The results of many calls."""
        cell = request.cell

        def once() -> dict[str, Tensor]:
            tensors, outputs = call_on(request.device, lambda inputs: named(call(inputs), cell.call), drawn)
            return {name: y.cpu() for name, y in {**outputs, **_mutated(cell, tensors)}.items()}

        return measure(once, calls)

    def _refusable(self, request: Run, call: Op, drawn: Mapping[str, Tensor]) -> Ran:
        """A call that the op should refuse."""
        cell, device = request.cell, request.device
        tensors = place(drawn, device)
        if cell.shape == WRONG_DEVICE:
            if torch.device(device).type == "cpu":
                raise RefusedError("there is no other device than the CPU")
            name = next(iter(tensors))
            tensors[name] = tensors[name].cpu()
        result = call(tensors)
        outputs = named(result, cell.call)
        reports = tuple(returned(name, tensor) for name, tensor in outputs.items())
        file = save(outputs, request.folder, cell.id)
        return Ran(cell=cell.id, status="ok", file=file, outputs=reports, structure=structure(result))

    def _called(self, request: Run, call: Op, op: Op, drawn: Mapping[str, Tensor], seconds: dict[str, float]) -> Ran:
        cell, device = request.cell, request.device

        structures: list[str] = []
        left: dict[str, Finding] = {}

        def named_outputs(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
            earlier = state()
            result = call(tensors)
            for name, message in left_changed(earlier, state()):
                left.setdefault(name, Finding(check="state", side=self._side, about=name, message=message))
            structures.append(structure(result))
            outputs = attached(result, cell.call)
            for found in unasked_gradients(outputs, self._side):
                left.setdefault(f"{found.check} {found.about}", found)
            return {name: tensor.detach() for name, tensor in outputs.items()}

        outputs_of: Function = named_outputs
        with _timed(seconds, "call"):
            # A sanitizer sees more, and sees nothing amiss in a band.
            plain = cell.again or SANITIZED in os.environ
            earliest, findings = ({}, []) if plain else guarded_call(cell.call, device, outputs_of, drawn, self._side)
        overruns = bool(findings)
        if overruns:  # the other calls shall not harm this process either
            outputs_of, drawn = Bands().around(outputs_of), banded(drawn)

        def again() -> dict[str, Tensor]:
            with _timed(seconds, "call"):
                tensors, outputs = call_on(device, outputs_of, drawn)
            return {**outputs, **_mutated(cell, tensors)}

        with _timed(seconds, "call"):
            tensors, outputs = call_on(device, outputs_of, drawn)
        with _timed(seconds, "check"):
            earlier = snapshot(place(drawn, device))
            findings += [f for f in changed(tensors, earlier, cell.call, self._side) if f not in findings]
            findings += left.values()
            findings += shared_storage(outputs, tensors, cell.call, self._side)
            findings += shared_outputs(outputs, cell.call, self._side)
            findings += inference_tensors(outputs, self._side)
            findings += metadata(outputs, cell.call, self._side)
            reports = [returned(name, tensor) for name, tensor in {**outputs, **_mutated(cell, tensors)}.items()]
            first = {name: tensor.clone() for name, tensor in {**outputs, **_mutated(cell, tensors)}.items()}
            findings += self._elsewhere(outputs, device)
            varies = not self._recipe.deterministic
            if not varies:
                findings += self._history(cell, {report.name: report.digest for report in reports})
        with _timed(seconds, "call"):
            spread = self._spread(request, call, drawn, _SPREAD_CALLS).tensors() if varies and not overruns else {}
        with _timed(seconds, "check", without="call"):
            if not varies:
                guarded = partial(banded_call, device, outputs_of, drawn)
                varying = repeats(first, again, self._side, device)
                at_first = not varying and not overruns
                findings += differs_at_first(earliest, first, guarded, self._side) if at_first else varying
            own = Recorded() if overruns else self._recorded(cell, device, call, drawn)
            reports = own.added_to(reports)
            findings += own.findings
        with _timed(seconds, "save"):
            gradients = {} if varies else own.gradients
            file = save({**first, **spread, **gradients, **_indexed(outputs, drawn)}, request.folder, cell.id)
        with _timed(seconds, "check", without="call"):
            if not overruns:
                findings += self._kept(cell, device, outputs_of, outputs, first)
                findings += self._memory(cell, device, outputs_of, outputs, drawn)
                names = self._operator_names(op)
                findings += self._operator_checks.findings(names, cell, partial(call_on, device, outputs_of, drawn))
            findings += methods.findings(op, cell.call, tensors, outputs, self._side, self._load.target.root)
            findings += self._on_second_device(cell, device, drawn, first) if not varies else []
        return Ran(
            cell=cell.id,
            status="ok",
            file=file,
            outputs=tuple(reports),
            structure=structures[0],
            findings=tuple(findings),
            seconds=seconds,
            varies=varies,
        )

    def _made(self, cell: Cell, device: str) -> tuple[Op, dict[str, object]]:
        """Return the op for a cell, and the arguments of its constructor."""
        if not isinstance(self._kind, type):
            return self._kind, {}
        forward = call_signature(self._kind)
        extras = {"dtype": dtype_of(cell.dtype) if hasattr(torch, cell.dtype) else cell.dtype, "device": device}
        made_with = for_constructor(
            self._constructor, forward, params=typed(cell.call.params, cell.call.tuples), extras=extras
        )
        made_with = self._recipe.arguments(cell, made_with)
        key = f"{device} {sorted(made_with.items(), key=lambda item: item[0])!r}"
        if key not in self._ops:
            arguments = bind(self._constructor, made_with, where="the constructor", keep=True)
            torch.manual_seed(0)
            op = self._kind(*arguments.args, **arguments.kwargs)
            if not callable(op):
                raise RefusedError(f"a {self._kind.__name__} cannot be called")
            self._ops[key] = op
        return self._ops[key], made_with

    def _call(self, op: Op, cell: Cell, made_with: Mapping[str, object], tensors: dict[str, Tensor]) -> object:
        params = typed(cell.call.params, cell.call.tuples)
        if has(self._recipe, "call"):
            return self._recipe.call(op, dict(tensors), params)
        signature = call_signature(self._kind) if isinstance(self._kind, type) else inspect.signature(self._kind)
        inputs = listed(tensors, cell.call.lists)
        arguments = for_call(signature, inputs=inputs, params=params, made_with=made_with, omitted=cell.call.omitted)
        return op(*arguments.args, **arguments.kwargs)

    def _elsewhere(self, outputs: Mapping[str, Tensor], device: str) -> list[Finding]:
        kind = torch.device(device).type
        return [
            Finding(
                check="device", side=self._side, about=name, message=f"`{name}` is on {tensor.device}, not on {kind}"
            )
            for name, tensor in outputs.items()
            if tensor.device.type != kind and tensor.dim()  # a number is on the CPU
        ]

    def _history(self, cell: Cell, digests: dict[str, str]) -> list[Finding]:
        """The outputs for the same inputs earlier in this process."""
        if not cell.again:
            self._digests[cell.data_key] = digests
            return []
        earlier = self._digests.get(cell.data_key, digests)
        return [
            Finding(
                check="changes-with-history",
                side=self._side,
                about=name,
                message=f"`{name}`: the same inputs gave other bits before other shapes were run",
            )
            for name in sorted(earlier.keys() | digests.keys())
            if earlier.get(name) != digests.get(name)
        ]

    def _kept(
        self, cell: Cell, device: str, function: Function, outputs: Mapping[str, Tensor], first: Mapping[str, Tensor]
    ) -> list[Finding]:
        """Check that outputs stay unchanged when the op is called with other inputs of the same shapes."""
        if cell.again or (cell.values, cell.layout) != ("normal", "contiguous"):
            return []
        other = drawn_inputs(msgspec.structs.replace(cell, seed=cell.seed + _OTHER_SEED), self._recipe)
        try:
            _, later = call_on(device, function, other)
        except ITS_OWN:  # it may refuse these values
            return []
        return kept(outputs, first, later, cell.call, self._side)

    def _memory(
        self,
        cell: Cell,
        device: str,
        function: Function,
        outputs: Mapping[str, Tensor],
        drawn: Mapping[str, Tensor],
    ) -> list[Finding]:
        """Check once that calls keep no memory, in a cell whose tensors are neither tiny nor large."""
        sizes = [tensor.nbytes for tensor in (*outputs.values(), *drawn.values()) if tensor.nbytes]
        if self._weighed or cell.values != "normal" or not MEASURABLE[0] <= max(sizes, default=0) <= MEASURABLE[1]:
            return []
        self._weighed = True
        return memory_kept(partial(call_on, device, function, drawn), min(sizes), self._side, device)

    def _recorded(self, cell: Cell, device: str, call: Op, drawn: Mapping[str, Tensor]) -> Recorded:
        """The gradients of a call, in one ordinary cell of each dtype."""
        if cell.shape != "row" or cell.again or cell.seed or (cell.values, cell.layout) != ("normal", "contiguous"):
            return Recorded()
        return recorded(device, call, drawn, cell.call, self._side, self.root)

    def _operator_names(self, op: Op) -> set[str]:
        """The operators that the declaration names, and those that the live op does."""
        found = getattr(op, self._load.target.operators_attribute or "__none__", ())
        live = found if isinstance(found, list | tuple | set | frozenset) else ()
        return {*self._load.target.operators, *(name for name in live if isinstance(name, str))}

    def _on_second_device(
        self, cell: Cell, device: str, drawn: Mapping[str, Tensor], first: Mapping[str, Tensor]
    ) -> list[Finding]:
        """Run the same on a GPU other than the current one, with a separate op. Only the current GPU may be the same."""
        other = second_device(device)
        if not other or cell.again or cell.values != "normal":
            return []
        return self._on(other, cell, drawn, first)

    def _on(self, other: str, cell: Cell, drawn: Mapping[str, Tensor], first: Mapping[str, Tensor]) -> list[Finding]:
        op, made_with = self._made(cell, other)
        tensors = place(drawn, other)
        try:
            outputs = named(self._call(op, cell, made_with, tensors), cell.call)
            torch.cuda.synchronize(other)
            found = {**outputs, **_mutated(cell, tensors)}
        except ITS_OWN as error:
            says = described(error, self._load.target.root).partition("\n")[0]
            return [Finding(check="second-device", side=self._side, message=f"on {other}: {says}")]
        wrong = [name for name in first if name not in found or digest(found[name]) != digest(first[name])]
        return [
            Finding(check="second-device", side=self._side, about=name, message=f"`{name}` is another on {other}")
            for name in wrong
        ]


def _mutated(cell: Cell, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    names = [spec.name for spec in cell.call.inputs if spec.mutated and spec.name in tensors]
    return {f"input:{name}": tensors[name] for name in names}


def _indexed(outputs: Mapping[str, Tensor], drawn: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inputs, where outputs may be indices into them."""
    integers = any(not y.is_floating_point() and y.dtype is not torch.bool for y in outputs.values())
    return {INPUT + name: x for name, x in drawn.items()} if integers else {}


@contextmanager
def _timed(seconds: dict[str, float], name: str, *, without: str = "") -> Iterator[None]:
    """Add the duration of a block to ``seconds``, minus the time added to ``without`` meanwhile."""
    started, inner = time.monotonic(), seconds.get(without, 0.0)
    try:
        yield
    finally:
        spent = time.monotonic() - started - (seconds.get(without, 0.0) - inner)
        seconds[name] = seconds.get(name, 0.0) + spent
