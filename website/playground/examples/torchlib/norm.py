import torch
from torch import Tensor

lib = torch.library.Library("kit", "DEF")
lib.define("scale(Tensor x, float factor, *, bool inplace=False) -> Tensor")


@torch.library.impl(lib, "scale", "CUDA")
def scale(x, factor, inplace):
    return x.mul_(factor) if inplace else x * factor


@torch.library.custom_op("kit::rms_norm", mutates_args=())
def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


@rms_norm.register_fake
def _(x, weight):
    return torch.empty_like(x)
