"""Changes that a call leaves in its process, beside its outputs: defaults, modes, random generators, handlers of signals."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator

import torch

from opschema_cli.verify.precision import precisions

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_DENORMAL = 1e-40
"""A float32 denormal. Torch can set whether denormals are flushed, but has no function to read the setting."""

_STATE: dict[str, Callable[[], object]] = {
    "the default dtype": torch.get_default_dtype,
    "the default device": torch.get_default_device,
    "whether gradients are recorded": torch.is_grad_enabled,
    "inference mode": torch.is_inference_mode_enabled,
    "the number of threads": torch.get_num_threads,
    "whether algorithms are deterministic": torch.are_deterministic_algorithms_enabled,
    "the detection of anomalies in gradients": torch.is_anomaly_enabled,
    "autocast": lambda: (torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")),
    "cudnn.benchmark": lambda: torch.backends.cudnn.benchmark,
    "torch's random numbers": lambda: torch.get_rng_state().tolist(),
    "Python's random numbers": random.getstate,
    "the current folder": os.getcwd,
    "whether garbage is collected": gc.isenabled,
    "the handlers of signals": lambda: [signal.getsignal(number) for number in _SIGNALS],
    "whether oneDNN is used": lambda: getattr(torch.backends.mkldnn, "enabled", None),
    "whether denormals are flushed": lambda: not torch.full((), _DENORMAL).mul(1.0).item(),
}


def state() -> dict[str, object]:
    """The state of this process, by name."""
    return {name: read() for name, read in _STATE.items()} | precisions() | _cuda_generators() | _numpy_generator()


def _numpy_generator() -> dict[str, object]:
    """The state of NumPy's global generator; nothing before the module is imported, which a call may be the first to do."""
    read = getattr(sys.modules.get("numpy.random"), "get_state", None)
    if read is None:
        return {}
    parts = (part.tolist() if hasattr(part, "tolist") else part for part in read())
    return {"NumPy's random numbers": list(parts)}


def _cuda_generators() -> dict[str, object]:
    """The seed and offset of the generator of each GPU; nothing before CUDA is used, which a call may be the first to do."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return {}
    states = [torch.cuda.get_rng_state(device).tolist() for device in range(torch.cuda.device_count())]
    return {"CUDA's random numbers": states}


def left_changed(before: dict[str, object], after: dict[str, object]) -> Iterator[tuple[str, str]]:
    """The differences between two states, each with its name."""
    for name, value in before.items():
        if after.get(name, value) != value:
            short = name.endswith("numbers")
            yield (
                name,
                f"the call draws or seeds {name}"
                if short
                else f"the call leaves {name} changed: {value}, now {after[name]}",
            )
