"""A small repository of three ops for runs from end to end: what each does to its process, a file says."""

from __future__ import annotations

from pathlib import Path

OPS = ("PlusFwdOp", "TimesFwdOp", "MinusFwdOp")

BASE = """
import os, time
import torch

with open(os.environ.get("KIT_LOG", os.devnull), "a") as log:
    log.write(f"{os.path.basename(__file__)} {os.getpid()} {os.environ.get('KIT_SETUP', '')}\\n")


class Op:
    def __call__(self, *args):
        return self.forward(*args)
"""

OP = """
import os, time
import torch
from kit.base import Op


class {name}(Op):
    def __init__(self, amount: float = 2.0):
        self.amount = amount

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if os.path.exists(os.environ.get("KIT_HANGS", "")):
            with open(os.environ["KIT_HANGS"], "a") as file:
                file.write(f"{{os.getpid()}}\\n")
            time.sleep(1000)
        return x {sign} self.amount
"""

ENTRY = """
{name}:
  family: toy
  ref_api: none
  status: implemented
  signature:
    inputs: {{x: {{dtype: "float16 | float32", shape: "[M, N]"}}}}
    outputs: {{y: {{dtype: same_as(x), shape: "[M, N]"}}}}
    params: {{amount: {{type: float, default: 2.0}}}}
  workloads:
    - {{x_shape: [4, 8], amount: {amount}, dtypes: [float32], label: small}}
  roofline: {{flops: "M * N", bytes: "2 * M * N * elem_bytes"}}
  source: {{kernel: kit/base.py, op: kit/{module}.py, test: tests/t.py, bench: tests/b.py}}
"""

RECIPES = """
import operator
import os

from opschema_cli.verify.recipes import Recipe, recipe

os.environ["KIT_SETUP"] = "set up"


class Simple(Recipe):
    def reference(self, tensors, params):
        return self.does(tensors["x"], params.get("amount", 2.0))


@recipe("PlusFwdOp")
class Plus(Simple):
    does = staticmethod(operator.add)


@recipe("TimesFwdOp")
class Times(Simple):
    does = staticmethod(operator.mul)
"""
"""References of all ops but MinusFwdOp."""

AMOUNTS = {"PlusFwdOp": "2.5", "TimesFwdOp": "1.5", "MinusFwdOp": "-.inf"}
SIGNS = {"PlusFwdOp": "+", "TimesFwdOp": "*", "MinusFwdOp": "-"}


def write_kit(root: Path, *, recipes: str = RECIPES) -> Path:
    """The repository; each op in a module of its own, all in one manifest."""
    files = {
        "opschema.toml": '[tileops]\nspec = ["latest"]\n[verify]\nrecipe = "tests/recipes.py"\n',
        "tests/recipes.py": recipes,
        "kit/__init__.py": "",
        "kit/base.py": BASE,
        "kit/manifest/__init__.py": "",
        "kit/manifest/toy.yaml": "".join(
            ENTRY.format(name=name, module=module_of(name), amount=AMOUNTS[name]) for name in OPS
        ),
        **{f"kit/{module_of(name)}.py": OP.format(name=name, sign=SIGNS[name]) for name in OPS},
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def module_of(op: str) -> str:
    return op.removesuffix("FwdOp").lower()
