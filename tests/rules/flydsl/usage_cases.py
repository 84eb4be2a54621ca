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
    Case(codes=("FLY231",), call="B = torch.empty_like(A)\n    k(A, n)"),
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
    Case(host="a = torch.zeros(4, 4)\n    launch(torch.empty_like(a), a.shape[0] * a.numel())"),
]
"""Tensors and shapes, which are no numbers."""

ASKING = """\
def is_host(t):
    return isinstance(t, torch.Tensor)


class util:
    @staticmethod
    def len(shape):
        return 4"""

GUARDED = [
    *(
        Case(body, helper=ASKING)
        for body in (
            "if fx.const_expr(is_host(A)):\n    x = A.numel()",
            "host = is_host(A)\nif fx.const_expr(host):\n    x = A.numel()",
            "x = A.numel() if is_host(A) else n",
            "x = is_host(A) and A.numel() > 3",
            "if fx.const_expr(not is_host(A)):\n    x = n\nelse:\n    x = A.numel()",
            "if fx.const_expr(not is_host(A)):\n    return\nx = A.numel()",
            "def f():\n    return A.numel()\nif fx.const_expr(is_host(A)):\n    x = f()",
            "def f():\n    return A.numel()\nif fx.const_expr(False):\n    x = f()\nx = n",
            "x = util.len(A.shape)",
            "len = util.len\nx = len(A.shape)",
        )
    ),
    *(
        Case(body, ("FLY231",), helper=ASKING)
        for body in (
            "if n > 4:\n    x = A.numel()",
            "if fx.const_expr(XS):\n    x = A.numel()",
            "y = is_host(A)\nx = A.numel()",
            "def f():\n    return A.numel()\nif fx.const_expr(is_host(A)):\n    x = f()\nx = f()",
            "x = A.numel() if fx.Int32(n) > 4 else n",
        )
    ),
    Case("def f():\n    return A.numel()\ndef g():\n    return f()\nx = n"),
    Case("def f():\n    return A.numel()\ndef g():\n    return f()\nx = g()", ("FLY231",)),
    Case("def f():\n    return A.numel()\nif fx.const_expr(len(XS) > 9):\n    x = f()\nx = n"),
    Case("x = A.numel()", helper="if not torch:\n    fx.Tensor.numel = int", refused=True),
]
"""Uses of tensors that a test by a call leaves out, and others."""

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

_UNCHECKED = """\
def narrowed(cls):
    return int


@narrowed
class Rows: ...


if TYPE_CHECKING:
    @flyc.kernel
    def typed(A: fx.Tensor, v: fx.Constexpr[list]): ...
"""

CONSTANT_GUARDS = [
    Case("x = n\ny = v", (), CONSTANT.format(kind), call="k(A, n, 4)", helper=f"from typing import *\n\n{_UNCHECKED}")
    for kind in ("Rows", "int | int", "Union[int]")
]
"""The same of what another function returns, and of functions that do not run."""

