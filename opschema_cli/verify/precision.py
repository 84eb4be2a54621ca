"""The precision of float32 arithmetic in this process: no TF32 and no bfloat16, by whichever of torch's two interfaces it was set.

Torch refuses to read the older flags (``allow_tf32``, ``set_float32_matmul_precision``) after the newer ones
(``torch.backends.fp32_precision``, torch 2.9 and later) were set to something else, so both are reset together.
"""

from __future__ import annotations

import torch

_OPERATIONS = {"matrix products": "matmul", "convolutions": "conv", "recurrent networks": "rnn"}
_SETTINGS = [
    ("generic", "all"),
    *((backend, op) for backend in ("cuda", "mkldnn") for op in ("all", *_OPERATIONS.values())),
]
_NEWER = hasattr(torch._C, "_set_fp32_precision_setter")


def full_precision() -> None:
    """Have float32 computed in float32."""
    if _NEWER:
        for backend, op in _SETTINGS:
            torch._C._set_fp32_precision_setter(backend, op, "none")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")


def precisions() -> dict[str, object]:
    """Return the settings of this process by name."""
    if not _NEWER:
        return {
            "the precision of matrix products": torch.get_float32_matmul_precision(),
            "the precision of convolutions": torch.backends.cudnn.allow_tf32,
        }
    return {
        f"the precision of {name}": tuple(torch._C._get_fp32_precision_getter(it, op) for it in ("cuda", "mkldnn"))
        for name, op in _OPERATIONS.items()
    }
