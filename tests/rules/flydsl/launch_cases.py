"""Small programs, what the rules say of each, and whether FlyDSL refuses it."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import Version

from opschema_rules.flydsl.examples import HEAD

XS = "XS = [1, 2, 3, 4]"


@dataclass(frozen=True)
class Case:
    """A kernel of this body, a launcher that calls and launches it, and the host's call; the codes that lint finds.

    ``refused`` tells whether FlyDSL raises; by default, whether lint finds anything. The releases before ``taken_since``
    raise, too, and those before ``refused_since`` never.
    """

    body: str = "x = n + 1"
    codes: tuple[str, ...] = ()
    params: str = "A: fx.Tensor, n: fx.Int32"
    decorator: str = "flyc.kernel"
    call: str = "k(A, n)"
    launch: str = ".launch(grid=(1,), block=(64,), stream=stream)"
    takes: str = "A: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)"
    host: str = "launch(torch.zeros(4, 4), 3)"
    helper: str = ""
    refused: bool | None = None
    taken_since: str = "0"
    refused_since: str = "0"

    @property
    def id(self) -> str:
        """The difference to other cases."""
        default = Case()
        names = ("helper", "body", "params", "decorator", "call", "launch", "takes", "host")
        parts = [getattr(self, name) for name in names]
        usual = [getattr(default, name) for name in names]
        return " / ".join(part for part, same in zip(parts, usual, strict=True) if part != same) or "plain"

    def raises(self, release: Version) -> bool:
        """Whether a release of FlyDSL refuses the program."""
        refused = bool(self.codes) if self.refused is None else self.refused
        return (refused and release >= Version(self.refused_since)) or release < Version(self.taken_since)

    def text(self) -> str:
        """The module."""
        body = "".join(f"    {line}\n" for line in self.body.splitlines())
        kernel = f"@{self.decorator}\ndef k({self.params}):\n{body}"
        launcher = f"@flyc.jit\ndef launch({self.takes}):\n    {self.call}{self.launch}\n"
        return f"{HEAD}{XS}\n\n\n{self.helper}\n\n\n{kernel}\n\n{launcher}\n\ndef run():\n    {self.host}\n"


def _late(*bodies: str) -> list[Case]:
    return [Case(body, ("FLY217",)) for body in bodies]


def _fine(*bodies: str) -> list[Case]:
    return [Case(body) for body in bodies]


LATE = _late(
    "for i in fx.range_constexpr(n):\n    x = i",
    "for i in fx.range_constexpr(0, n):\n    x = i",
    "m = n // 2\nfor i in fx.range_constexpr(m):\n    x = i",
    "m = fx.Int32(n) + 1\nfor i in fx.range_constexpr(m):\n    x = i",
    "n //= 2\nfor i in fx.range_constexpr(n):\n    x = i",
    "for i in fx.range_constexpr(fx.thread_idx.x):\n    x = n",
    "for i in range(4):\n    for j in fx.range_constexpr(i):\n        x = n",
    "def f():\n    for i in fx.range_constexpr(n):\n        x = i\nf()",
    "m = 0\nif n > 2:\n    m += 1\nfor i in fx.range_constexpr(m):\n    x = n",
    "m = 0\nfor k in fx.range_constexpr(3):\n    x = XS[m]\n    if n > k:\n        m += 1",
    "m = 1\nif n > 2:\n    m = 1\nx = XS[m]",
    "m = True\nif n > 2:\n    m = False\nif fx.const_expr(m):\n    x = n",
    "m = 0\nif n > 2:\n    if n > 3:\n        m = 1\nx = XS[m]",
    "m = 0\nif n > 2:\n    x = n\nelse:\n    m = 1\nx = XS[m]",
    "m = 0\nif fx.const_expr(True):\n    if n > 2:\n        m = 1\n    x = XS[m]",
    "def f():\n    m = 0\n    if n > 2:\n        m = 1\n    return XS[m]\nx = f()",
    "x = [i for i in range(n)]",
    "x = list(range(n))",
    "for i in range(4):\n    x = [j + n for j in range(i)]",
    "if fx.const_expr(n):\n    x = n",
    "if fx.const_expr(n > 0):\n    x = n",
    "if fx.const_expr(n > 0 and n < 3):\n    x = n",
    "if fx.const_expr(not (n > 0)):\n    x = n",
    "if fx.const_expr(False):\n    x = n\nelif fx.const_expr(n > 0):\n    x = 2",
    "while fx.const_expr(n > 0):\n    x = n",
    "x = int(n)",
    "x = float(n * 2)",
    "x = bool(n)",
    "for i in range(4):\n    x = int(i) + n",
    "x = XS[n]",
    "x = XS[-n]",
    "x = XS[:n]",
    "xs = [1, 2]\nx = xs[n]",
    "xs = [1, 2]\nxs[n] = 3",
    "x = (1, 2)[n % 2]",
    "for i in range(4):\n    x = XS[i] + n",
    "for i in range(4):\n    x = XS[i + 1] + n",
    "x = [i for i in XS if n > 0]",
    "assert n > 0",
    "assert n == 3, 'three'",
    "x = min(n, 3)",
    "x = max(3, n)",
    "import math\nx = math.log2(n)",
    "x = fx.full((n,), 0.0, fx.Float32)",
    "x = fx.Vector.filled(n, 0.0, fx.Float32)",
    "size = (n, 4)\nx = fx.full(size, 0.0, fx.Float32)",
    "x = [0] * n",
    "x = (n // 2) * (1, 2)",
    "x = 'ab' * n",
    "for i in range(4):\n    x = [n] * i",
    "x = n in (1, 2)",
    "x = n not in XS",
    "x = XS.index(n)",
    "x = XS.count(fx.thread_idx.x)\ny = n",
    "x = XS.pop(n)",
    "x = round(n)",
    "x = hex(fx.thread_idx.x)\ny = n",
    "x = f'{n:02d}'",
    "x = any([n > 1, n < 3])",
    "x = all(n > i for i in XS)",
    "x = sorted([n, 3])",
    "x = max([n, 3])",
    "x = max(i + n for i in XS)",
)

ALWAYS_TRUE = [
    Case("for i in range(4):\n    if fx.const_expr(i == 77):\n        x = n", ("FLY217",), refused=False),
    Case("for i in range(4):\n    assert i < 4\nx = n", ("FLY217",), refused=False),
]

FINE = _fine(
    "m = 0\nif XS:\n    m += 1\nx = XS[m]",
    "m = 0\nfor k in fx.range_constexpr(1):\n    x = XS[m]\n    if n > k:\n        m += 1",
    "m = 0\nfor k in fx.range_constexpr(0, len(XS), len(XS)):\n    x = XS[m]\n    if n > k:\n        m += 1",
    "m = 0\nfor k in fx.range_constexpr(3):\n    x = XS[m]\n    if n > k:\n        m += 1\n    m = k",
    "m = 0\nfor k in fx.range_constexpr(3):\n    m = k\n    x = XS[m]\n    if n > k:\n        m += 1",
    "m = 0\nfor k in fx.range_constexpr(3):\n    x = XS[m]\n    if n > k:\n        m += 1\n    if fx.const_expr(1):\n        break",
    "m = 0\nif n > 2:\n    m = 1\nm = 2\nx = XS[m]",
    "m = 0\nif n > 2:\n    m = 1\nx = XS[(m := 1)]\ny = XS[m]",
    "m = 0\nif n > 2:\n    m = 1\nmatch 1:\n    case m:\n        x = XS[m]",
    "m = 0\nif n > 2:\n    m = 1\n    x = XS[m]",
    "m = 0\nif n > 2:\n    m = 1\nelse:\n    x = XS[0]",
    "for i in fx.range_constexpr(2):\n    m = 0\n    x = XS[m]\n    if n > 2:\n        m = 1",
    "m = 0\nfor k in fx.range_constexpr(3):\n    if fx.const_expr(k == 0):\n        x = XS[m]\n    if n > k:\n        m += 1",
    "m = 0\nfor k in fx.range_constexpr(3):\n    if k == 0:\n        x = XS[m]\n    if n > k:\n        m += 1",
    "m = 0\nfor k in fx.range_constexpr(3):\n    x = XS[m] if k == 0 else 1\n    if n > k:\n        m += 1",
    "m = 0\nfor k in fx.range_constexpr(3):\n    x = k == 0 and XS[m]\n    if n > k:\n        m += 1",
    "m = 0\nfor k in fx.range_constexpr(3):\n    x = [XS[m] for _ in range(1) if k == 0]\n    if n > k:\n        m += 1",
    "m = 0\nif fx.const_expr(not XS):\n    if n > 2:\n        m = 1\nx = XS[m]",
    "m = 0\nif n > 2:\n    m = 1\nx = [m for m in XS]",
    "m = 0\nif n > 2:\n    m = 1\nfor m in fx.range_constexpr(2):\n    x = XS[m]",
    "x = sum([n, n])",
    "x = [n, n] * 2",
    "x = str(n) + f'{n} {n!r} {len(XS):02d}'",
    "x = n in {1: 2}",
    "x = 3 in XS\ny = n",
    "x = any([True, len(XS) > 2])\ny = n",
    "x = max([len(XS), 3]) + n",
    "x = XS.index(3) + n",
    "x = n % 4",
    "n = len(XS)\nx = [0] * n",
    "def f(n):\n    return hex(n)\nx = f(3)\ny = n",
    "for i in fx.range_constexpr(4):\n    if fx.const_expr(i in (1, 2)):\n        x = [n] * i",
    "x = n + 1",
    "for i in range(n):\n    x = i + 1",
    "for i in fx.range_constexpr(4):\n    x = XS[i] + n",
    "if n > 0:\n    x = n",
    "if n > 0 and n < 3:\n    x = n",
    "x = 1 if n > 0 else 2",
    "x = 1 if fx.const_expr(n > 0) else 2",
    "x = fx.const_expr(n)",
    "if not fx.const_expr(n > 0):\n    x = n",
    "if fx.const_expr(n is None):\n    x = n",
    "x = {1: 2}.get(n)",
    "x = [XS[i] for i in range(4)]\ny = n",
    "x = f'{n}'",
    "x = 'a%s' % n",
    "x = isinstance(n, int)",
    "for n in fx.range_constexpr(2):\n    x = XS[n]",
    "def f(n):\n    return XS[n]\nx = f(1) + n",
    "x = [n for n in range(4)]\ny = XS[x[0]]\nz = n",
    "n = 2\nx = XS[n]",
    "x = fx.make_layout((n, 4), (4, 1))",
    "x = fx.full(4, 0.0, fx.Float32)\ny = n",
    "for i in range(4):\n    if i == 0:\n        x = n",
)

CALLS = [
    Case(codes=("FLY211",), call="k(A)"),
    Case(codes=("FLY211",), call="k(A, n, n)"),
    Case(codes=("FLY211",), call="k(A, n, n=n)"),
    Case(codes=("FLY211",), call="k(A, n, m=n)"),
    Case(codes=("FLY211",), call="k(A, m=n)"),
    Case(codes=("FLY211",), host="launch(torch.zeros(4, 4))"),
    Case(codes=("FLY211",), host="launch(torch.zeros(4, 4), 3, None, 5)"),
    Case(codes=("FLY211",), host="flyc.compile(launch, torch.zeros(4, 4))"),
    Case(host="flyc.compile(launch, torch.zeros(4, 4), 3, fx.Stream(None))"),
    Case(host="flyc.compile(launch)"),
    Case(host="launch(*[torch.zeros(4, 4), 3])"),
    Case(call="k(n=n, A=A)"),
    Case(call="k(A, n, unit_attrs=['a.b'])"),
    Case(codes=("FLY213",), launch="", refused=False),
    Case(codes=("FLY213",), launch=".launch", refused=False),
    Case(codes=("FLY213",), host="flyc.compile(k, torch.zeros(4, 4), 3)"),
    Case(codes=("FLY214",), launch=".launch(grids=(1,), stream=stream)"),
    Case(codes=("FLY214", "FLY214"), launch=".launch((1,), (64,), stream=stream)"),
    Case(codes=("FLY214",), launch=".launch(grid=(), block=(64,), stream=stream)"),
    Case(codes=("FLY214",), launch=".launch(grid=(1, 1, 1, 2), block=(64,), stream=stream)", refused=False),
    Case(codes=("FLY214",), launch=".launch(grid=(n / 64,), block=(64,), stream=stream)"),
    Case(codes=("FLY214",), launch=".launch(grid=(1,), block=(64,), stream=0)"),
    Case(
        codes=("FLY214",),
        call="blocks = n / 64\n    k(A, n)",
        launch=".launch(grid=(blocks,), block=(64,), stream=stream)",
    ),
    Case(launch=".launch(grid=(n // 64,), block=[64, 1, 1], stream=stream, smem=0)"),
    Case(codes=("FLY215",), decorator="flyc.kernel(known_block_size=[256, 1])"),
    Case(codes=("FLY215",), decorator="flyc.kernel(known_block_size=256)"),
    Case(codes=("FLY215",), decorator="flyc.kernel(known_block_size=[0, 1, 1])"),
    Case(codes=("FLY215",), decorator="flyc.kernel(known_block_size=[256, 1, 1])"),
    Case(codes=("FLY215",), decorator="flyc.kernel(known_block_size=[256, 1, 1])", launch=".launch(stream=stream)"),
    Case(decorator="flyc.kernel(known_block_size=(64, 1, 1))"),
    Case(
        decorator="flyc.kernel(known_block_size=[256, 1, 1])",
        launch=".launch(grid=(1,), block=(n, 1, 1), stream=stream)",
    ),
]

CONSTEXPR = "A: fx.Tensor, n: fx.Constexpr[int]"
LAUNCHED = "A: fx.Tensor, n: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)"
KINDS = [
    Case("x = fx.thread_idx.x + n", ("FLY216",), params=CONSTEXPR),
    Case("x = fx.thread_idx.x + n", ("FLY216",), params=CONSTEXPR, call="k(A, n // 2)"),
    Case("x = fx.thread_idx.x + n", params=CONSTEXPR, takes=LAUNCHED),
    Case("x = fx.thread_idx.x + n", params=CONSTEXPR, call="k(A, 4)"),
    Case("x = A", ("FLY212",), params=CONSTEXPR, refused=False),
    Case(takes=LAUNCHED, call="k(A, fx.Int32(n))"),
    Case(codes=("FLY218",), host="bias = None\n    launch(bias, 3)"),
    Case(host="bias = None\n    if bias is not None:\n        launch(bias, 3)"),
    *(Case(codes=("FLY218",), host=f"launch({given}, 3)") for given in ("'a'", "(4, 4)", "[torch.zeros(4)]", "{}")),
    *(Case(codes=("FLY218",), host=f"launch(torch.zeros(4, 4), {given})") for given in ("'3'", "[3]", "(3,)")),
    Case(codes=("FLY218",), takes=LAUNCHED),
    Case(codes=("FLY218",), call="k(A, 7)"),
    Case(call="k(A, XS)", refused=True),
    Case(codes=("FLY218",), call="k(None, n)"),
    Case(codes=("FLY218", "FLY218"), call="k(n, A)", refused=False, body="x = fx.thread_idx.x"),
    Case(call="k(A, fx.Int32(7))"),
    Case(codes=("FLY218",), params="A: fx.Tensor, n: fx.Int32 = 3", call="k(A)"),
    Case(params="A: fx.Tensor, n: fx.Int32 = 3"),
    Case(codes=("FLY218",), host="launch(None, 3)"),
    Case(codes=("FLY218",), host="launch(torch.zeros(4, 4), 3.5)", refused=False),
    Case(
        codes=("FLY218",),
        takes="A: fx.Tensor, n: fx.Int32, B: fx.Tensor = None, stream: fx.Stream = fx.Stream(None)",
        call="k(B, n)",
    ),
]

HASHED = [
    Case(
        codes=("FLY216",),
        takes=LAUNCHED,
        call="k(A, fx.Int32(4))",
        host=host,
        refused=False,
        taken_since="0.5.0",
    )
    for host in (
        *(f"launch(torch.zeros(4, 4), {value})" for value in ("[3]", "{3: 4}", "{3}")),
        "order = [3]\n    launch(torch.zeros(4, 4), order)",
    )
]
"""Values of a launcher's constant that cannot be in a key of captured and passed values, as FlyDSL computes one up to 0.4.2."""


