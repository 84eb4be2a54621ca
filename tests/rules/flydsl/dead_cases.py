"""Small programs with errors that do not run, lists of lists, and methods of Python's numbers on GPU numbers."""

from __future__ import annotations

from tests.rules.flydsl.launch_cases import Case

TENSOR = "fx.make_rmem_tensor(4, fx.Int32)"
INDEXED = "for i in range(2):\n    x = xs[0][i]"


def _told(code: str, *bodies: str) -> list[Case]:
    return [Case(body, (code,)) for body in bodies]


def _fine(*bodies: str) -> list[Case]:
    return [Case(body) for body in bodies]


DEAD = [
    *_fine(
        "if fx.const_expr(False):\n    if n > 2:\n        return\nx = n",
        "flag = False\nif fx.const_expr(flag):\n    if n > 2:\n        return\nx = n",
        "if fx.const_expr(len(XS) > 100):\n    x = XS[n]",
        "if fx.const_expr(True):\n    x = n\nelse:\n    x = XS[n]",
        "if fx.const_expr(True):\n    x = n\nelif fx.const_expr(n > 2):\n    x = n",
        "flag = True\nif fx.const_expr(not flag):\n    x = XS[n]",
        "if fx.const_expr(False):\n    if n > 2:\n        y = n\n    x = y",
        "if fx.const_expr(False):\n    if n & 1:\n        x = n",
        "while fx.const_expr(False):\n    x = XS[n]",
        "x = n if True else XS[n]",
        "x = XS[n] if fx.const_expr(False) else n",
        "x = fx.const_expr(False) and XS[n]",
        "def f():\n    return XS[n]\nx = n",
        "try:\n    x = n.bit_length()\nexcept AttributeError:\n    x = n",
    ),
    *_told(
        "FLY217",
        "for i in fx.range_constexpr(2):\n    if fx.const_expr(i == 1):\n        x = XS[n]",
        "if fx.const_expr(True):\n    x = XS[n]",
        "def f():\n    return XS[n]\nx = f()",
    ),
    *_told(
        "FLY221", "for i in fx.range_constexpr(4):\n    if fx.const_expr(False):\n        if n > 2:\n            break"
    ),
    *_told("FLY223", "x = None\nfor i in range(4):\n    if fx.const_expr(False):\n        x = n"),
]

LISTS = [
    *_told(
        "FLY217",
        f"xs = [[n, n + 1], [n, n]]\n{INDEXED}",
        f"xs = [[n + s for s in range(2)] for u in range(2)]\n{INDEXED}",
        "xs = [[n + s for s in range(2)] for u in range(2)]\nfor s in range(2):\n    x = xs[1][s]",
    ),
    *_fine(
        "xs = [[n, n + 1], [n]]\nfor i in fx.range_constexpr(2):\n    x = xs[0][i]",
        "xs = [n, n + 1]\nfor s in range(2):\n    x = [xs[s] for s in fx.range_constexpr(2)]",
        f"xs = [[n, n + 1], [n]]\ndef fill(a):\n    a[0] = {TENSOR}\nfill(xs)\n{INDEXED}",
        f"xs = [[n, n + 1], [n]]\nys = xs\nys[0] = {TENSOR}\n{INDEXED}",
        f"xs = [[n, n + 1], [n]]\nxs[0], q = {TENSOR}, 2\n{INDEXED}",
        f"xs = [[n, n + 1], [n]]\nxs[0]: object = {TENSOR}\n{INDEXED}",
        f"xs = [[n, n + 1], [n]]\nfor xs[0] in [{TENSOR}]:\n    pass\n{INDEXED}",
        f"xs = [[n, n + 1], [n]]\n[0 for xs[0] in [{TENSOR}]]\n{INDEXED}",
        f"xs = [[n, n + 1], [n]]\nlist.__setitem__(xs, 0, {TENSOR})\n{INDEXED}",
        f"xs = [[n, n + 1], [n]]\n(lambda: xs.__setitem__(0, {TENSOR}))()\n{INDEXED}",
        f"xs = [[n, n + 1], [n]]\ndef f():\n    xs[0] = {TENSOR}\nf()\n{INDEXED}",
        f"xs = [{TENSOR}, [n]]\n{INDEXED}",
    ),
]

METHODS = [
    *_told("FLY217", "x = n.bit_length()", "m = n + 1\nx = m.bit_length()", "x = fx.thread_idx.x.bit_length()"),
    *_fine(
        "m = 5\nx = n + m.bit_length()",
        "x = n.bit_length() if isinstance(n, int) else n",
        "x = n.bit_length() if hasattr(n, 'bit_length') else n",
        "for m in [1, 2]:\n    x = n + m.bit_length()",
        "f = lambda n: n.bit_length()\nx = n + f(4)",
        "x = n + sum([n.bit_length() for n in [1, 2]])",
        "x = n + len(b'ab'.hex())",
    ),
]

SELECTED = [
    *_told(
        "FLY223",
        "x = 0\nz = fx.Float32(0.0)\nfor i in range(4):\n    ok = i + n < 3\n    x = x + ok.select(z, z)",
    ),
    *_fine(
        "x = fx.Float32(0.0)\nz = fx.Float32(0.0)\nfor i in range(4):\n    ok = i + n < 3\n    x = x + ok.select(z, z)",
        "x = 0\nfor i in range(4):\n    ok = i + n < 3\n    x = x + ok.select(n, 1)",
        "x = 0\nz = fx.Float32(0.0)\nfor i in fx.range_constexpr(4):\n    ok = n < 3\n    x = x + ok.select(z, z)",
    ),
]

UNREACHED = [*DEAD, *LISTS, *METHODS, *SELECTED]
