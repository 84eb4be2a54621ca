"""Context managers: entering and leaving them."""

from __future__ import annotations

from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.signals import Thrown
from opschema_cli.evaluation.execution.values import Object, Opaque

PASSING = frozenset(
    {"torch.no_grad", "torch.inference_mode", "torch.enable_grad", "torch.set_grad_enabled", "torch.cuda.device"}
    | {"torch.cuda.stream", "torch.profiler.record_function", "torch.autograd.profiler.record_function"}
    | {"warnings.catch_warnings", "contextlib.nullcontext", "torch.amp.autocast", "torch.autocast"}
    | {"torch.device", "torch.npu.device", "torch.random.fork_rng", "torch.cuda.nvtx.range", "open", "threading.Lock"}
)
"""External context managers that let exceptions propagate."""


def entered(machine: Machine, context: object) -> object:
    """Return the value that ``with context as name`` binds."""
    if isinstance(context, Object):
        method = machine.special(context, "__enter__")
        if method is not None:
            return machine.call(method, (), {})
    return context if isinstance(context, Opaque) else machine.opaque("the value of a context manager")


def left(machine: Machine, context: object, thrown: Thrown | None) -> bool:
    """Leave a context, possibly by an exception. Return whether the exception is suppressed."""
    if isinstance(context, Object):
        method = machine.special(context, "__exit__")
        if method is not None:
            error = thrown.error if thrown is not None else None
            kind = machine.opaque("the class of an exception") if thrown is not None else None
            found = machine.call(method, (kind, error, kind), {})
            return thrown is not None and machine.truth(found)
    if thrown is not None and not any(f"`{name}`" in getattr(context, "reason", "") for name in PASSING):
        machine.stop("a context manager may swallow an exception")
    return False
