"""Whether an operator accepts a call: its fake kernel first, then the kernel itself, in a worker."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
)

from opschema_cli.verify.devices import out_of_memory
from opschema_cli.verify.inputs import place
from opschema_cli.verify.kernels import other_kernel_of
from opschema_cli.verify.loading import described
from opschema_cli.verify.model import Call, Ran
from opschema_cli.verify.precision import full_precision
from opschema_cli.verify.protocol import Loaded, Run
from opschema_cli.verify.recipe_calls import recipe_calls
from opschema_cli.verify.reference import drawn_inputs
from opschema_cli.verify.results_file import named
from opschema_cli.verify.runner import Runner
from opschema_cli.verify.worth import weakness

_NO_FAKE = ("no fake impl registered", "data is not allocated yet", "Cannot access data pointer")
"""Errors of an operator without a fake kernel; the latter two of a composite C++ kernel that is run in the place of one."""
_UNKNOWN = (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException)


class Acceptance:
    """Calls one op with the arguments proposed by the search for its cells. A rejected call is not checked any further."""

    def __init__(self, runner: Runner, op: Callable[..., object], name: str) -> None:
        self._runner = runner
        overload = getattr(op, "overload", None)
        self._fakes = overload is not None
        calls = recipe_calls(runner.recipe, name)
        self.loaded = Loaded(calls=calls) if overload is None else _loaded(overload, calls)

    def run(self, request: Run) -> Ran:
        """Call the fake kernel, and the op if the fake accepts the call or there is no fake.

        Raises:
            RefusedError, UnboundError: it cannot be called so.
            Exception: what the op raises.
        """
        cell = request.cell
        started = time.monotonic()
        tensors = place(drawn_inputs(cell, self._runner.recipe), request.device)
        reason = self._refusal_of_fake(request, tensors) if self._fakes else ""
        if reason:
            return Ran(cell=cell.id, status="raised", detail=reason)
        torch.manual_seed(0)
        full_precision()
        with torch.no_grad():
            found = self._runner.outputs(cell, request.device, tensors)
            if request.device != "cpu":
                torch.cuda.synchronize()
            written = {f"input:{item.name}": tensors[item.name] for item in cell.call.inputs if item.mutated}
            weak = weakness(cell.call, {**named(found, cell.call), **written})
        return Ran(cell=cell.id, status="ok", seconds={"call": time.monotonic() - started}, weakness=weak)

    def blames_op(self, error: BaseException) -> bool:
        """Whatever is raised is a refusal."""
        return True

    def _refusal_of_fake(self, request: Run, tensors: dict[str, Tensor]) -> str:
        """The reason why the fake kernel refuses a call; empty if it does not, or says nothing."""
        mode = FakeTensorMode()
        try:
            fakes: dict[str, Tensor] = {name: mode.from_tensor(tensor) for name, tensor in tensors.items()}
            with torch.no_grad(), mode:
                self._runner.outputs(request.cell, request.device, fakes)
        except _UNKNOWN:
            return ""
        except Exception as error:
            if any(text in str(error) for text in _NO_FAKE):
                return ""
            if out_of_memory(error):
                raise
            return f"its fake kernel raises {described(error, self._runner.root)}"
        return ""


def _loaded(overload: OpOverload, calls: dict[str, Call]) -> Loaded:
    other = other_kernel_of(overload, "cuda" if torch.cuda.is_available() else "cpu")
    return Loaded(schema=str(overload._schema), calls=calls, reference=other.description if other is not None else "")
