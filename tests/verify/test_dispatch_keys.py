"""Where kernels run, by their dispatch keys and devices."""

from __future__ import annotations

import pytest

from opschema_cli.verify.dispatch_keys import Where, where


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            "CPU cpu Meta meta default CatchAll CompositeImplicitAutograd Autograd AutogradCPU QuantizedCPU BackendSelect",
            "here",
        ),
        ("CUDA cuda AutogradCUDA SparseCUDA hip QuantizedCUDA", "cuda"),
        ("PrivateUse1 AutogradPrivateUse1 SparsePrivateUse1 privateuseone npu mydevice", "backend"),
        ("XPU xpu MPS mps HPU hpu XLA mtia AutogradXPU SparseCsrXPU PrivateUse2", "elsewhere"),
    ],
)
def test_where_a_kernel_runs(keys: str, expected: Where) -> None:
    assert {key: where(key) for key in keys.split()} == dict.fromkeys(keys.split(), expected)
