"""Programs that no pack should be given: broken, recursive, huge, and odd in each place that the rules read. By kind."""

from __future__ import annotations

HEAD = "import torch\nimport flydsl.compiler as flyc\nimport flydsl.expr as fx\nfrom flydsl.expr import buffer_ops\n"

_KERNEL = "def k(A: fx.Tensor, n: fx.Int32):\n    fx.printf(A, n)\n"
_JIT = "@flyc.jit\ndef j(A: fx.Tensor, n: fx.Int32):\n    k(A, n).launch(grid=(n, 1, 1), block=(64, 1, 1))\n"

# Decorators above each other are written on one line, with ` @ ` between them.
_DECORATORS = """\
flyc.kernel()
flyc.kernel(**{})
flyc.kernel(*[])
flyc.kernel(1, 2, 3)
flyc.kernel()()
(flyc.kernel)
flyc.kernel(known_block_size=[])
flyc.kernel(known_block_size=None)
flyc.kernel(known_block_size=[[64]])
flyc.kernel(known_block_size=SIZE)
flyc.kernel(known_block_size=[-1, 0, 1e999])
flyc.kernel(unknown=...)
flyc.kernel if SIZE else flyc.jit
flyc['kernel']
flyc.kernel[0]
flyc.kernel.kernel
flyc
flyc.kernel + 1
lambda f: flyc.kernel(f)
(lambda: flyc.kernel)()
getattr(flyc, 'kernel')
(d := flyc.kernel)
not flyc.kernel
[flyc.kernel][0]
{1: flyc.kernel}[1]
functools.partial(flyc.kernel)
alias
alias()
twice(flyc.kernel)
flyc.kernel(flyc.jit(flyc.kernel))
flyc.jit(k)
k
k(k)
f'{flyc.kernel}'
...
None
await flyc.kernel
yield
flyc.kernel(x for x in y)
flyc.kernel((yield))
staticmethod
property
k.setter
flyc.kernel @ flyc.jit
flyc.jit @ staticmethod @ flyc.kernel @ classmethod
flyc.kernel @ flyc.kernel
flyc.kernel @ property
""".splitlines()

_ANNOTATIONS = """\
1
-1
None
...
'fx.Tensor'
'fx.'
''
'('
b'fx.Tensor'
f'{fx.Tensor}'
fx.Tensor()
fx.Tensor[()]
[fx.Tensor]
{}
lambda: 0
fx.Tensor if x else int
fx.Tensor | None
(yield)
(t := fx.Tensor)
k
j
A
fx.Constexpr
fx.Constexpr[fx.Constexpr[fx.Constexpr[int]]]
fx.Constexpr[[1]]
fx.Constexpr['n']
'fx.Constexpr[n'
int
'int'
list[int]
fx.Int32[3]
torch.Tensor
type
fx
flyc
fx.expr.fx
*args
a.b.c.d.e
fx.Tensor.x
""".splitlines()

_SIGNATURES = """\
*args
**kwargs
*args, **kwargs
*, A
A, /
A, /, B, *, C
A=1, /, *args, B=2, **kwargs
*args: *Ts
A: fx.Tensor = None, n: fx.Int32 = k
A, A
self
cls, *self
fx
flyc, fx
A=lambda A=(yield): A
k, j
n: fx.Constexpr[int] = 1, *A: fx.Tensor, **n: fx.Int32
A: fx.Tensor=A, n: fx.Int32=n
(A, n)
A: 'fx.Tensor' = ...,
""".splitlines()

