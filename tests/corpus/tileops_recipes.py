"""Recipes of the two TileOPs ops without inputs, and what TileLang needs to run them on a CPU."""

import functools
import os

import torch

from opschema_cli.verify.model import Cell
from opschema_cli.verify.recipes import Recipe, recipe

# TileLang's C target takes the place of CUDA, and what is made on `cuda` is made on the CPU.
os.environ["TILELANG_DEFAULT_TARGET"] = "c"
os.environ["TILELANG_EXECUTION_BACKEND"] = "cython"
make_empty = torch.empty


@functools.wraps(make_empty)
def empty(*size, device=None, **options):
    return make_empty(*size, device="cpu" if device == "cuda" else device, **options)


torch.empty = empty
torch.cuda.get_device_capability = lambda device=None: (9, 0)


class OnTheCpu(Recipe):
    def skip(self, cell: Cell) -> str:
        return "TileLang's C target has no bfloat16" if cell.dtype == "bfloat16" else ""


def numbers(*limits: int) -> torch.Tensor:
    return torch.arange(*limits, dtype=torch.get_default_dtype())


@recipe("AlibiFwdOp")
class Alibi(OnTheCpu):
    """-slope[h] * |i - j| with slope[h] = 2 ** (-8 * (h + 1) / num_heads)"""

    def reference(self, tensors: dict[str, torch.Tensor], params: dict[str, int]) -> torch.Tensor:
        places, heads = numbers(params["seq_len"]), numbers(1, params["num_heads"] + 1)
        slopes = 2 ** (-8 * heads / params["num_heads"])
        return -slopes[:, None, None] * (places[:, None] - places).abs()


@recipe("SinusoidalFwdOp")
class Sinusoidal(OnTheCpu):
    """Sine and cosine, in turn, of pos / 10000 ** (2i / d_model)"""

    def reference(self, tensors: dict[str, torch.Tensor], params: dict[str, int]) -> torch.Tensor:
        frequencies = 10000 ** (-numbers(0, params["d_model"], 2) / params["d_model"])
        angles = torch.outer(numbers(params["seq_len"]), frequencies)
        return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)
