"""Programs in the styles of maintainers: what lint says of each, and whether FlyDSL refuses it."""

from __future__ import annotations

FAULTS = {
    "jit by call": (
        "FLY211",
        """\
@flyc.kernel
def k(A: fx.Tensor, n: fx.Int32):
    x = n + 1


def _launch(A: fx.Tensor, n: fx.Int32):
    k(A, n).launch(grid=(1,), block=(64,))


launch = flyc.jit(_launch)


def run():
    launch(torch.zeros(4, 4))
""",
    ),
    "kernel by call": (
        "FLY211",
        """\
def _k(A: fx.Tensor, n: fx.Int32):
    x = n + 1


k = flyc.kernel(_k)


@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32):
    k(A).launch(grid=(1,), block=(64,))


def run():
    launch(torch.zeros(4, 4), 3)
""",
    ),
    "a factory that returns two": (
        "FLY211",
        """\
def build(tile):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        x = n + tile

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        k(A, n).launch(grid=(1,), block=(64,))

    return k, launch


def run():
    k, launch = build(4)
    launch(torch.zeros(4, 4))
""",
    ),
    "helper method decides": (
        "FLY217",
        """\
class Op:
    def clamp(self, n):
        if n > 4:
            return 4
        return n

    @flyc.kernel
    def k(self, A: fx.Tensor, n: fx.Int32):
        x = self.clamp(n)

    @flyc.jit
    def start(self, A: fx.Tensor, n: fx.Int32):
        self.k(A, n).launch(grid=(1,), block=(64,))


def run():
    Op().start(torch.zeros(4, 4), 3)
""",
    ),
    "a captured number as an operand": (
        "FLY218",
        """\
def build(tile: int):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        x = n

    @flyc.jit
    def launch(A: fx.Tensor):
        k(A, tile).launch(grid=(1, 1, 1), block=(64,))

    return launch


def run():
    build(4)(torch.zeros(4, 4))
""",
    ),
    "a captured tuple by a thread": (
        "FLY217",
        """\
def build(order: tuple):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        x = order[fx.thread_idx.x % 4] + n

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        k(A, n).launch(grid=(1,), block=(64,))

    return launch


def run():
    build((0, 1, 2, 3))(torch.zeros(4, 4), 3)
""",
    ),
}
"""The code that is reported, and the program below the imports."""

