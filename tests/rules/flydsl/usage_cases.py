"""Programs that use tensors, shapes, types of constants and counted numbers as torch and Python have them."""

from __future__ import annotations

from tests.rules.flydsl.launch_cases import Case

CONSTANT = "A: fx.Tensor, n: fx.Int32, v: fx.Constexpr[{}]"
TILE = """\
import dataclasses
import enum


@dataclasses.dataclass(frozen=True)
class Tile:
    rows: int = 4


class Mode(enum.Enum):
    A = 1"""


def _told(code: str, *bodies: str) -> list[Case]:
    return [Case(body, (code,)) for body in bodies]


def _constant(kind: str, value: str, *codes: str) -> Case:
    """A kernel with a constant of some type."""
    params = CONSTANT.format(kind)
    helper = f"from typing import Any, Callable, List, Literal, Optional, Tuple\n\n{TILE}"
    call = f"k(A, n, {value})"
    is_class = not any(mark in kind for mark in ("[", "|", "Callable"))  # which 0.1.8 takes, and nothing else
    since = {"refused_since": "0.2.0"} if is_class else {"taken_since": "0.2.0"}
    return Case("x = n\ny = v", codes, params, call=call, helper=helper, **since)


SHAPES = [
    *_told(
        "FLY231",
        "if n < A.shape[0]:\n    x = n",
        "x = A.shape[0] * 2",
        "x = n + A.stride[0]",
        "m = A.shape[0]\nx = m // 2",
        "rows, columns = A.shape\nif n < rows:\n    x = n",
        "for i in range(A.shape[0]):\n    x = n + i",
        "for i in fx.range_constexpr(A.shape[1]):\n    x = n + i",
        "x = int(A.shape[0])",
        "x = len(A.shape)",
        "x = A.numel()",
        "x = n + A.size(0)",
        "x = A.data_ptr()",
        "x = A + 1",
        "x = 2.0 * A",
        "if A > n:\n    x = n",
        "x = n\nx += A",
    ),
    Case("def f(i):\n    return i < A.shape[0]\nx = f(n)", refused=True),
    Case(codes=("FLY231",), launch=".launch(grid=(A.shape[0], 1, 1), block=(64,), stream=stream)"),
    Case(codes=("FLY231",), launch=".launch(grid=(1,), block=(A.shape[1],), stream=stream)"),
    Case(codes=("FLY231",), call="blocks = A.numel() // 64\n    k(A, n)"),
    *(
        Case(body)
        for body in (
            "m = fx.get_scalar(A.shape[0])\nif n < m:\n    x = m + 1",
            "m = A.shape[0]\nm = fx.get_scalar(m)\nx = m * 2",
            "x = A[0, 0] + 1.0\nA[0, 0] = x * 2",
            "layout = fx.make_layout(A.shape, A.stride)\nx = n",
            "x = A.shape\ny = A.dtype",
            "if fx.const_expr(hasattr(A, 'numel')):\n    x = A.numel()",
            "if fx.const_expr(isinstance(A, torch.Tensor)):\n    x = A.numel() + A.shape[0]",
            "if fx.const_expr(False):\n    x = A + 1",
            "def f(A):\n    return A * 2\nx = f(n)",
            "A = n\nx = A * 2",
            "try:\n    x = A.numel()\nexcept AttributeError:\n    x = n",
            "x = [A * 2 for A in (n, n)]",
            "x = '%s' % A.shape[0]",
        )
    ),
    Case(launch=".launch(grid=(fx.get_scalar(A.shape[0]), 1, 1), block=(64,), stream=stream)"),
    Case(host="a = torch.zeros(4, 4)\n    launch(a, a.shape[0] * a.numel())"),
]
"""Tensors and shapes, which are no numbers."""

CONSTANTS = [
    *(
        _constant(kind, value, "FLY230")
        for kind, value in (
            ("list", "(1,)"),
            ("list[int]", "(1,)"),
            ("List[int]", "(1,)"),
            ("dict", "1"),
            ("Optional[int]", "4"),
            ("int | None", "4"),
            ("Literal['a']", "'a'"),
            ("Any", "4"),
            ("torch.dtype", "1"),
            ("type", "fx.Float32"),
            ("fx.Int32", "4"),
            ("Tile", "4"),
            ("Mode", "4"),
        )
    ),
    *(
        _constant(kind, value)
        for kind, value in (
            ("int", "4"),
            ("bool", "True"),
            ("float", "0.5"),
            ("tuple", "(1, 2)"),
            ("tuple[int, ...]", "(1, 2)"),
            ("Tuple[int, int]", "(1, 2)"),
            ("Callable", "lambda x: x"),
        )
    ),
    Case("x = n\ny = v", params="A: fx.Tensor, n: fx.Int32, v: fx.Constexpr", call="k(A, n, 4)"),
]
"""Types of constants."""

COUNTS = [
    *_told(
        "FLY224",
        "for i in fx.range_constexpr(len(XS) / 2):\n    x = n",
        "half = len(XS) / 2\nfor i in fx.range_constexpr(0, half):\n    x = n",
    ),
    Case("for i in fx.range_constexpr(len(XS) // 2):\n    x = n"),
    Case("half = len(XS) / 2\nhalf = int(half)\nfor i in fx.range_constexpr(half):\n    x = n"),
    Case(codes=("FLY218",), call="for i in fx.range_constexpr(2):\n        k(A, i)"),
    Case(codes=("FLY218",), call="for i in fx.range_constexpr(2):\n        k(A, i * 64 + 1)"),
    Case(call="for i in fx.range_constexpr(2):\n        k(A, fx.Int32(i))"),
    Case(call="for i in fx.range_constexpr(2):\n        k(A, n + i)"),
    Case(
        "x = fx.thread_idx.x + n",
        params="A: fx.Tensor, n: fx.Constexpr[int]",
        call="for i in fx.range_constexpr(2):\n        k(A, i)",
    ),
]
"""Numbers that Python counts."""

USAGES = [*SHAPES, *CONSTANTS, *COUNTS]
