"""Programs with wrong launches, host arguments, helpers and names, and right ones that look like them."""

from __future__ import annotations

from tests.rules.flydsl.launch_cases import Case


def _launch(arguments: str, *codes: str, refused: bool | None = None, since: str = "0") -> Case:
    return Case(launch=f".launch({arguments})", codes=codes, refused=refused, taken_since=since)


SIZES = [
    _launch("grid=(1, 0, 1), block=(64,), stream=stream", "FLY214", refused=False),
    _launch("grid=(-1,), block=(64,), stream=stream", "FLY214", refused=False),
    _launch("grid=0, block=(64,), stream=stream", "FLY214", refused=False),
    _launch("grid=(1,), block=(64, 32), stream=stream", "FLY215", refused=False, since="0.3.1"),
    _launch("grid=(1,), block=(64, 16), stream=stream", since="0.3.1"),
    _launch("grid=(n - 1,), block=(1024, 1, 1), stream=stream", since="0.3.1"),
]
"""Sizes of launches. That a GPU refuses is no error where nothing runs."""


def _host(host: str, *codes: str, refused: bool | None = None) -> Case:
    return Case(
        "A[0] = fx.Float32(1.0)", codes, host=host, refused=refused, taken_since="0.2.0" if refused is False else "0"
    )


HOST = [
    _host("launch(torch.zeros(4).data_ptr(), 3)", "FLY218"),
    _host("x = torch.zeros(4)\n    launch(x.data_ptr(), 3)", "FLY218"),
    _host("launch(torch.zeros(4, dtype=torch.complex64), 3)", "FLY218"),
    _host("x = torch.zeros(4, dtype=torch.complex64)\n    launch(x.contiguous(), 3)", "FLY218"),
    _host("launch(torch.zeros(4), 3, stream='default')", "FLY218", refused=False),
    _host("launch(torch.zeros(4), 3, stream=torch.cuda.Stream)", "FLY218", refused=False),
    _host("x = torch.zeros(4, dtype=torch.complex64)\n    launch(x.real.contiguous(), 3)"),
    _host("x = torch.zeros(4)\n    x = torch.ones(4)\n    launch(x, 3)"),
    _host("launch(torch.zeros(4), 3, stream=fx.Stream(None))"),
    _host("launch(torch.zeros(4), torch.zeros(4).data_ptr() % 8)"),
]
"""Arguments of the host. Streams are looked at when the launch runs."""

_STORE = "def store(tensor, index, value, *, cached=True):\n    tensor[index] = fx.Float32(value)\n"
_KEPT = f"import functools\n\n\n@functools.lru_cache\n{_STORE}"
_WRAPPED = f"def wrap(f):\n    return lambda *a, **k: None\n\n\n@wrap\n{_STORE}"
_CLASS = """\
class Stores:
    def store(self, tensor, index, value):
        tensor[index] = fx.Float32(value)


stores = Stores()
"""


def _helper(line: str, *codes: str, helper: str = _STORE, refused: bool | None = None) -> Case:
    return Case(f"{line}\nx = n", codes, helper=helper, refused=refused)


HELPER_CALLS = [
    _helper("store(A, 0)", "FLY240"),
    _helper("store(A, 0, 1.0, True)", "FLY240"),
    _helper("store(A, 0, 1.0, cache=True)", "FLY240"),
    _helper("store(A, 0, values=1.0)", "FLY240", "FLY240"),
    _helper("def inner():\n    store(A, 0)\ninner()", "FLY240"),
    _helper("def put(a, b):\n    store(a, 0, b)\nput(A)", "FLY240"),
    _helper("keep(A)", "FLY240", helper=f"{_STORE}\n\ndef keep(tensor):\n    store(tensor)\n"),
    _helper("store(A, 0, 1.0, cached=False)"),
    _helper("store(A, value=1.0, index=0)"),
    _helper("given = (0, 1.0)\nstore(A, *given)"),
    _helper("if fx.const_expr(False):\n    store(A)"),
    _helper("try:\n    store(A)\nexcept TypeError:\n    pass"),
    _helper("store(A)", helper=_WRAPPED),
    _helper("stores.store(A, 0, 1.0)", helper=_CLASS),
    _helper("def store(tensor):\n    tensor[0] = fx.Float32(1.0)\nstore(A)"),
    _helper("for store in (print, str):\n    store(1)"),
    _helper("store = print\nstore(1)"),
    _helper("x = [store(1) for store in (print, str)]"),
]
"""Calls of the module's own functions."""

