"""Writes an op schema repository of any size: manifest shards, op modules with inherited bases, kernels, tests, benchmarks.

Two of three ops are data-only subclasses of a base in another module, as in real libraries; the third is self-contained.
Nothing in it is wrong, so a linter has to look at everything and report nothing.
"""

from __future__ import annotations

from pathlib import Path

SHARD = 50
"""Ops in one manifest file, op module, test and benchmark."""

_BASE = '''\
"""The base of generated elementwise ops."""

from abc import ABC, abstractmethod

import torch


class Op(ABC):
    @property
    @abstractmethod
    def default_kernel_map(self):
        raise NotImplementedError

    @abstractmethod
    def forward(self, *args):
        raise NotImplementedError

    def dispatch_kernel(self, kernel_map=None):
        self.kernel_map = kernel_map or self.default_kernel_map


class UnaryOp(Op):
    kernel_cls: type
    _op_name: str

    def __init__(self, scale: float = 1.0, *, kernel_map=None):
        self.scale = scale
        self.dispatch_kernel(kernel_map)

    @property
    def default_kernel_map(self):
        return {self._op_name: self.kernel_cls}

    def _infer_output_shapes(self, x_shape):
        return {"output": tuple(x_shape)}

    def _validate_dtypes(self, x: torch.Tensor) -> None:
        if x.dtype not in (torch.float16, torch.float32):
            raise TypeError(x.dtype)

    def eval_roofline(self):
        return 1, 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.kernel_map[self._op_name](x, self.scale)
'''

_ENTRY = """\
Generated{number}FwdOp:
  family: generated
  ref_api: "none"
  status: implemented

  signature:
    inputs:
      x: {{dtype: "float16 | float32"}}
    outputs:
      output: {{dtype: "same_as(x)"}}
    params:
      scale: {{type: float, default: 1.0}}
    shape_rules:
      - "x.ndim > 0"
      - "output.shape == x.shape"

  workloads:
    - {{x_shape: [{rows}, 4096], dtypes: [float16, float32], label: "wide"}}
    - {{x_shape: [1, {rows}], dtypes: [float16], label: "one-row"}}

  roofline:
    vars:
      N: "product(x.shape)"
    flops: "2 * N"
    bytes: "2 * N * elem_bytes"

  source:
    kernel: genkit/kernels/family_{shard}.py
    kernel_map:
      generated_{number}: Generated{number}Kernel
    op: genkit/ops/family_{shard}.py
    test: tests/test_family_{shard}.py
    bench: benchmarks/bench_family_{shard}.py
    bench_manifest_driven: true

"""

_SUBCLASS = '''
class Generated{number}FwdOp(UnaryOp):
    """The generated op {number}."""

    _op_name = "generated_{number}"
    kernel_cls = Generated{number}Kernel

'''

_WHOLE = '''
class Generated{number}FwdOp(Op):
    """The generated op {number}, self-contained."""

    DEFAULT_SCALE = 1.0

    def __init__(self, scale: float = DEFAULT_SCALE, *, kernel_map=None):
        self.scale = scale
        self.dispatch_kernel(kernel_map)

    @property
    def default_kernel_map(self):
        return {{"generated_{number}": Generated{number}Kernel}}

    def _infer_output_shapes(self, x_shape):
        return {{"output": tuple(x_shape)}}

    def _validate_dtypes(self, x: torch.Tensor) -> None:
        if x.dtype not in (torch.float16, torch.float32):
            raise TypeError(f"x has dtype {{x.dtype}}")

    def eval_roofline(self):
        n = self.elements
        return 2 * n, 2 * n * self.dtype.itemsize

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.elements, self.dtype = x.numel(), x.dtype
        return self.kernel_map["generated_{number}"](x.contiguous(), self.scale).reshape(x.shape)

'''


def generate(folder: Path, ops: int) -> None:
    """Write a repository of ``ops`` operators below ``folder``."""
    for name in ("genkit", "genkit/ops", "genkit/kernels", "genkit/manifest"):
        _write(folder / name / "__init__.py", "")
    _write(folder / "genkit" / "ops" / "_base.py", _BASE)
    for shard, start in enumerate(range(0, ops, SHARD)):
        _family(folder, shard, range(start, min(start + SHARD, ops)))


def _family(folder: Path, shard: int, numbers: range) -> None:
    entries = (_ENTRY.format(number=number, shard=shard, rows=16 + number % 512) for number in numbers)
    _write(folder / "genkit" / "manifest" / f"family_{shard}.yaml", "".join(entries))
    kernels = ", ".join(f"Generated{number}Kernel" for number in numbers)
    head = f"import torch\n\nfrom genkit.kernels.family_{shard} import {kernels}\n\nfrom ._base import Op, UnaryOp\n\n"
    classes = ((_WHOLE if number % 3 == 0 else _SUBCLASS).format(number=number) for number in numbers)
    _write(folder / "genkit" / "ops" / f"family_{shard}.py", head + "".join(classes))
    _write(
        folder / "genkit" / "kernels" / f"family_{shard}.py",
        "".join(
            f"class Generated{number}Kernel:\n    def __call__(self, x, scale):\n        return x * scale\n\n\n"
            for number in numbers
        ),
    )
    _write(
        folder / "tests" / f"test_family_{shard}.py",
        "".join(f"def test_{number}():\n    assert 'Generated{number}FwdOp'\n\n\n" for number in numbers),
    )
    calls = "".join(
        f'    for row in load_workloads("Generated{number}FwdOp"):\n        run(row).eval_roofline()\n'
        for number in numbers
    )
    _write(
        folder / "benchmarks" / f"bench_family_{shard}.py",
        f"from genkit.manifest import load_workloads\n\n\ndef bench(run):\n{calls}",
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