def _helped(helper: str, *codes: str, body: str = "x = f(n)") -> Case:
    return Case(body, codes, helper=helper)


HELPERS = [
    _helped("def f(n):\n    if n > 4:\n        return 4\n    return n", "FLY217"),
    _helped("def f(n):\n    m = 3\n    if not n:\n        return m\n    return n", "FLY217"),
    _helped("def f(n):\n    if n > 0 and n < 4:\n        return 4\n    return n", "FLY217"),
    _helped("def f(n):\n    return 4 if n // 2 == 4 else n", "FLY217"),
    _helped("def f(n):\n    for i in range(n):\n        pass", "FLY217"),
    _helped("MOST = 4\ndef f(n):\n    if n <= MOST:\n        return n\n    return n + 1", "FLY217"),
    _helped("MOST = 4\ndef f(n, MOST=None):\n    x = MOST\n    return n + 1"),
    _helped("def f(n):\n    while n > 4:\n        pass", "FLY217"),
    _helped("def f(n, m):\n    assert m\n    return n", "FLY217", body="x = f(1, m=n)"),
    _helped("def f(n):\n    while n > 4:\n        n = n - 1\n    return n", "FLY217"),
    _helped("def f(n):\n    n = 3\n    while n > 4:\n        pass\n    return n"),
    _helped("def f(n):\n    if n is None:\n        return 4\n    return n"),
    _helped("def f(n):\n    if isinstance(n, int):\n        return 4 if n > 3 else 3\n    return n"),
    _helped(
        "def f(n):\n    if not isinstance(n, int):\n        return n\n    if n > 3:\n        return 3\n    return n"
    ),
    _helped("def f(n):\n    n = 3\n    if n > 2:\n        return 3\n    return n"),
    _helped("def f(n):\n    if n > 4:\n        return 4\n    return n", body="x = f(4) + n"),
    _helped("@flyc.jit\ndef f(n):\n    x = 0\n    if n > 4:\n        x = 4\n    return x"),
    _helped(
        "def f(n):\n    try:\n        if n > 4:\n            return 4\n    except RuntimeError:\n        pass\n    return n"
    ),
]
"""Functions that the kernel calls and nothing traces."""

