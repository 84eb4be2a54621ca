"""FLY228 and FLY207: calls of FlyDSL's own functions and members of its enumerations, where its sources are in the tree."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK

OWN = {
    "opschema.toml": "",
    "kit/__init__.py": "",
    "python/flydsl/__init__.py": "",
    "python/flydsl/compiler/__init__.py": "from .jit_argument import from_dlpack\n",
    "python/flydsl/compiler/jit_argument.py": """\
class Base:
    def mark_layout_dynamic(self, leading_dim=None, divisibility=1): ...

    @described
    def mark_shape_dynamic(self, dims): ...


class TensorAdaptor(Base):
    def __init__(self, tensor): ...


def from_dlpack(tensor) -> TensorAdaptor: ...
""",
    "python/flydsl/expr/__init__.py": """\
from .typing import *
from .gpu import *
from .derived import *
from .arith import *
from . import gpu
from .gpu import shuffle as swap

_BACKENDS = {"rocdl": ".rocdl"}


def __getattr__(name): ...
""",
    "python/flydsl/expr/typing.py": """\
import enum
from enum import Enum, IntEnum

from .._mlir.dialects.fly import *


class ReductionOp(Enum):
    ADD = "add"
    MAX = "max"

    @property
    def short(self): ...


class Scope(IntEnum):
    WAVE = 0


class Open(Enum, metaclass=Anything):
    A = 1


@register
class Changed(Enum):
    A = 1


class Deep(ReductionOp):
    pass
""",
    "python/flydsl/expr/gpu.py": """\
def shuffle(value, offset, width): ...


@traced
def rewritten(value, offset): ...


def barrier(*args, **options): ...


def copy(atom, source, target, *, pred=None): ...


def twice(value): ...
""",
    "python/flydsl/expr/derived.py": """\
from .meta import dsl_loc_tracing


@dsl_loc_tracing
def make_tiled_copy(copy_atom, tiled_mma): ...


def twice(value, other): ...
""",
    "python/flydsl/expr/arith.py": """\
from .._mlir.dialects.arith import *

__all__ = ["constant", "copy"]


def constant(value, *, type=None): ...
""",
    "python/flydsl/expr/rocdl/__init__.py": "from ..._mlir.dialects.rocdl import *\nfrom .universal import *\n",
    "python/flydsl/expr/rocdl/universal.py": "def make_buffer(tensor, *, bytes=None): ...\n",
}


def found(text: str, code: str) -> list[str]:
    files = {**OWN, KERNELS_PATH: HEAD + text}
    return [item.message for item in lint_files([PACK], files, [code]).diagnostics]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("fx.gpu.shuffle(1, 2)", "`shuffle(value, offset, width)` in this FlyDSL needs `width`"),
        ("fx.shuffle(1, width=2)", "`shuffle(value, offset, width)` in this FlyDSL needs `offset`"),
        ("fx.swap(1, 2)", "`shuffle(value, offset, width)` in this FlyDSL needs `width`"),
        ("fx.make_tiled_copy(1)", "`make_tiled_copy(copy_atom, tiled_mma)` in this FlyDSL needs `tiled_mma`"),
        (
            "fx.make_tiled_copy(1, 2, 3, 4)",
            "`make_tiled_copy(copy_atom, tiled_mma)` in this FlyDSL takes at most 2 positional arguments",
        ),
        (
            "fx.rocdl.make_buffer(1, byte=4)",
            "`make_buffer(tensor, bytes)` in this FlyDSL has no parameter `byte`; did you mean `bytes`?",
        ),
        ("fx.twice(1)", "`twice(value, other)` in this FlyDSL needs `other`"),
        (
            "flyc.from_dlpack(1).mark_layout_dynamic(leading=0)",
            "`mark_layout_dynamic(leading_dim, divisibility)` in this FlyDSL has no parameter `leading`; "
            "did you mean `leading_dim`?",
        ),
        (
            "t = flyc.from_dlpack(1)\nt.mark_layout_dynamic(0, 1, 2)",
            "`mark_layout_dynamic(leading_dim, divisibility)` in this FlyDSL takes at most 2 positional arguments",
        ),
    ],
)
def test_calls_that_do_not_fit(call: str, message: str) -> None:
    assert found(f"{call}\n", "FLY228") == [message]


@pytest.mark.parametrize(
    "call",
    [
        "fx.gpu.shuffle(1, 2, 3)",
        "fx.gpu.shuffle(*[1, 2, 3])",
        "fx.gpu.shuffle(1, **{'offset': 1, 'width': 2})",
        "fx.gpu.rewritten(1)",
        "fx.barrier(1, 2, x=3)",
        "fx.gpu.copy(1, 2, 3)",
        "fx.copy(1)",  # `arith` lists one, which may be of the compiled module
        "fx.constant(1)",
        "fx.rocdl.make_buffer(1)",
        "fx.rocdl.mfma()",
        "fx.rocdl.universal",
        "fx.twice(1, 2)",
        "swap = fx.swap\nswap(1, 2, 3)",
        "flyc.from_dlpack(1).mark_layout_dynamic(0, divisibility=4).mark_shape_dynamic(1, 2, 3)",
        "flyc.from_dlpack(1).mark_static(dims=[1])",
        "t = open(1)\nt.mark_layout_dynamic(leading=0)",
    ],
)
def test_calls_that_fit_or_are_not_known(call: str) -> None:
    assert found(f"{call}\n", "FLY228") == []


@pytest.mark.parametrize("name", ["fx.ReductionOp.SUM", "fx.Scope.BLOCK", "fx.typing.ReductionOp.SUM"])
def test_members_that_an_enumeration_does_not_have(name: str) -> None:
    (message,) = found(f"x = {name}\n", "FLY207")
    assert message.startswith("this FlyDSL has no `flydsl.expr.")
    assert message.endswith(f"{'.'.join(name.split('.')[-2:])}`")


@pytest.mark.parametrize(
    "name",
    [
        "fx.ReductionOp.ADD",
        "fx.ReductionOp.ADD.value.upper",
        "fx.ReductionOp.MAX.short",
        "fx.ReductionOp.__members__",
        "fx.ReductionOp.mro",
        "fx.Scope.WAVE.bit_length",
        "fx.Scope.from_bytes",
        "fx.Open.B",
        "fx.Changed.B",
        "fx.Deep.SUM",
        "fx.Unknown.SUM",
    ],
)
def test_members_that_are_there_or_not_known(name: str) -> None:
    assert found(f"x = {name}\n", "FLY207") == []


GUARDED = """\
def wrap(x):
    if hasattr(x, "{}"):
        return x
    return flyc.from_tensor(x)
"""


@pytest.mark.parametrize(("method", "count"), [("mark_layout_dynamic", 1), ("mark_static", 0), ("from_tensor", 0)])
def test_a_method_of_every_release_asks_for_no_version(method: str, count: int) -> None:
    assert found(GUARDED.format(method), "FLY207") == ["this FlyDSL has no `flydsl.compiler.from_tensor`"] * count