_CALLS = """\
k()
k(*a)
k(**a)
k(*a, **b)
k(A, *a, n, **b)
k(A, A=A)
k(A, n, n=n)
k(*[A, n])
k(**{'A': A, 'n': n})
k(A, n).launch
k(A, n).launch()
k(A, n).launch(*a)
k(A, n).launch(**a)
k(A, n).launch(grid=1)
k(A).launch(1, 2)
k(A, n).launch(grid=(), block=())
k(A, n).launch(grid=[1], block={1: 2})
k(A, n).launch(block=(-1, 1e999, None))
k(A, n).launch(block=64, block=64)
k(A, n).launch().launch().launch()
k(k(k(A, n), n), n)
k(A, n)(A, n)
k[0](A, n)
k(A, (n := n))
k(A, (yield))
k(A, await n)
k(A, lambda: n)
k(*(x for x in y))
k(x for x in y)
k(A, n if n else A)
flyc.compile
flyc.compile()
flyc.compile(k)
flyc.compile(*k)
flyc.compile[k]
flyc.compile[k](k, A, n)
flyc.compile(flyc.compile(k, A), n)
flyc.jit()
flyc.jit(flyc.jit)
flyc.jit(lambda A: A)(A)
flyc.jit(*k)
flyc.kernel(k)(A, n)
flyc.from_dlpack()
flyc.from_dlpack(*a)
flyc.from_dlpack(A).mark_layout_dynamic(**a)
flyc.from_dlpack(A).mark_static()()
flyc.from_dlpack(A).mark_layout_dynamic(leading_dim=-9, divisibility=0)
flyc.from_dlpack(A).mark_layout_dynamic(9, -16)
flyc.from_dlpack(A).mark_shape_dynamic(mode=1e999, divisibility='16')
flyc.from_torch_tensor(tensor=A).mark_stride_dynamic()
flyc.from_dlpack(torch.empty(-1)).mark_layout_dynamic(0, 2**99999)
flyc.from_dlpack(torch.empty(*s)).mark_static(*s)
buffer_ops.create_buffer_resource()
buffer_ops.create_buffer_resource(A, max_size=..., num_records_bytes=...)
buffer_ops.create_buffer_resource(*A, max_size=not A)
buffer_ops.create_buffer_resource(A, num_records_bytes=9**9**9)
fx.rocdl.make_buffer_tensor(A, max_size=False, num_records_bytes=1 << 99999999)
fx.rocdl.make_buffer_tensor(A, False, False)
fx.rocdl.make_buffer_tensor(A, max_size=False, num_records_bytes=n * n // 0 % 0)
fx.rocdl.make_buffer_tensor(max_size=False)
fx.rocdl.make_buffer_tensor(A, max_size=False, num_records_bytes=fx.Int32(-2**31) * 2**63)
fx.range_constexpr()
fx.range_constexpr(*n)
fx.const_expr(n for n in A)
[k(A, n) for n in fx.range_constexpr(n) if fx.const_expr(n)]
fx.Int32()()
""".splitlines()

_ALIASES = "import functools\nalias = flyc.kernel\nSIZE = [64, 1, 1]\ndef twice(f): return f\n"

_CYCLE = {
    f"kit/m{n}.py": f"{HEAD}from kit.m{(n + 1) % 5} import *\nfrom kit.m{(n + 1) % 5} import k as k\n" for n in range(5)
}

_RECURSIVE = """
def a(A, n): return b(A, n)
def b(A, n): return a(A, c(n))
def c(n): return c(c(n))

@flyc.kernel
def k(A: fx.Tensor, n: fx.Int32):
    k(A, a(A, n)).launch(grid=(a(A, n), 1, 1), block=(64, 1, 1))
    buffer_ops.create_buffer_resource(a(A, n), num_records_bytes=c(n) * 4)

@flyc.jit
def j(A: fx.Tensor, n: fx.Int32):
    j(A, n); j(j, j(A, n)); k(A, c(n)).launch(grid=(1, 1, 1), block=(c(64), 1, 1))

X = flyc.jit(X)
Y = Z; Z = Y; Y = flyc.jit(Y)
k2 = k; k2 = k2; k2 = flyc.compile(k2, k2)
j(Y, Z)
class C(C):
    @flyc.jit
    def m(self: C, A: 'C'): self.m(self.m, A=self.x); C.m(C(), A); super().m(A)
    x = x
"""