_JIT = "@flyc.jit\ndef h(n, f=None):\n    {}\n    return n\n"
_AFTER = "raise ValueError('after')"


def _told(code: str, *bodies: str, refused: bool = True) -> list[Case]:
    return [Case(body, (code,), refused=refused) for body in bodies]


EXITS = [
    Case("while n > 2:\n    break\nx = n", ("FLY221",), refused_since="0.2.0"),
    *_told(
        "FLY221",
        "for i in range(4):\n    break\nx = n",
        "for i in range(4):\n    if i > 2:\n        break\n    x = n",
        "for i in range(4):\n    if fx.const_expr(True):\n        continue\n    x = n",
        "for i in fx.range_constexpr(4):\n    if i > 2:\n        break\n    x = n",
        "for i in XS:\n    if n > i:\n        continue\n    x = n",
        "def f():\n    for i in range(4):\n        break\nx = n",
        f"if n > 2:\n    return\n{_AFTER}",
        f"if n > 2:\n    x = n\nelse:\n    return\n{_AFTER}",
        f"if XS:\n    return\n{_AFTER}",
        f"for i in range(4):\n    return\n{_AFTER}",
        f"for i in XS:\n    if n > i:\n        return\n    {_AFTER}",
        f"def f(v):\n    if v is None:\n        return n\n    {_AFTER}\nx = f(None)",
    ),
    Case(
        "x = h(n)",
        ("FLY221",),
        helper=_JIT.format("if f is None:\n        return n\n    raise ValueError"),
        refused=True,
    ),
    Case("x = h(n)", helper="def h(n):\n    for i in range(4):\n        break\n    return n\n"),
    *_fine(
        "for i in fx.range_constexpr(4):\n    if fx.const_expr(i > 2):\n        break\n    x = n",
        "for i in XS:\n    break\nx = n",
        "while fx.const_expr(True):\n    break\nx = n",
        f"if fx.const_expr(True):\n    return\n{_AFTER}",
        f"for i in fx.range_constexpr(4):\n    return\n{_AFTER}",
        "if n > 2:\n    x = n\n    return",
        "if n > 2:\n    return\nelse:\n    x = n",
    ),
]
"""Exits from blocks: all of those that are told raise, or run what follows them."""

