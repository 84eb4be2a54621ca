"""Runs an op on a large tensor, on one side: one call, and the same computed in calls on parts of the inputs.

A kernel whose index overflows is right for small tensors, which other cells show. So a call on the entire tensor must give what
calls on parts of it give, where an op computes these independently: a small call says whether it does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec
import torch
from torch import Tensor

from opschema_cli.phrases import duration
from opschema_cli.verify.checks import metadata, poisoned
from opschema_cli.verify.compare import dtype_name
from opschema_cli.verify.elements import unravel
from opschema_cli.verify.large.free_memory import memory_limited, spare_memory
from opschema_cli.verify.large.growth import call_at, most_elements, size_in_bytes
from opschema_cli.verify.large.parts import NoPartsError, Parts, find_parts, part_size
from opschema_cli.verify.large.tensors import block_hashes, draw_tiled, is_tiled, tiles
from opschema_cli.verify.loading import RefusedError
from opschema_cli.verify.model import Call, Cell, Finding, Ran, Returned
from opschema_cli.verify.precision import full_precision
from opschema_cli.verify.protocol import Run
from opschema_cli.verify.recipes import Recipe, has

Function: TypeAlias = Callable[[Cell, dict[str, Tensor]], dict[str, Tensor]]
"""Makes the op for a cell and calls it; its outputs by name, and inputs that the call may change as ``input:NAME``."""

_TIME, _CALL = 0.7, 0.4
"""The shares of the time of a cell after which no more parts are compared, and that the call may take."""


class LargeRun:
    """One large cell on one side."""

    def __init__(self, request: Run, side: str, recipe: Recipe, outputs: Function) -> None:
        self._cell, self._device, self._side = request.cell, request.device, side
        self._seconds = request.seconds
        self._deadline = time.monotonic() + _TIME * request.seconds
        self._recipe = recipe
        self._outputs = outputs
        self._mutated = {spec.name for spec in request.cell.call.inputs if spec.mutated}

    def run(self) -> Ran:
        """Run it.

        Raises:
            RefusedError: there is too little memory, or its inputs cannot be drawn.
            Exception: whatever the op raises.
        """
        assert self._cell.growth is not None
        try:
            parts: Parts | str = find_parts(self._cell.growth, self._drawn, self._called)
        except NoPartsError as error:
            parts = str(error)
        with memory_limited(self._spare(parts), self._device):
            self._check_time()
            return self._ran(parts)

    def _ran(self, parts: Parts | str) -> Ran:
        cell, seconds = self._cell, dict[str, float]()
        started = time.monotonic()
        tensors = self._drawn(cell.call)
        drawn = time.monotonic()
        outputs = self._called(cell.call, tensors)
        called = time.monotonic()
        findings = metadata({name: y for name, y in outputs.items() if ":" not in name}, cell.call, self._side)
        findings += self._changed_inputs(tensors)
        hashes = {name: block_hashes(y) for name, y in outputs.items()}
        agrees, detail = False, ""
        if isinstance(parts, str):
            detail = parts
        elif not findings:
            agrees, detail, more = self._compared(parts, tensors, outputs)
            findings += more
        seconds = {"inputs": drawn - started, "call": called - drawn, "check": time.monotonic() - called}
        returned = tuple(
            Returned(name=name, shape=tuple(y.shape), dtype=dtype_name(y.dtype), strides=y.stride())
            for name, y in outputs.items()
        )
        return Ran(
            cell=cell.id,
            status="ok",
            detail=detail,
            outputs=returned,
            findings=tuple(findings),
            seconds=seconds,
            blocks=hashes,
            agrees=agrees,
        )

    def _with(self, call: Call) -> Cell:
        """The cell with another call."""
        return msgspec.structs.replace(self._cell, call=call)

    def _drawn(self, call: Call) -> dict[str, Tensor]:
        cell = self._with(call)
        try:
            return self._recipe.inputs(cell, draw_tiled(cell, self._device))
        except ValueError as error:
            raise RefusedError(str(error)) from error

    def _called(self, call: Call, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        torch.manual_seed(0)
        full_precision()
        with torch.no_grad(), poisoned():
            outputs = self._outputs(self._with(call), tensors)
            if torch.device(self._device).type == "cuda":
                torch.cuda.synchronize()
        return outputs

    def _spare(self, parts: Parts | str) -> int:
        """The bytes that the call may take.

        Raises:
            RefusedError: it needs more, or that is not known.
        """
        call = self._cell.call
        inputs = sum(map(size_in_bytes, call.inputs))
        again = inputs if self._mutated else 0
        outputs = inputs if isinstance(parts, str) else parts.output_bytes(call)
        needed = inputs + again + outputs + max(inputs, outputs) // 4
        spare = spare_memory(self._device)
        if spare is None:
            raise RefusedError("the free memory of this machine is not known")
        if needed > spare:
            raise RefusedError(f"it needs {_size(needed)} of memory, and {_size(spare)} can be spared")
        return spare

    def _check_time(self) -> None:
        """Call the op at a size between, whose time says how long the large call takes.

        Raises:
            RefusedError: it takes too long.
        """
        assert self._cell.growth is not None
        growth, whole = self._cell.growth, most_elements(self._cell.call)
        call = call_at(growth, part_size(growth, self._cell.call))
        if call is None or most_elements(call) >= whole:
            return
        tensors = self._drawn(call)
        started = time.monotonic()
        self._called(call, tensors)
        expected = (time.monotonic() - started) * whole / most_elements(call)
        if expected > _CALL * self._seconds:
            raise RefusedError(
                f"a call takes about {duration(expected)}, too long for a --timeout of {self._seconds:g} s"
            )

    def _changed_inputs(self, tensors: Mapping[str, Tensor]) -> list[Finding]:
        """Inputs that the call changed and may not. Those of a recipe are not compared."""
        if has(self._recipe, "inputs"):
            return []
        message = "`{}`: the call changed elements, and it is not declared as mutated"
        return [
            Finding(check="input-changed", side=self._side, about=name, message=message.format(name))
            for name, (tile, _) in tiles(self._cell).items()
            if name not in self._mutated and not is_tiled(tensors[name], tile)
        ]

    def _compared(
        self, parts: Parts, tensors: dict[str, Tensor], outputs: Mapping[str, Tensor]
    ) -> tuple[bool, str, list[Finding]]:
        """Return whether the outputs were compared with calls on parts, a note about it, and the findings."""
        inputs = self._drawn(self._cell.call) if self._mutated else tensors
        wrong = dict.fromkeys(outputs, (0, -1))
        done, ranges = 0, parts.ranges(self._cell.call)
        for start, stop in ranges:
            if done and time.monotonic() > self._deadline:
                break
            found = self._called(*parts.of(inputs, start, stop))
            for name, (known, first) in wrong.items():
                count, at = parts.difference(name, outputs[name], found[name], start)
                if count:
                    wrong[name] = (known + count, at if not known else min(first, at))
            done += 1
        message = "`{}`: {:,} of {:,} elements differ from calls on parts of the inputs, the first at {}"
        findings = [
            Finding(
                check="large-tensor",
                side=self._side,
                about=name,
                message=message.format(name, count, outputs[name].numel(), list(unravel(at, outputs[name].shape))),
            )
            for name, (count, at) in wrong.items()
            if count
        ]
        share = f"in the time, {done} of {len(ranges)} parts were compared"
        return True, share if done < len(ranges) else "", findings


def _size(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"
