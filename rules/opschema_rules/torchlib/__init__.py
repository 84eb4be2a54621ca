"""Operators registered with ``torch.library``: declarations against their fakes, kernels, autograd and callers."""
