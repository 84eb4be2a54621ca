"""Builds the small workspace that contains a rule's example, so that the example only shows what matters.

A ``yaml`` fence holds keys of the entry ``ExampleFwdOp``; each replaces that part of a sound entry (below ``signature``
and ``source``, key by key). A ``python`` fence is the op's module, below its imports. A fence with a path after
its language is that entire file.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_compose import compose

MANIFEST_PATH = "kit/manifest/example.yaml"
OP_PATH = "kit/ops/example.py"

_NESTED = ("signature", "source")

ENTRY = """\
ref_api: "none"
family: example
status: implemented
signature:
  inputs:
    x: {dtype: "float16 | float32"}
  outputs:
    y: {dtype: "same_as(x)"}
  params:
    eps: {type: float, default: 0.5}
  shape_rules:
    - "y.shape == x.shape"
workloads:
  - {x_shape: [4, 8], dtypes: [float16], label: "small"}
  - {x_shape: [1024, 1024], dtypes: [float16, float32], label: "large"}
roofline:
  vars:
    N: "product(x.shape)"
  flops: "2 * N"
  bytes: "2 * N * elem_bytes"
source:
  kernel: kit/kernels/example.py
  kernel_map: {example: ExampleKernel}
  op: kit/ops/example.py
  test: tests/test_example.py
  bench: benchmarks/bench_example.py
  bench_manifest_driven: true
"""

_OP_HEAD = """\
import torch

from kit.kernels.example import ExampleKernel
from kit.ops.op_base import Op


"""

OP = """\
class ExampleFwdOp(Op):
    def __init__(self, eps: float = 0.5, *, kernel_map=None):
        self.eps = eps
        self.dispatch_kernel(kernel_map)

    @property
    def default_kernel_map(self):
        return {"example": ExampleKernel}

    def _infer_output_shapes(self, x_shape):
        return {"y": x_shape}

    def _validate_dtypes(self, x):
        pass

    def eval_roofline(self):
        return self.kernel_map["example"].counts()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.kernel_map["example"](x, self.eps)
"""

OP_BASE = """\
from abc import ABC, abstractmethod


class Op(ABC):
    @property
    @abstractmethod
    def default_kernel_map(self):
        raise NotImplementedError

    @abstractmethod
    def _infer_output_shapes(self, **shapes):
        raise NotImplementedError

    @abstractmethod
    def _validate_dtypes(self, *tensors):
        raise NotImplementedError

    @abstractmethod
    def eval_roofline(self):
        raise NotImplementedError

    @abstractmethod
    def forward(self, *args, **kwargs):
        raise NotImplementedError

    def dispatch_kernel(self, kernel_map=None):
        kernels = kernel_map or self.default_kernel_map
        self.kernel_map = {name: kernel() for name, kernel in kernels.items()}

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)
"""

BASE_FILES = {
    "opschema.toml": '[tileops]\nspec = ["latest"]\n',
    "kit/__init__.py": "",
    "kit/ops/__init__.py": "",
    "kit/ops/op_base.py": OP_BASE,
    "kit/kernels/__init__.py": "",
    "kit/kernels/example.py": "class ExampleKernel:\n    def __call__(self, x, eps):\n        return x + eps\n",
    "kit/perf/__init__.py": "",
    "kit/perf/formulas.py": "def example_roofline(op):\n    return 1, 1\n",
    "kit/manifest/__init__.py": "",
    "tests/test_example.py": "from kit.ops.example import ExampleFwdOp\n\n\ndef test_example():\n    assert ExampleFwdOp\n",
    "benchmarks/bench_example.py": (
        "from kit.manifest import load_workloads\n\n"
        'for workload in load_workloads("ExampleFwdOp"):\n    op = make(workload)\n    op.eval_roofline()\n'
    ),
}


def example_files(fences: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The files of an example's workspace, by path."""
    files = {**BASE_FILES, OP_PATH: _OP_HEAD + OP, MANIFEST_PATH: _entry(ENTRY)}
    for info, text in fences:
        language, _, path = info.partition(" ")
        if path:
            files[path.strip()] = text
        elif language == "yaml":
            files[MANIFEST_PATH] = _entry(_merged(text))
        elif language == "python":
            files[OP_PATH] = _OP_HEAD + text
    return files


def _entry(body: str) -> str:
    return "ExampleFwdOp:\n" + textwrap.indent(body, "  ")


def _merged(patch: str) -> str:
    """The sound entry with the parts that ``patch`` names replaced by its own text."""
    parts = _sections(ENTRY)
    for key, value in _sections(patch).items():
        if isinstance(value, dict) and isinstance(parts.get(key), dict):
            parts[key] = {**parts[key], **value}  # type: ignore[dict-item]
        else:
            parts[key] = value
    return "".join(
        value if isinstance(value, str) else f"{key}:\n" + textwrap.indent("".join(value.values()), "  ")
        for key, value in parts.items()
    )


def _sections(text: str) -> dict[str, str | dict[str, str]]:
    root = compose(text).root
    found: dict[str, str | dict[str, str]] = {}
    for key, value in root.pairs() if root is not None else ():
        nested = key.value in _NESTED and value.is_mapping and value.style == "block"
        found[key.value] = _children(text, value) if nested else _slice(text, key, value)
    return found


def _children(text: str, node: Node) -> dict[str, str]:
    return {key.value: _slice(text, key, value) for key, value in node.pairs()}


def _slice(text: str, key: Node, value: Node) -> str:
    """The lines of one key, its own indentation taken off."""
    start = text.rfind("\n", 0, key.start) + 1
    end = text.find("\n", max(value.end, key.end))
    return textwrap.dedent(text[start : end if end >= 0 else len(text)]).rstrip("\n") + "\n"