_SHADOWED = """
def make(fx, flyc=flyc, torch=None):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32): k(A, n); fx = n; flyc = fx; del fx
    k = k
    return k
for flyc in [1]: pass
with open('x') as fx: pass
try: import nothing as fx
except ImportError as flyc: pass
def flyc(): global fx; nonlocal_ = fx
@flyc.kernel
def k(k: fx.Tensor, flyc: k, fx: flyc): k(k, flyc, fx).launch(grid=k, block=flyc, stream=fx)
class fx: Tensor = fx
match k:
    case fx.Tensor(): pass
    case {'a': flyc, **fx}: pass
k = lambda k: k(k)
int = float = list = dict
len, range = range, len
"""

_FORGED = """
from flydsl import *
from flydsl.compiler import *
from flydsl.expr import *
from flydsl.nothing import kernel
from flydsl.compiler import kernel as jit, jit as kernel, nothing
from . import *
from .. import x
from .......... import y
from .kernels import *
from kit import kernels as kernels, nothing
import kit.kernels as flyc2
import kit.kernels.k
import flydsl, flydsl.compiler.kernel as z
@kernel
def k(A: Tensor): k(A)
@jit
def j(A: Tensor): k(A).launch(grid=(1, 1, 1), block=(1, 1, 1)); flydsl.compiler.jit(j)(A)
@flydsl.compiler.kernel.nothing
def i(A): nothing(A)
@kernels.kernels.kernels.flyc.kernel
def h(A): h(A)
"""


def _many_captures(count: int) -> str:
    lines = [f"    c{n} = [{n}]" for n in range(count)]
    body = [f"        fx.printf(c{n}, A)" for n in range(count)]
    kernel = ["    @flyc.kernel", "    def k(A: fx.Tensor):", *body]
    launcher = ["    @flyc.jit", "    def j(A: fx.Tensor):", "        k(A).launch(grid=(1, 1, 1), block=(64, 1, 1))"]
    return "\n".join(["def make(x):", *lines, *kernel, *launcher, "    return j", ""])


def _chain(count: int) -> str:
    """Helpers that each call the next, twice: 2 ** count ways."""
    helpers = [f"def h{n}(A, n):\n    return h{n + 1}(h{n + 1}(A, n), n)\n" for n in range(count)]
    kernel = "@flyc.kernel\ndef k(A: fx.Tensor, n: fx.Int32):\n    h0(A, n)\n"
    return "".join([*helpers, f"def h{count}(A, n):\n    return buffer_ops.create_buffer_resource(A)\n", kernel, _JIT])


def _diamonds(count: int) -> str:
    """A local that is written from the one before, in two branches each time."""
    steps = [
        f"    if n > {at}:\n        v{at + 1} = v{at} + v{at}\n    else:\n        v{at + 1} = v{at} * n"
        for at in range(count)
    ]
    body = ["@flyc.jit", "def j(A: fx.Tensor, n: fx.Int32):", "    v0 = n", *steps]
    return "@flyc.kernel\n" + _KERNEL + "\n".join([*body, f"    k(A, v{count}).launch(grid=(v{count}, 1, 1))", ""])


def _many_calls(count: int) -> str:
    return "@flyc.kernel\n" + _KERNEL + _JIT + "def main(A):\n" + "".join(f"    j(A, {n})\n" for n in range(count))


def _one_branch(count: int) -> str:
    bound, read = "        x = n\n" * count, "        y = x\n" * count
    return f"@flyc.kernel\n{_KERNEL}    if fx.const_expr(True):\n{bound}    else:\n        if n:\n            x = 1\n{read}"


def _of_values(lines: str) -> str:
    return f"@flyc.kernel\ndef k(A: fx.Tensor, n: fx.Int32):\n    x0 = n + 1\n{lines}"


def _doubled(count: int) -> str:
    """Variables that are each made of the one before, twice."""
    made = "".join(f"    x{n + 1} = x{n} * x{n}\n" for n in range(count))
    read = "".join(
        f"    A[{n}] = x{n} & 1\n    x{n}.foo()\n    fx.Vector.filled(4, x{n}, float)\n" for n in range(count)
    )
    return _of_values(made + read + f"    A[0] = {'-' * count}n & 1\n    A[1] = -({'-(' * count}n < 1){')' * count}\n")