SCOPES = [
    *_told(
        "FLY222",
        "for i in range(4):\n    x = n + 1\ny = x + 1",
        "for i in range(4):\n    x = n + 1\ny = n + i",
        "for i in range(4):\n    p, q = n, n\ny = q",
        "for i in range(4):\n    for j in fx.range_constexpr(2):\n        x = n + j\ny = x + 1",
        "for i in range(4):\n    x = n + 1\nfor i in range(4):\n    y = x",
        "if n > 2:\n    x = n + 1\ny = x + 1",
        "if n > 2:\n    x = n + 1\nelse:\n    x = n\ny = x + 1",
        "if XS:\n    x = n + 1\ny = x + 1",
        "if n > 2:\n    x = n\nif n > 2:\n    y = x",
        "def f():\n    for i in range(4):\n        x = n + 1\n    return x\ny = f()",
        "for i in range(4):\n    z = (x := n + 1)\ny = x + 1",
        "for i in range(4):\n    x = n + 1\ndef f():\n    return x\ny = f()",
        "if fx.const_expr(not XS):\n    x = n\nelse:\n    if n > 2:\n        x = n + 1\n    y = x",
        "if fx.const_expr(not XS):\n    x = n\nelif fx.const_expr(XS):\n    for i in range(4):\n        x = n + i\n    y = x",
    ),
    Case(takes="A: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)", codes=("FLY222",),
         call="for i in range(4):\n        z = n + 1\n    k(A, z)"),
    *_fine(
        "x = n\nfor i in range(4):\n    x = x + 1\ny = x + 1",
        "for i in fx.range_constexpr(4):\n    x = n + i\ny = x + i",
        "if fx.const_expr(XS):\n    x = n + 1\ny = x + 1",
        "if fx.const_expr(True):\n    x = n\nfor i in range(4):\n    x = n + 1\ny = x",
        "if fx.const_expr(XS):\n    x = n\nelse:\n    y = n\nif n > 2:\n    x = n + 1\ny = x",
        "for i in fx.range_constexpr(2):\n    if fx.const_expr(i == 0):\n        x = n\n    else:\n        if n > 2:\n"
        "            x = n + 1\n        y = x",
        "if fx.const_expr(XS):\n    x = n\n    if n > 2:\n        x = n + 1\nelse:\n    x = 2 * n\ny = x",
        "for i in range(4):\n    x = n + i\n    if x > 2:\n        y = x",
        "for i in range(4):\n    x = n\ny = [x for x in XS]",
        "for i in range(4):\n    x = n\ndef f(x):\n    return x\ny = f(n)",
        "for i in range(4):\n    x = n\n    def f():\n        return x\n    y = f()",
        "for i, s in range(0, 4, 1, init=[n]):\n    z = n\n    r = yield [s[0] + 1]\nx = z + 1",
        "try:\n    x = n\nexcept Exception:\n    pass\ny = x",
        "if fx.const_expr(not XS):\n    x = n\nelse:\n    for i in range(4):\n        x = n + i\n    try:\n        y = x\n"
        "    except NameError:\n        y = n",
        "for XS in range(4):\n    y = XS\nx = n",
    ),
]  # fmt: skip
"""Variables that are assigned in blocks and read outside."""