_LATE = "def late(value):\n    return value\n"
_HOST_IMPORT = "def other():\n    import math\n\n    return math.pi\n"
_FOR_TYPES = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import math\n"

NAMES = [
    Case("x = math.log2(8) + n", ("FLY241",), helper=_HOST_IMPORT),
    Case("x = math.log2(8) + n", ("FLY241",), helper=_FOR_TYPES),
    Case("x = m + n", ("FLY241",)),
    Case("def f():\n    return m\nx = f() + n", ("FLY241",)),
    Case("x = log(n)", ("FLY241",), helper="def log(value):\n    return value + nothing\n"),
    Case("x = late(n)", helper=_LATE),
    Case("import math\nx = math.log2(8) + n"),
    Case("x = [m for m in (1, 2)][0] + n"),
    Case("x = (lambda m: m + 1)(1) + n"),
    Case("f = lambda m: m + n\nx = f(1)"),
    Case("if fx.const_expr(False):\n    x = m"),
    Case("try:\n    x = m\nexcept NameError:\n    x = n"),
    Case("for m in fx.range_constexpr(2):\n    x = m + n"),
    Case("x = sum((1, 2)) + n\ny = __name__"),
    Case("class Pair:\n    m = 1\nx = Pair.m + n"),
    Case("def f(m: 'Missing') -> 'Missing':\n    return m\nx = f(n)"),
    Case("x = m + n", helper="def set_m():\n    global m\n    m = 1\n\n\nset_m()\n"),
    Case("x = m + n", helper="globals()['m'] = 1\n"),
    Case("x = m + n", helper="(m, k), *rest = (1, 2), 3\n"),
    Case("x = m + n", helper="for m in (1, 2):\n    pass\n"),
    Case("x = m + n", helper="with open(__file__) as m:\n    m = 1\n"),
    Case("x = (m := 2) + n\ny = m"),
]
"""Names that something defines, or nothing."""

IDENTITIES = [
    *(
        Case(body, ("FLY217",), refused=False)
        for body in (
            "if n is 0:\n    x = n",
            "x = fx.thread_idx.x is not 3\ny = n",
            "for i in range(4):\n    x = i is 2",
        )
    ),
    *map(Case, ("x = n is None", "x = XS is n", "x = (n == 0) is None\ny = 'n is 3'", "m = 1\nx = (m is True) + n")),
]
"""Tests whether a GPU value is the same object as a constant, which are always false."""

TYPES = [
    Case(params="A: fx.Tensor, n: fx.Int32, *rest", codes=("FLY242",)),
    Case(takes="A: fx.Tensor, n: fx.Int32, *rest", launch=".launch(grid=(1,), block=(64,))", codes=("FLY242",)),
    Case(takes="A: fx.Tensor, n: fx.Int32, **rest", launch=".launch(grid=(1,), block=(64,))", codes=("FLY242",)),
    Case(params="A: fx.Tensor, n: fx.Int32, **rest", taken_since="0.3.2"),
    Case("x = f(n, 1)", helper="@flyc.jit\ndef f(*values):\n    return values[0]\n"),
    Case(params="A: fx.Tensor, n: fx.Constexpr(int)", call="k(A, 3)", codes=("FLY230",)),
    Case(params="A: fx.Tensor, n: fx.Constexpr[int]", call="k(A, 3)"),
]
"""Types of parameters."""

LOOPS = [
    Case("for i in range(0, 4, 1, init=[n]):\n    k = i[1]\n    r = yield [n]"),
    Case("for i, (a, b) in range(0, 4, 1, init=[n, n]):\n    r = yield [a, b]"),
    Case("for pair in range(0, 4, 1, init=[n]):\n    i, s = pair\n    r = yield [s[0] + 1]"),
]
"""Loops with `init` whose variables are right."""

CODE = [*SIZES, *HOST, *HELPER_CALLS, *NAMES, *IDENTITIES, *TYPES, *LOOPS]
