"""Arguments of operators that Triton kernels write, for REG403."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK

HEAD = """import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import wrap_triton

"""

OP = """

@torch.library.custom_op("kit::f", mutates_args=({mutates}))
def f(x: Tensor, y: Tensor, n: int) -> Tensor:
    out = torch.empty_like(x)
    {launch}
    return out
"""

KERNEL = "@triton.jit\ndef kernel({params}):\n    offs = tl.arange(0, 4)\n    {body}\n"
STORE = "tl.store(o_ptr + offs, tl.load(x_ptr + offs) + tl.load(y_ptr + offs))"
PARAMS = "x_ptr, y_ptr, o_ptr, n"


def found(
    body: str = STORE, launch: str = "kernel[(1,)](x, y, y, n)", mutates: str = "", params: str = PARAMS
) -> list[str]:
    text = HEAD + KERNEL.format(params=params, body=body) + OP.format(launch=launch, mutates=mutates)
    linted = lint_files([PACK], {"kit.py": text}, ["REG403"])
    return [f"{linted.text(item.place)}: {item.message.split()[0]}" for item in linted.diagnostics]


@pytest.mark.parametrize(
    "launch",
    [
        "kernel[(1,)](x, y, y, n)",
        "kernel[(1,)](x, x, o_ptr=y, n=n)",
        "wrap_triton(kernel)[(1,)](x, y, y, n)",
        "kernel[lambda meta: (1,)](x, x, y, n, num_warps=4)",
    ],
)
def test_what_is_stored_to(launch: str) -> None:
    assert found(launch=launch) == ["y: `y`"]


def test_a_view_is_written_too() -> None:
    assert found(launch="kernel[(1,)](x, y, y.view(-1), n)") == ["y.view(-1): `y`"]


@pytest.mark.parametrize(
    "body",
    [
        "at = o_ptr + offs\n    tl.store(at, 1)",
        "o_ptr += tl.program_id(0) * n\n    tl.store(o_ptr + offs, 1)",
        "o_ptr = o_ptr + n\n    for i in range(n):\n        tl.store(o_ptr + i, 1)",
        "old = tl.atomic_add(o_ptr + offs, 1)",
    ],
)
def test_pointers_that_begin_at_a_parameter(body: str) -> None:
    assert found(body) == ["y: `y`"]


@pytest.mark.parametrize(
    "body",
    [
        "if n > 1:\n        tl.store(o_ptr + offs, 1)",
        "if n > 1:\n        return\n    tl.store(o_ptr + offs, 1)",
        "at = o_ptr if n else x_ptr\n    tl.store(at + offs, 1)",
        "at = o_ptr\n    at = x_ptr\n    tl.store(at + offs, 1)",
        "o_ptr = tl.load(o_ptr).to(tl.pointer_type(tl.float32))\n    tl.store(o_ptr + offs, 1)",
        "tl.load(o_ptr + offs)",
        "store(o_ptr + offs, 1)",
        "helper(o_ptr, offs)",
    ],
)
def test_stores_that_may_not_run_or_go_elsewhere(body: str) -> None:
    assert found(body) == []


@pytest.mark.parametrize(
    "launch",
    [
        "kernel[(1,)](x, y, out, n)",
        "y = y.clone()\n    kernel[(1,)](x, y, y, n)",
        "kernel[(1,)](*given(x, y))",
        "others[0](x, y, y, n)",
        "kernels.kernel[(1,)](x, y, y, n)",
        "kernel[(1,)](x, y, y.contiguous(), n)",
    ],
)
def test_launches_that_write_no_argument(launch: str) -> None:
    assert found(launch=launch) == []


def test_a_declared_write() -> None:
    assert found(mutates='"y",') == []


def test_other_functions_are_no_kernels() -> None:
    text = (
        (HEAD + KERNEL + OP)
        .replace("@triton.jit", "@numba.jit")
        .format(params=PARAMS, body=STORE, mutates="", launch="kernel[1](x, y, y, n)")
    )
    assert lint_files([PACK], {"kit.py": text}, ["REG403"]).codes() == []