HALF = "launch(torch.zeros(4, 4, dtype=torch.float16), 3)"
FLOAT = "launch(torch.zeros((4, 4), dtype=torch.float32), 3)"


def _elements(*cases: tuple[str, str], refused: bool) -> list[Case]:
    """Cases of a body and the host's call."""
    return [Case(body, ("FLY223",) * refused, host=host) for body, host in cases]


ELEMENTS = [
    *_elements(
        ("x = 0.0\nfor i in range(n):\n    x = A[i, 0]", HALF),
        ("x = 0\nfor i in range(n):\n    x = A[i, 0]", FLOAT),
        ("x = 0\nfor i in range(n):\n    x += A[i, 0]", FLOAT),
        ("x = 0.0\nfor j in fx.range_constexpr(2):\n    for i in range(n):\n        x = A[i, 0]", HALF),
        ("x = 0.0\nfor i in range(n):\n    x = A[i, 0]", "launch(torch.zeros(4, 4).half(), 3)"),
        (
            "x = 0.0\nfor i in range(n):\n    x = A[i, 0]",
            "launch(torch.zeros(4, 4).to(torch.bfloat16).contiguous(), 3)",
        ),
        ("x = 0.0\nfor i in range(n):\n    x = A[n, i]", "launch(flyc.from_torch_tensor(torch.zeros(4, 4).half()), 3)"),
        ("x = 0\nfor i in range(n):\n    x = A[i, 0]", "launch(torch.zeros(4, 4, dtype=torch.int64), 3)"),
        refused=True,
    ),
    *_elements(
        ("x = 0.0\nfor i in range(n):\n    x = A[i, 0]", FLOAT),
        ("x = 0.0\nfor i in range(n):\n    x = A[i, 0]", "launch(torch.zeros(4, 4).half().float(), 3)"),
        ("x = 0.0\nfor i in range(n):\n    x += A[i, 0]", HALF),
        ("x = 0.0\nfor i in range(n):\n    x = fx.Float32(A[i, 0])", HALF),
        ("x = 0.0\nif fx.const_expr(False):\n    for i in range(n):\n        x = A[i, 0]", HALF),
        ("x = 0.0\nfor i in range(n):\n    if fx.const_expr(False):\n        x = A[i, 0]", HALF),
        ("x = A[0, 0]\nfor i in range(n):\n    x = A[i, 0]", HALF),
        refused=False,
    ),
    Case(
        "x = 0\nfor i in range(n):\n    x += A[i, 0]",
        host="launch(torch.zeros(4, 4, dtype=torch.int32), 3)",
        taken_since="0.2.2",
    ),
]
"""Elements of tensor arguments, whose type the host's tensor decides."""

