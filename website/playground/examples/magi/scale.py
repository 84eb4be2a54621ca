from dataclasses import dataclass

import torch
from magi_compiler.api import magi_register_custom_op


@dataclass
class Config:
    factor: float
    offset: float = 0.0


def scale_meta(x: torch.Tensor, config: Config) -> torch.Tensor:
    return torch.empty_like(x)


@magi_register_custom_op("kit::scale", infer_output_meta_fn=scale_meta)
def scale(x: torch.Tensor, config: Config) -> torch.Tensor:
    return x * config.factor + config.offset