COUNTS = [
    *_told(
        "FLY224",
        "for i in fx.range_constexpr(len(XS) / 2):\n    x = n",
        "half = len(XS) / 2\nfor i in fx.range_constexpr(0, half):\n    x = n",
    ),
    Case("for i in fx.range_constexpr(len(XS) // 2):\n    x = n"),
    *(
        Case(f"a = Half(4)\n{body}:\n    x = n", helper="class Half(int):\n    __truediv__ = int.__floordiv__")
        for body in ("for i in fx.range_constexpr(a / 2)", "b = a / 2\nfor i in fx.range_constexpr(b)")
    ),
    Case("half = len(XS) / 2\nhalf = int(half)\nfor i in fx.range_constexpr(half):\n    x = n"),
    Case(codes=("FLY218",), call="for i in fx.range_constexpr(2):\n        k(A, i)"),
    Case(codes=("FLY218",), call="for i in fx.range_constexpr(2):\n        k(A, i * 64 + 1)"),
    Case(codes=("FLY218",), call="for i in (1, 2):\n        k(A, i)"),
    Case(codes=("FLY218",), call="for i in range(2):\n        k(A, i)"),
    Case(codes=("FLY218",), call="for i in range(n):\n        k(A, i + 1)"),
    Case(call="for i in range(2):\n        k(A, n + i)"),
    Case(call="for i in range(2):\n        k(A, fx.Int32(i))"),
    Case(call="for v in (1, 2):\n        k(A, n + v)"),
    Case(codes=("FLY218",), host="a = torch.zeros(4, 4)\n    launch(a, a.shape)"),
    Case(codes=("FLY218",), host="a = torch.zeros(4, 4)\n    launch(a, a.dtype)"),
    Case(codes=("FLY218",), host="a = torch.zeros(4, 4)\n    launch(a.shape, 3)"),
    Case(codes=("FLY218",), host="a = torch.zeros(4, 4)\n    launch(a.numpy(), 3)"),
    Case(codes=("FLY218",), host="a = torch.arange(16).reshape(4, 4)\n    launch(a.tolist(), 3)"),
    Case(codes=("FLY218",), host="launch(torch.float32, 3)"),
    Case(codes=("FLY218",), host="launch(torch.device('cpu'), 3)"),
    Case(host="a = torch.arange(16).reshape(4, 4)\n    launch(a.float().contiguous(), 3)"),
    Case(
        host="a = Boxed()\n    launch(a.numpy(), 3)",
        helper="class Boxed:\n    def numpy(self):\n        return torch.ones(4, 4)",
    ),
    Case(host="a = torch.zeros(4, 4)\n    launch(a, a.shape[0])"),
    Case(host="a = torch.zeros(4, 4)\n    launch(a, *a.shape[1:])"),
    Case(call="for i in fx.range_constexpr(2):\n        k(A, fx.Int32(i))"),
    Case(call="for i in fx.range_constexpr(2):\n        k(A, n + i)"),
    Case(
        "x = fx.thread_idx.x + n",
        params="A: fx.Tensor, n: fx.Constexpr[int]",
        call="for i in fx.range_constexpr(2):\n        k(A, i)",
    ),
]
"""Numbers that Python counts."""

BRANCHES = [
    *_told(
        "FLY232",
        "r = None\nif n > 4:\n    r = n\nx = n",
        "r = None\nif n > 4:\n    x = 1\nelse:\n    r = n\ny = n",
        "for i in fx.range_constexpr(2):\n    r = None\n    if n > i:\n        r = n\nx = n",
        "for i in range(4):\n    r = None\n    if i > 2:\n        r = n\nx = n",
        "r = fx.Int32(0)\nif n > 4:\n    r = fx.Float32(1.0)\nx = r",
        "r = n\nif n > 4:\n    r = fx.Int64(n)\nx = r",
        "r = 0\nif n > 4:\n    r = 0.5\nx = r",
        "r, s = 0.0, n\nif n > 4:\n    r = fx.Float16(1.0)\nx = r",
        "r = fx.Float32(0.0)\nif n > 4:\n    r = 1\nx = r",
        "r = fx.Int32(0)\nif n > 4:\n    r += 0.5\nx = r",
        "r = fx.Int32(0)\nif n > 4:\n    r = r * 0.5\nx = r",
        "r = 'a'\nif n > 4:\n    r = 'b'\nx = n",
        "r = []\nif n > 4:\n    r.append(n)\nx = n",
        "r = [n]\nif n > 4:\n    r += [n]\nx = r[0]",
        "r = (n, n)\nif n > 4:\n    r = (n,)\nx = r[0]",
        "x = n if n > 4 else 0.5",
        "x = fx.Int64(n) if n > 4 else n",
        "x = None if n > 4 else n",
        "x = 'a' if fx.thread_idx.x == 0 else 'b'",
        "x = n + (n if n > 4 else 0.5)",
        "r = fx.Int32(0)\nif fx.thread_idx.x == 0:\n    y = n\n    r = fx.Int64(y)\nx = r",
    ),
    *_told(
        "FLY223",
        "s = 'a'\nfor i in range(4):\n    s = 'b'\nx = n",
        "s = ()\nfor i in range(4):\n    s = s + (n,)\nx = n",
        "s = (n,)\nfor i in range(4):\n    s += (n,)\nx = n",
        "a = n\nfor i in range(4):\n    a = fx.Int64(n) + 1\nx = a",
        "a = fx.Float32(0)\nfor i in range(4):\n    a = fx.Float16(1.0)\nx = a",
        "a = n\nfor i in range(4):\n    a = fx.Int64(a) + 1\nx = a",
    ),
    *(
        Case(body)
        for body in (
            "x = n if n > 4 else 0",
            "x = fx.Float32(n) if n > 4 else 0.5",
            "x = n if XS else 0.5",
            "x = n if fx.const_expr(len(XS) > 4) else None",
            "f = lambda v: v if v > 4 else 0.5\nx = n",
            "r = None\nif XS:\n    r = n\nx = n",
            "r = None\nif fx.const_expr(True):\n    r = n\nx = r",
            "r = None\nr = n\nif n > 4:\n    r = n + 1\nx = r",
            "r = None\nif fx.const_expr(not XS):\n    r = n\nelse:\n    r = n + 1\nif n > 4:\n    r = n\nx = r",
            "r = fx.Float32(0.0)\nif n > 4:\n    r = 1.0\nx = r",
            "r = 0\nif n > 4:\n    r = n\nx = r",
            "r = 0.0\nif n > 4:\n    r += n\nx = r",
            "r = False\nif n > 4:\n    r = True\nx = n",
            "r = []\nif fx.const_expr(XS):\n    r.append(n)\nx = r[0]",
            "r = 0\nif n > 4:\n    r = 0.5\n    r = n\nx = r",
            "r = 0\nif n > 4:\n    def f():\n        r = 0.5\n        return r\n    x = f()\nx = r",
            "r = 1 << 40\nif n > 4:\n    r = fx.Int64(n)\nx = r",
            "r = fx.Int64(0)\nif n > 4:\n    r = fx.Int64(n)\nx = r",
            "r = fx.Uint32(0)\nif n > 4:\n    r = fx.Int32(n)\nx = n",
            "a = fx.Float32(0)\nfor i in range(4):\n    a = 1.0\nx = a",
            "a = fx.Float32(0)\nfor i in fx.range_constexpr(4):\n    a = fx.Float16(1.0)\nx = a",
        )
    ),
    *(
        Case(body, taken_since="0.3.0")
        for body in (
            "r = [n]\nif n > 4:\n    r = [n + 1]\nx = r[0]",
            "r = []\nfor i in fx.range_constexpr(2):\n    r.append(n)\nif n > 4:\n    r = [n, n]\nx = r[0]",
            "r = [n]\nif n > 4:\n    r.append(n)\n    r.pop()\nx = r[0]",
            "r = [n]\nif n > 4:\n    r.insert(0, n)\n    del r[0]\nx = r[0]",
            "r = [n]\nif n > 4:\n    r.append(n)\n    r[:1] = []\nx = r[0]",
            "s = (n, n)\nfor i in range(4):\n    s = (s[1], s[0])\nx = s[0]",
        )
    ),
]
"""Values before a GPU block and in it."""