def _values(count: int) -> str:
    return _of_values(
        "".join(f"    v{n} = fx.Int32(n)\n    A[0] = v{n}.foo(v{n} << 1, v{n}.to(n))\n" for n in range(count))
    )


def _held(count: int) -> str:
    """Variables that each hold a structure, with a field that it does not have."""
    made = "".join(f"    s{n} = fx.SharedAllocator().allocate(S).peek()\n    A[{n}] = s{n}.b\n" for n in range(count))
    return "@fx.struct\nclass S:\n    a: fx.Array[fx.Float32, 4]\n\n\n" + _of_values(made)


def _launched_again(count: int) -> str:
    """Launchers that are called, which one variable holds in turn."""
    return "@flyc.kernel\n" + _KERNEL + _JIT + "    h = k(n)\n    h(grid=(1,), block=(64,))\n" * count


def _nested(count: int) -> str:
    lines = [f"{' ' * n}@flyc.kernel\n{' ' * n}def k{n}(A: fx.Tensor, n{n}: fx.Int32):\n" for n in range(count)]
    return "".join(lines) + " " * count + "k0(A, n0)\n"


def _in_contexts() -> dict[str, str]:
    """The kernel and its launcher in odd places."""

    def inside(head: str, depth: int = 1) -> str:
        text = "@flyc.kernel\n" + _KERNEL + _JIT
        return head + "".join(f"{'    ' * depth}{line}\n" for line in text.splitlines())

    return {
        "in a class": inside("class C:\n"),
        "in a class of a class": inside("class C:\n    class D:\n", 2),
        "in a branch": inside("if 1:\n"),
        "in a loop": inside("while True:\n"),
        "in a try": inside("try:\n") + "except* OSError:\n    k = j = None\n",
        "in a match": inside("match 1:\n    case 1:\n", 2),
        "in a coroutine": inside("async def f():\n").replace("    def ", "    async def "),
        "in a with": inside("with k as j, j as k:\n"),
        "behind a global": inside("def f():\n    global k, j\n"),
        "behind a nonlocal of nothing": inside("def f():\n    nonlocal k, j\n"),
        "generic": "@flyc.kernel\ndef k[T: fx.Tensor, *U, **P](A: T, n: P.args) -> T:\n    k[T](A, n)\ntype X = k\n",
        "on classes": "@flyc.kernel\nclass k:\n    pass\n@flyc.jit\nclass j(k):\n    A: fx.Tensor\n    k(A, 1)\nk(1); j(2)\n",
        "on lambdas": "k = flyc.kernel(lambda A, n: A)\nj = flyc.jit(lambda *a, **b: k(*a, **b))\nj(1, n=2)\n",
        "twice": ("@flyc.kernel\n" + _KERNEL + _JIT) * 2,
        "empty": "",
        "one line": "@flyc.kernel\ndef k(): ...\n@flyc.jit\ndef j(): k().launch(); k()\nj()",
        "windows": ("@flyc.kernel\n" + _KERNEL + _JIT).replace("\n", "\r\n"),
        "old mac": ("@flyc.kernel\n" + _KERNEL + _JIT).replace("\n", "\r"),
        "wide": "é = 1\n@flyc.kernel\ndef ｋ(Ａ: fx.Tensor, ñ: fx.Int32):\n    '𝒳𝒴'; fx.printf(A, ñ)\nｋ(é, '𝒳')\n",
        "comments": "@flyc.kernel # a\n# b\ndef k( # c\n    A: # d\n    fx.Tensor, # e\n): # f\n    k( # g\n    A # h\n    ) # i\n",
    }


def _above(decorators: str) -> str:
    return decorators.replace(" @ ", "\n@")


