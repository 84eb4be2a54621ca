import torch

lib = torch.library.Library("kit", "DEF")
lib.define("scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)")