RUNNER = "class Runner:\n    def __init__(self, f):\n        self.launch = lambda: None\n\n\n"

LAUNCHES = [
    Case(codes=("FLY214",), call="k.launch(A, n, grid=(1,), block=(64,))", launch=""),
    Case(codes=("FLY214",), host="launch.launch(torch.zeros(4, 4), 3)"),
    Case(codes=("FLY214",), launch=".launch(grid=None, block=(64,), stream=stream)"),
    Case(codes=("FLY214",), launch=".launch(grid=(1,), block=(64, None), stream=stream)"),
    Case(codes=("FLY214",), launch=".launch(grid=((1, 1), 1), block=(64,), stream=stream)"),
    Case(codes=("FLY214",), launch=".launch(grid='1', block=(64,), stream=stream)"),
    Case(host="launch.launch = lambda *args: launch(*args)\n    launch.launch(torch.zeros(4, 4), 3)"),
    Case(call="h = k(A, n)\n    h"),
    Case(codes=("FLY214",), call="h = k(A, n)\n    h", launch="(grid=(1,), block=(64,), stream=stream)"),
    Case(call="h = k(A, n)\n    h.launch(grid=(1,), block=(64,), stream=stream)\n    h = len\n    h('a')", launch=""),
    Case(codes=("FLY231",), launch=".launch(grid=(A.shape, 1), block=(64,), stream=stream)"),
    Case(host="give(launch)\n    launch.launch()", helper="def give(f):\n    f.launch = lambda: None"),
    Case(
        host="again.launch()",
        helper=f"{RUNNER}@Runner\n@flyc.jit\ndef again(): ...",
    ),
    Case(
        codes=("FLY214",),
        host="again.launch()",
        helper=f"{RUNNER}@flyc.jit\ndef again(): ...",
    ),
    Case(launch=".launch(grid=(1, n // 4), block=64, stream=stream, cluster=None)"),
]
"""Launches of kernels themselves, and sizes that are none."""

USAGES = [*SHAPES, *GUARDED, *CONSTANTS, *CONSTANT_GUARDS, *COUNTS, *BRANCHES, *LAUNCHES]