def _programs() -> dict[str, str]:
    found = {f"decorator {text!r}": f"{_ALIASES}@{_above(text)}\n{_KERNEL}{_JIT}j(1, 2)\n" for text in _DECORATORS}
    for text in _ANNOTATIONS:
        kernel = f"@flyc.kernel\ndef k(A: {text}, n: {text} = 1) -> {text}:\n    fx.printf(A, n)\n"
        found[f"annotation {text!r}"] = kernel + _JIT + "flyc.jit(k)(torch.empty(3), 2)\n"
    for text in _SIGNATURES:
        kernel = f"@flyc.kernel\ndef k({text}):\n    return {_CALLS[0]}\n"
        found[f"signature {text!r}"] = kernel + f"@flyc.jit\ndef j({text}):\n    k(A, n).launch(grid=1)\nj(1, 2)\n"
    for text in _CALLS:
        launcher = f"@flyc.jit\ndef j(A: fx.Tensor, n: fx.Int32):\n    {text}\n    x = {text}\n    return {text}\n"
        found[f"call {text!r}"] = (
            f"@flyc.kernel\n{_KERNEL}{launcher}\ndef main(A, n):\n    {text}\n    j({text}, {text})\n"
        )
    return found | _in_contexts()


PROGRAMS: dict[str, dict[str, str]] = {
    **{name: {"kit/kernels.py": HEAD + text} for name, text in _programs().items()},
    "imports in a circle": {**_CYCLE, "kit/kernels.py": f"{HEAD}from kit.m0 import *\n@flyc.jit\ndef j(A): k(A)\n"},
    "recursion": {"kit/kernels.py": HEAD + _RECURSIVE},
    "shadowed names": {"kit/kernels.py": HEAD + _SHADOWED},
    "imports of nothing": {"kit/kernels.py": HEAD + _FORGED},
    "a package of its own called flydsl": {
        "flydsl/__init__.py": _FORGED,
        "flydsl/compiler.py": "kernel = jit = kernel\n",
    },
    "a file in the way of a package": {
        "flydsl.py": HEAD,
        "flydsl/__init__.py": HEAD,
        "flydsl/expr.py": HEAD + _RECURSIVE,
    },
    "half a file": {"kit/kernels.py": HEAD + "@flyc.kernel\ndef k(A: fx.Tensor,", "kit/other.py": HEAD + _RECURSIVE},
    "bytes": {
        "kit/kernels.py": "\x1aimport flydsl\x1a",
        "kit/other.py": "\ufeffimport flydsl\n\x0c@flydsl.compiler.jit\ndef j(): j()",
    },
}
"""The files, by kind."""

LARGE: dict[str, tuple[str, int]] = {
    "captures": (_many_captures(2_000), 2_000),
    "helpers that call helpers": (_chain(300), 300),
    "branches behind branches": (_diamonds(300), 300),
    "calls": (_many_calls(3_000), 3_000),
    "bindings and reads of one name": (_one_branch(3_000), 3_000),
    "kernels in kernels": (_nested(30), 30),
    "values made of values": (_doubled(25), 25),
    "many more of these": (_doubled(60), 60),
    "values": (_values(2_000), 2_000),
    "commas in a cast": (_of_values("    # fx.Int32((" + "," * 100_000 + "\n"), 100_000),
    "words of casts": (_of_values("    fx.Int32(n)  # " + "Int" * 60_000 + "\n"), 180_000),
    "structures": (_held(1_000), 1_000),
    "launchers": (_launched_again(1_000), 1_000),
    "functions in a function": (
        _of_values("    z = fx.Int32(n)\n" + "    def f():\n        w = 1.0\n        return f(z).foo() & 1\n" * 3_000),
        3_000,
    ),
    "signs on a line": (_of_values("    x0 & 1  # " + "-(" * 100_000 + "\n"), 100_000),
    "fields": (_of_values("    # fx.Array[" + "a.b," * 50_000 + "\n    # fx.Array[a," + " " * 100_000 + "\n"), 100_000),
    "one long expression": ("@flyc.kernel\n" + _KERNEL + _JIT + "j(1, " + " + ".join(["n"] * 400) + ")\n", 400),
    "one long launch": ("@flyc.kernel\n" + _KERNEL + "k(" + ", ".join(map(str, range(3_000))) + ").launch()\n", 3_000),
}
"""Programs with many of one thing, by what; the second is how many."""