RIGHT = {
    "method helper": """\
class Op:
    def pick(self, w, v):
        if w > 2:
            return v
        return 0

    @flyc.kernel
    def k(self, A: fx.Tensor, n: fx.Int32):
        x = self.pick(3, n)

    @flyc.jit
    def start(self, A: fx.Tensor, n: fx.Int32):
        self.k(A, n).launch(grid=(1,), block=(64,))


def run():
    Op().start(torch.zeros(4, 4), 3)
""",
    "two launchers in an attribute": """\
def build(t):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        x = n + t

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        k(A, n).launch(grid=(1, 1, 1), block=(64,))

    return launch


def plain(a):
    return a


class Op:
    def __init__(self, fast):
        if fast:
            self.go = build(4)
        else:
            self.go = plain

    def __call__(self, a):
        return self.go(a) if self.go is plain else self.go(a, 3)


def run():
    Op(False)(torch.zeros(4, 4))
""",
    "subclass replaces the launcher": """\
def build(t):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        x = n + t

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        k(A, n).launch(grid=(1, 1, 1), block=(64,))

    return launch


def one(t):
    def go(a):
        return a

    return go


class Base:
    def __init__(self):
        self.go = build(4)

    def __call__(self, a):
        return self.go(a)


class Op(Base):
    def __init__(self):
        self.go = one(4)


def run():
    Op()(torch.zeros(4, 4))
""",
    "unpacked in the other order": """\
def build(t):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        x = n + t

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        k(A, n).launch(grid=(1, 1, 1), block=(64,))

    return launch, t


def run():
    go, t = build(4)
    go(torch.zeros(4, 4), t)
""",
    "different tuples": """\
def build(t):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        x = n + t

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        k(A, n).launch(grid=(1, 1, 1), block=(64,))

    if t > 3:
        return launch, t
    return (lambda a: a), t


def run():
    go, t = build(2)
    go(torch.zeros(4, 4))
""",
    "jit by call with all": """\
@flyc.kernel
def k(A: fx.Tensor, n: fx.Int32):
    x = n + 1


def _launch(A: fx.Tensor, n: fx.Int32):
    k(A, n).launch(grid=(1,), block=(64,))


launch = flyc.jit(_launch)


def run():
    launch(torch.zeros(4, 4), 3)
""",
    "jit by call twice": """\
@flyc.kernel
def k(A: fx.Tensor, n: fx.Int32):
    x = n + 1


def _launch(A: fx.Tensor, n: fx.Int32):
    k(A, n).launch(grid=(1,), block=(64,))


def _other(A: fx.Tensor):
    k(A, fx.Int32(3)).launch(grid=(1,), block=(64,))


launch = flyc.jit(_launch)
launch = flyc.jit(_other)


def run():
    launch(torch.zeros(4, 4))
""",
    "plain default that is replaced": """\
@flyc.kernel
def k(A: fx.Tensor, B: fx.Tensor):
    x = 1


@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor):
    k(A, B).launch(grid=(1, 1, 1), block=(64,))


def run():
    bias = None
    if bias is None:
        bias = torch.zeros(4)
    launch(torch.zeros(4, 4), bias)
""",
    "captured number as a constexpr": """\
def build(tile: int):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Constexpr[int]):
        x = n

    @flyc.jit
    def launch(A: fx.Tensor):
        k(A, tile).launch(grid=(1, 1, 1), block=(64,))

    return launch


def run():
    build(4)(torch.zeros(4, 4))
""",
    "captured number made a value": """\
def build(tile: int):
    tile = fx.Int32(tile) if False else tile

    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        x = n

    @flyc.jit
    def launch(A: fx.Tensor):
        t = fx.Int32(tile)
        k(A, t).launch(grid=(1, 1, 1), block=(64,))

    return launch


def run():
    build(4)(torch.zeros(4, 4))
""",
    "captured tuple by a constant index": """\
def build(order: tuple):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        for i in fx.range_constexpr(4):
            x = order[i] + n

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        k(A, n).launch(grid=(1,), block=(64,))

    return launch


def run():
    build((0, 1, 2, 3))(torch.zeros(4, 4), 3)
""",
    "attribute set from outside": """\
def build(t):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        x = n + t

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        k(A, n).launch(grid=(1, 1, 1), block=(64,))

    return launch


class Op:
    def __init__(self):
        self.go = build(4)

    def __call__(self, a):
        return self.go(a)


def run():
    op = Op()
    op.go = lambda a: a
    op(torch.zeros(4, 4))
""",
    "setattr of the launcher": """\
def build(t):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        x = n + t

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        k(A, n).launch(grid=(1, 1, 1), block=(64,))

    return launch


class Op:
    def __init__(self):
        self.go = build(4)
        setattr(self, "go", lambda a: a)

    def __call__(self, a):
        return self.go(a)


def run():
    Op()(torch.zeros(4, 4))
""",
    "wrapped in the class": """\
def build(t):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        x = n + t

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        k(A, n).launch(grid=(1, 1, 1), block=(64,))

    return launch


def bind(f):
    return lambda a: f(a, 3)


class Op:
    def __init__(self):
        go = build(4)
        self.go = bind(go)

    def __call__(self, a):
        return self.go(a)


def run():
    Op()(torch.zeros(4, 4))
""",
    "attribute by two methods": """\
def build(t):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        x = n + t

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        k(A, n).launch(grid=(1, 1, 1), block=(64,))

    return launch


class Op:
    go = None

    def prepare(self):
        self.go = build(4)

    def __call__(self, a):
        if self.go is None:
            self.prepare()
        return self.go(a, 3)


def run():
    Op()(torch.zeros(4, 4))
""",
}
"""Programs that only look wrong."""
