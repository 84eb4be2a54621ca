"""Writes an op schema repository whose ops all have a carrier, for measuring the migration that drops them.

Ten ops to a module, registered in the package's ``__init__`` through one helper, a validator with an exception for them.
"""

from __future__ import annotations

from pathlib import Path

SHARD = 10
"""Ops in one manifest file and op module."""

_BASE = '''\
"""Code that generated ops share."""

import torch

_REGISTRY = {}


class Op:
    def dispatch_kernel(self, kernel_map=None):
        self.kernel_map = kernel_map or self.default_kernel_map


def _register_carried(op_cls, fake):
    """Register a generated op (no tensor in, one out) for torch.compile."""

    @torch.library.custom_op(f"generated::{op_cls._op_name}", mutates_args=())
    def _wrapped(stand_in: torch.Tensor, rows: int, columns: int, key: int) -> torch.Tensor:
        return _REGISTRY[key]._eager_forward()

    @_wrapped.register_fake
    def _(stand_in: torch.Tensor, rows: int, columns: int, key: int) -> torch.Tensor:
        return fake(stand_in, rows, columns)

    op_cls._wrapped = _wrapped
'''

_OP = '''

class Carried{number}FwdOp(Op):
    """Generated op {number}.

    Args:
        rows: Rows of the output.
        columns: Columns of the output.
        dtype: Dtype of the output.
        kernel_map: Kernels to use instead of the defaults.
    """

    _op_name = "carried_{number}"
    _wrapped = None

    def __init__(self, rows: int, columns: int, dtype: torch.dtype, *, kernel_map=None):
        self.rows = rows
        self.columns = columns
        self.dtype = dtype
        self.dispatch_kernel(kernel_map)
        self.kernel = self.kernel_map[self._op_name](rows, columns, dtype)
        # Lends the traced op a dtype and a device.
        self._stand_in = torch.empty((), dtype=dtype, device="cuda")
        self._key = id(self)
        _REGISTRY[self._key] = self

    @property
    def default_kernel_map(self):
        return {{"carried_{number}": Kernel}}

    def _eager_forward(self) -> torch.Tensor:
        result = self.kernel()
        return result.reshape(self.rows, self.columns)

    def forward(self) -> torch.Tensor:
        wrapped = type(self)._wrapped
        if wrapped is not None:
            return wrapped(
                self._stand_in,
                self.rows,
                self.columns,
                self._key,
            )
        return self._eager_forward()
'''

_ENTRY = """\
Carried{number}FwdOp:
  ref_api: "none"
  family: generated
  status: implemented

  signature:
    inputs:
      stand_in: {{dtype: "float16 | float32", shape: "[]"}}
    outputs:
      output: {{dtype: "same_as(stand_in)", shape: "[rows, columns]"}}
    params:
      rows: {{type: int}}
      columns: {{type: int}}
    shape_rules:
      - "rows > 0"

  workloads:
    - {{stand_in_shape: [], rows: 64, columns: 8, dtypes: [float16, float32], label: "small"}}
    - {{stand_in_shape: [], rows: 4096, columns: 8, dtypes: [float16], label: "large"}}

  roofline: {{flops: "rows * columns", bytes: "rows * columns * elem_bytes"}}

  source:
    kernel: carried/kernel.py
    kernel_map: {{carried_{number}: Kernel}}
    op: carried/ops/ops_{shard}.py
    test: tests/test_carried.py
    bench: benchmarks/bench_carried.py
    bench_manifest_driven: true
"""

_VALIDATOR = '''\
"""Checks shape_rules, workloads, roofline, signature and status of every entry."""

import inspect


def check_entry(name, entry, cls):
    errors = []
    if not entry["signature"]["inputs"]:
        errors.append(f"{name}: signature.inputs must declare at least one tensor")
    names = list(inspect.signature(cls.forward).parameters)[1:]
    if entry["ref_api"] == "none" and not names:
        return errors
    if names != list(entry["signature"]["inputs"]):
        errors.append(f"{name}: forward() takes {names}")
    return errors
'''


def generate_carriers(folder: Path, ops: int) -> None:
    """Write a repository of ``ops`` ops with a carrier each into ``folder``, which must not exist yet."""
    for name in ("carried/manifest", "carried/ops", "scripts", "tests", "benchmarks"):
        (folder / name).mkdir(parents=True)
    shards = [range(first, min(first + SHARD, ops)) for first in range(0, ops, SHARD)]
    calls: list[str] = []
    imports = ["from ._base import _register_carried\n"]
    for shard, numbers in enumerate(shards):
        head = "import torch\n\nfrom carried.kernel import Kernel\n\nfrom ._base import _REGISTRY, Op\n"
        _write(folder, f"carried/ops/ops_{shard}.py", head + "".join(_OP.format(number=number) for number in numbers))
        entries = "\n".join(_ENTRY.format(number=number, shard=shard) for number in numbers)
        _write(folder, f"carried/manifest/shard_{shard}.yaml", entries)
        names = [f"Carried{number}FwdOp" for number in numbers]
        imports.append(f"from .ops_{shard} import {', '.join(names)}\n")
        calls += [f"_register_carried({name}, fake=lambda like, *sizes: like.new_empty(sizes))\n" for name in names]
    _write(folder, "carried/ops/__init__.py", "".join(imports) + "\n" + "".join(calls))
    _write(folder, "carried/ops/_base.py", _BASE)
    _write(folder, "carried/__init__.py", "")
    _write(folder, "carried/kernel.py", "class Kernel:\n    pass\n")
    _write(folder, "scripts/check.py", _VALIDATOR)
    every = "".join(f"    Carried{number}FwdOp\n" for number in range(ops))
    _write(folder, "tests/test_carried.py", f'"""Tests:\n{every}"""\n')
    _write(folder, "benchmarks/bench_carried.py", f'"""Benchmarks, load_workloads and eval_roofline():\n{every}"""\n')


def _write(folder: Path, path: str, text: str) -> None:
    (folder / path).write_text(text, encoding="utf-8")
