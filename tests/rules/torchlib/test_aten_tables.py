"""Python kernels for operators of torch, registered one by one or in tables."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK

TABLE = """
import torch
from kit.ops import *
from kit.runtime import Registrar

lib = torch.library.Library("aten", "IMPL")
KERNELS = (
    ("add.Tensor", add),
    ("mul.Tensor", mul),
    ("neg", neg),
    {rows}
)
Registrar(KERNELS, lib=lib).run()
"""
OPS = """
def add(x, y, *, alpha=1):
    return run("add", x, y, alpha)

def mul(x, y):
    return run("mul", x, y)

def neg(x):
    return run("neg", x)

def cumsum(x, dim, out=None, dtype=None):
    return run("cumsum", x, dim, out, dtype)

def pad(x, size):
    return run("pad", x, size)

def quantile(x, q, dim=None, keepdim=False, interpolation="linear", out=None):
    return run("quantile", x, q)
"""


def found(rows: str = "", **files: str) -> list[str]:
    tree = {
        "kit/__init__.py": TABLE.format(rows=rows),
        "kit/ops/__init__.py": "from kit.ops.all import *\n",
        "kit/ops/all.py": OPS,
        "kit/runtime.py": "class Registrar:\n    ...\n",
        **{f"kit/{name}.py": text for name, text in files.items()},
    }
    return [f"{item.code} {item.message}" for item in lint_files([PACK], tree).diagnostics]


BAD = """
    ("sub.Tensor", mul),
    ("abs", mul),
    ("div", mul),
    ("abz", neg),
    ("out_of_nowhere", neg),
"""
GOOD = """
    ("cumsum", cumsum),  # out is never passed
    ("quantile", quantile),  # interpolation fits by name, though more follows
    ("no_such_operator", neg, lambda: new_torch()),
    ("sub.Scalar", torch.ops.kit.sub),
    (name, mul),
    *MORE,
"""


def test_each_row_is_a_kernel() -> None:
    bad = found(BAD)
    wanted = [
        "REG509 the kernel of `aten::sub.Tensor` does not take `alpha`, which the schema passes by name",
        "REG509 the kernel of `aten::abs` requires `y`, which the schema does not pass: every call fails",
        "has no operator `aten::div`, so that this kernel is never called; did you mean",
        "has no operator `aten::abz`",
        "has no operator `aten::out_of_nowhere`, so that this kernel is never called",
    ]
    assert len(bad) == len(wanted)
    assert [text for text in wanted if not any(text in item for item in bad)] == []


def test_rows_that_are_right_or_not_known() -> None:
    other = 'import torch\nlib = torch.library.Library("kit", "DEF")\nROWS = (("abz", f), ("mull", f), ("negg", f))\n'
    assert found(GOOD, other=other) == []


def test_a_loop_that_is_followed_counts_once() -> None:
    text = TABLE.format(rows="").replace(
        "Registrar(KERNELS, lib=lib).run()", "for name, f in KERNELS: lib.impl(name, f, 'CPU')"
    )
    linted = found(main=text.replace("mul)", "neg)"))
    assert [item for item in linted if "REG509" in item] == [
        "REG509 the kernel of `aten::mul.Tensor` does not take `other`, which the schema passes: every call fails"
    ]


WRAPPED = """\
import torch

from kit.wrapping import filled


@torch.library.impl("aten::neg", "CUDA")
@filled
def neg(x):
    run("neg", x)


@torch.library.impl("aten::max.dim", "CUDA")
def max_dim(x, dim, keepdim=False):
    found = run("max", x, dim)
    return found if keepdim else (found, found)


@torch.library.impl("aten::abs", "CUDA")
def abs(x):
    return (x, x)
"""


def test_results_of_kernels() -> None:
    """A decorator may return something else; a value that is not a literal is not judged."""
    linted = lint_files([PACK], {"kit/ops.py": WRAPPED}, select=["REG511"])
    assert [item.message for item in linted.diagnostics] == [
        "the kernel returns 2 values, and `aten::abs` returns `Tensor`"
    ]


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("neg", "x", 1),
        ("neg_", "x", 0),
        ("zero_", "x", 0),
        ("cat.out", "tensors, dim=0, *, out", 0),
        ("randperm.generator_out", "n, generator=None, *, out", 0),
        ("max.dim_max", "x, dim, keepdim=False, *, max, max_values", 1),  # two tensors
        ("sort", "x, dim=-1, descending=False", 1),
    ],
)
def test_a_kernel_that_returns_nothing(name: str, params: str, expected: int) -> None:
    text = f'import torch\n\n@torch.library.impl("aten::{name}", "CUDA")\ndef f({params}):\n    run("f")\n'
    found = lint_files([PACK], {"kit/ops.py": text}, select=["REG511"]).diagnostics
    assert ["the kernel returns nothing" in item.message for item in found] == [True] * expected


MADE = """\
import torch

def made(f):
    def kernel(*args):
        return wrap(f(*args))
    return kernel

torch.library.impl("aten::relu", "CUDA")(made(relu))
torch.library.impl("aten::relu_", "CUDA")(made(relu_in_place))
"""


def test_each_function_that_a_function_makes_is_another_one() -> None:
    assert lint_files([PACK], {"kit/ops.py": MADE}, select=["REG511"]).codes() == []
    alone = "def k(x):\n    return wrap(x)\n" + MADE.replace("made(relu)", "k").replace("made(relu_in_place)", "k")
    assert lint_files([PACK], {"kit/ops.py": alone}, select=["REG511"]).codes() == ["REG511"]


def test_one_function_for_an_operator_and_its_in_place_variant() -> None:
    (one,) = found('("neg_", neg),')
    assert one.startswith(
        "REG511 the kernel of `aten::neg`, which does not write its argument, is registered for `aten::neg_`"
    )


def test_a_function_of_two_operators_that_may_be_right() -> None:
    assert found('("abs", absolute), ("abs_", absolute), ("sin_", neg), ("neg_", neg, False),') == []
    returned = 'def both(x):\n    return x\n\nlib.impl("abs", both, "CUDA")\nlib.impl("abs_", both, "CUDA")\n'
    fakes = 'def meta(x):\n    return like(x)\n\nlib.impl("exp", meta, "Meta")\nlib.impl("exp_", meta, "Meta")\n'
    head = 'import torch\n\nlib = torch.library.Library("aten", "IMPL")\n'
    assert found(more=head + returned + fakes) == []