CARRIED = [
    *ELEMENTS,
    *_told(
        "FLY223",
        "x = None\nfor i in range(4):\n    x = n + 1",
        "x, y = None, n\nfor i in range(4):\n    x = n + 1",
        "x = None\nfor i in range(4):\n    if n > 1:\n        x = n",
        "for j in range(2):\n    x = None\n    for i in range(4):\n        x = n",
        "xs = []\nfor i in range(4):\n    xs.append(n)",
        "xs = []\nfor i in range(4):\n    xs += [n]",
        "xs = [n]\nfor i in range(4):\n    for j in fx.range_constexpr(2):\n        xs.append(n)",
        "xs = set()\nfor i in range(4):\n    xs.add(1)",
        "x = 0\nfor i in range(4):\n    x = 0.5",
        "x = 0\nfor i in range(4):\n    x += fx.Float32(1.0)",
        "x = 0\nfor i in range(4):\n    x = x + fx.Float32(1.0)",
        "x = None\nfor i in range(4):\n    x = x + n",
        "x = None\nfor i in range(4):\n    x += n",
        "x = 0\nz = fx.Float32(0.0)\nfor i in range(4):\n    x = x + (n > 2).select(fx.Float32(n), z)",
        "x = 0\nz = fx.Float32(0.0)\nfor i in range(4):\n    x += (n > 2).select(n, z)",
        "xs = []\nfor i in range(4):\n    xs = xs + [n]",
        "x = 0\nfor i in range(4):\n    x = fx.Int64(n)",
        "x = 0.5\nfor i in range(4):\n    x = n + 1",
        "r = fx.make_rmem_tensor(4, fx.Float32)\nx = 0\nfor i in range(4):\n    x = r[0]",
        "r = fx.make_rmem_tensor(4, fx.Float32)\nx = 0\nfor i in range(4):\n    x += r[i]",
        "r = fx.make_rmem_tensor(4, fx.Float16)\nx = 0.0\nfor i in range(4):\n    x = r[0]",
        "r = fx.make_rmem_tensor(4, fx.BFloat16)\nx = 0.0\nfor i in range(4):\n    x = r[i]",
        "r = fx.make_rmem_tensor(4, fx.Float64)\nx = 0.0\nfor i in range(4):\n    x = r[0]",
        "r = fx.make_rmem_tensor(4, fx.Int8)\nx = 0\nfor i in range(4):\n    x = r[0]",
        "r = fx.make_rmem_tensor(4, fx.Int64)\nx = 0\nfor i in range(4):\n    x = r[i + 1]",
        "r = fx.make_rmem_tensor(4, fx.Uint64)\nx = 0\nfor i in range(4):\n    x = r[0]",
        "r = fx.make_rmem_tensor(4, fx.Int64)\nx = 0\nfor i in range(4):\n    x += r[0]",
        "r = fx.make_rmem_tensor((2, 2), fx.Float32)\nx = 0\nfor i in range(4):\n    x = r[0, 1]",
        "r = fx.make_rmem_tensor(4, fx.Boolean)\nx = 0\nfor i in range(4):\n    x = r[0]",
        "r = fx.make_rmem_tensor(4, fx.Int32)\nx = 0.5\nfor i in range(4):\n    x = r[0]",
        "r = fx.make_rmem_tensor(4, dtype=fx.Float32)\nx = 0\nfor i in range(4):\n    x = r[0]",
        "v = fx.Int32(1)\nx = 0\nfor i in range(4):\n    x = v.to(fx.Int64)",
        "v = fx.Float32(1)\nx = 0.0\nfor i in range(4):\n    x = v.to(fx.Float16)",
    ),
    *_fine(
        "x = None\nfor i in fx.range_constexpr(4):\n    x = n + 1",
        "x = None\nx = n\nfor i in range(4):\n    x = n + 1",
        "xs = []\nfor i in fx.range_constexpr(4):\n    xs.append(n)",
        "def select(a, b):\n    return fx.Int32(1)\nx = 0\nz = fx.Float32(0.0)\nfor i in range(4):\n    x += select(z, z)",
        "for i in range(4):\n    xs = []\n    xs.append(n)",
        "x = 0\nfor i in range(4):\n    x = x + n",
        "x = fx.Float32(0.0)\nfor i in range(4):\n    x += 1",
        "r = fx.make_rmem_tensor(4, fx.Int32)\nx = 0\nfor i in range(4):\n    x = r[0]",
        "r = fx.make_rmem_tensor(4, fx.Uint32)\nx = 0\nfor i in range(4):\n    x = r[i]",
        "r = fx.make_rmem_tensor(4, fx.Float32)\nx = 0.0\nfor i in range(4):\n    x = r[0]",
        "r = fx.make_rmem_tensor(4, fx.Float16)\nx = 0.0\nfor i in range(4):\n    x += r[0]",
        "r = fx.make_rmem_tensor(4, fx.Int32)\nx = 0\nfor i in range(4):\n    x += r[i]",
        "v = fx.Int32(1)\nx = 0.0\nfor i in range(4):\n    x = v.to(fx.Float32)",
    ),
]
"""Variables that a GPU loop carries."""

