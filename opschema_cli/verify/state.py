"""Changes that a call leaves in its process, beside its outputs: torch's defaults, modes and random generators."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator

import torch

_STATE: dict[str, Callable[[], object]] = {
    "the default dtype": torch.get_default_dtype,
    "the default device": torch.get_default_device,
    "whether gradients are recorded": torch.is_grad_enabled,
    "inference mode": torch.is_inference_mode_enabled,
    "the number of threads": torch.get_num_threads,
    "whether algorithms are deterministic": torch.are_deterministic_algorithms_enabled,
    "autocast": lambda: (torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")),
    "the precision of matrix products": torch.get_float32_matmul_precision,
    "TF32 of cuDNN": lambda: torch.backends.cudnn.allow_tf32,
    "cudnn.benchmark": lambda: torch.backends.cudnn.benchmark,
    "torch's random numbers": lambda: torch.get_rng_state().tolist(),
    "Python's random numbers": random.getstate,
    "the current folder": os.getcwd,
}


def state() -> dict[str, object]:
    """The state of this process, by name."""
    return {name: read() for name, read in _STATE.items()}


def left_changed(before: dict[str, object], after: dict[str, object]) -> Iterator[tuple[str, str]]:
    """The differences between two states, each with its name."""
    for name, value in before.items():
        if after[name] != value:
            short = name.endswith("numbers")
            yield (
                name,
                f"the call draws {name}" if short else f"the call leaves {name} changed: {value}, now {after[name]}",
            )
