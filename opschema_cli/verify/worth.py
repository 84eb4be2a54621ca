"""Whether the results of a call are a useful test. A search prefers such calls, and cells report if it found none."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from opschema_cli.verify.compare import bits, is_nan
from opschema_cli.verify.model import Call, Weakness

EXPLANATIONS: dict[Weakness, str] = {
    "constant": "all elements of each output are equal",
    "undefined": "one of its outputs is undefined",
    "not finite": "no element of its outputs is a finite number",
    "empty": "its outputs have no elements",
    "nothing": "it returns and writes nothing",
}


def weakness(call: Call, outputs: Mapping[str, Tensor]) -> Weakness | None:
    """Why the results of a call test little; None if they test enough. ``outputs`` include written inputs. A single number
    computed from several elements, such as a sum, is not "constant".
    """
    tensors = [tensor for tensor in outputs.values() if tensor.numel()]
    if not outputs:
        return "nothing"
    if not tensors:
        return "empty"
    if not any(map(_finite, tensors)):
        return "not finite"
    if any(output.optional and output.name not in outputs for output in call.outputs):
        return "undefined"
    single = all(math.prod(item.shape) <= 1 for item in call.inputs)
    several = single or any(tensor.numel() > 1 for tensor in tensors)
    return "constant" if several and all(map(_constant, tensors)) else None


def _finite(tensor: Tensor) -> bool:
    if not tensor.is_floating_point():
        return True
    if tensor.element_size() == 1:
        return not bool(is_nan(tensor).all())
    return bool(tensor.isfinite().any())


def _constant(tensor: Tensor) -> bool:
    flat = bits(tensor.contiguous()).reshape(-1)
    return bool((flat == flat[0]).all())
