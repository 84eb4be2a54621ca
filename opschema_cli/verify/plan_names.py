"""Names of plans: the operator's, or of its kernel for a backend, where it has one for the CPU or a GPU too."""

from __future__ import annotations

BACKEND = "PrivateUse1"
"""The dispatch key of backends outside of torch."""

_ON_BACKEND = f"@{BACKEND}"


def on_backend(op: str) -> str:
    """The name of the plan of an operator's kernel for a backend: ``kit::norm@PrivateUse1``."""
    return op + _ON_BACKEND


def operator_of(op: str) -> str:
    """The operator, or another op, that a plan of this name is of."""
    return op.removesuffix(_ON_BACKEND)