BOUNDS = [
    *_told(
        "FLY224",
        "m = fx.Int64(n)\nfor i in range(m):\n    x = n",
        "for i in range(n * fx.Int64(2)):\n    x = n",
        "for i in range(0, 4, fx.Int64(1)):\n    x = n",
        "for i in range(fx.Int16(n)):\n    x = n",
        "for i in range(fx.Float32(n)):\n    x = n",
        "for i in range(n / 2):\n    x = n",
        "for i in range(2.0):\n    x = n",
        "for i in range(5000000000):\n    x = n",
        "for i, s in fx.range_constexpr(0, 4, 1, init=[n]):\n    x = n",
        "for i in fx.range_constexpr(4, unroll=2):\n    x = n",
    ),
    *_fine(
        "for i in range(fx.Int32(fx.Int64(n))):\n    x = n",
        "for i in range(fx.Uint32(n)):\n    x = n",
        "for i in range(n // 2):\n    x = n",
        "for i in range(4, 0, -1):\n    x = n",
        "for i in fx.range_constexpr(8 // 2):\n    x = n",
    ),
]
"""Bounds and keywords of loops."""

_TILED = """\
atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    tc = fx.make_tiled_copy_tv(atom, fx.make_ordered_layout((4, 16), (1, 0)), fx.make_ordered_layout((1, 4), (1, 0)))
    mm = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32)), fx.make_layout((1, 1, 1), (1, 1, 1)))
    """
