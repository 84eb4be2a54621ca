"""Operators registered with ``torch.library``: what each declares against its fakes, kernels, autograd and callers."""