_SLICE = "part = tc.get_slice(fx.thread_idx.x).partition_S(A)"
_PLAN = "@flyc.jit\ndef plan(A: fx.Tensor, tc: fx.TiledCopy):\n    x = tc.tile_mn\n"


def _copy(call: str, *codes: str, body: str = _SLICE, kind: str = "TiledCopy", refused: bool | None = None) -> Case:
    params = f"A: fx.Tensor, tc: fx.{kind}"
    return Case(body, codes, params, call=f"{_TILED}k({call})", host="launch(torch.zeros(64, 64), 3)", refused=refused)


TILED = [
    _copy("A, tc"),
    _copy("tc, A", "FLY218", "FLY218"),
    _copy("tc, A", "FLY218", "FLY218", body="x = tc.tile_mn"),
    _copy("tc, A", "FLY218", "FLY218", body="x = A.shape"),
    _copy("tc, A", "FLY218", "FLY218", body="x = 1", refused=False),
    _copy("A, atom", "FLY218"),
    _copy("A, n", "FLY218"),
    _copy("A, mm", "FLY218"),
    _copy("A, tc", "FLY218", body="x = tc.thr_slice(fx.thread_idx.x).make_fragment_A(A)", kind="TiledMma"),
    _copy("A, tc", "FLY218", body="x = tc + 1", kind="Int32"),
    _copy("A, tc", body="x = tc.tile_mn", kind="Constexpr"),
    Case(helper=_PLAN, call=f"{_TILED}plan(A, tc)\n    k(A, n)", host="launch(torch.zeros(64, 64), 3)"),
    Case(helper=_PLAN, call=f"{_TILED}plan(tc, A)\n    k(A, n)", host="launch(torch.zeros(64, 64), 3)", codes=("FLY218", "FLY218")),
]  # fmt: skip
"""Tensors, tiled copies and numbers in each other's places."""

PLAIN = [
    *_late(
        "for v in XS:\n    for i in range(n):\n        x = n",
        "for v in XS:\n    for i in fx.range_constexpr(n):\n        x = n",
    ),
    *_fine(
        "for v in XS:\n    for i in range(4):\n        x = XS[i] + n",
        "for v in XS:\n    for i in range(4):\n        x = n + i\n    y = x",
        "for v, w in enumerate(XS):\n    for i in range(4):\n        break\nx = n",
        "xs = []\nfor v in XS:\n    for i in range(4):\n        xs.append(n)",
        "for v in XS:\n    if n > 1:\n        for i in range(4):\n            x = XS[i] + n",
        "for v in XS:\n    for j in fx.range_constexpr(2):\n        for i in range(4):\n            x = XS[i] + n",
        "for v in XS:\n    def f():\n        for i in range(4):\n            x = XS[i] + n\n    f()",
        "for v in XS:\n    for i in range(n.value if False else 4 // 2):\n        x = n",
    ),
]
"""Loops in loops over lists, which remain Python's."""

CONDITIONS = [
    *_told(
        "FLY229",
        "if n:\n    x = 1",
        "if n & 1:\n    x = 1",
        "if fx.thread_idx.x % 2:\n    x = n",
        "lane = fx.thread_idx.x % 64\nif lane:\n    x = n",
        "while n // 2 - 1:\n    x = n",
        "x = 1 if n - 1 else 2",
        "for i in range(4):\n    if i & 1:\n        x = n",
        "if fx.Int64(n):\n    x = 1",
        "if n & fx.Int32(15):\n    x = 1",
        "if n >> 1:\n    x = 1",
        "from flydsl.expr import gpu\ntid = fx.Int32(gpu.thread_id('x'))\nlane = tid - 4 * 3\nif lane:\n    x = n",
        "def f():\n    if n:\n        x = 1\nf()",
    ),
    *_fine(
        "if (n & 1) != 0:\n    x = 1",
        "if not n:\n    x = 1",
        "odd = n % 2 == 1\nif odd:\n    x = 1",
        "if (n > 1) & (n < 3):\n    x = 1",
        "if fx.Boolean(n > 1):\n    x = 1",
        "if (n > 1) & fx.Boolean(True):\n    x = 1",
        "from flydsl.expr import gpu\ntid = fx.Int32(gpu.thread_id('x'))\nif tid == 0:\n    x = n",
        "if n > 1 and n < 3:\n    x = 1 if n > 1 else 2",
        "for i in fx.range_constexpr(4):\n    if i & 1:\n        x = n",
        "if len(XS):\n    x = n",
        "n = 3\nif n & 1:\n    x = n",
        "x = 1 if XS else n",
    ),
]
"""Conditions of the GPU that are numbers."""

BLOCKS = [*CONDITIONS, *TILED, *PLAIN, *EXITS, *SCOPES, *CARRIED, *BOUNDS]
