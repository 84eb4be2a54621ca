"""Programs that use values of FlyDSL's types: their attributes, the arguments of its functions, layouts and shared memory."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.flydsl.launch_cases import Case

TILES = """\
buf = fx.make_view(fx.get_iter(A), fx.make_layout((4, 4), (4, 1)))
atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
tile, layout = fx.make_layout_tv(fx.make_layout((4, 1), (1, 1)), fx.make_layout((1, 1), (1, 1)))
tiled = fx.make_tiled_copy(atom, layout, tile)
part = tiled.get_slice(fx.thread_idx.x)
source = part.partition_S(buf)
values = fx.make_fragment_like(source)
mma = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32))
rows = fx.make_layout((1, 1, 1), (1, 1, 0))
multiply = fx.make_tiled_mma(mma, rows)
piece = multiply.thr_slice(fx.thread_idx.x)
vector = fx.Vector.filled(4, 0.0, fx.Float32)
"""
"""A body with a value of each type."""

STRUCTURES = """\
@fx.struct
class Storage:
    sums: fx.Array[fx.Float32, 4, 16]


class Other:
    sums: fx.Array[fx.Float32, 4, 16]


def made(slots):
    @fx.struct
    class Made:
        parts: fx.Array[fx.Float32, slots, 16]

    return Made


Reduction = made(4)
"""

_WIDTH = """\
import os

WIDTH = len(os.sep) + 3
SLOTS = max(1, WIDTH // 2)


class Wide:
    def __rmod__(self, other):
        return self

    def item(self):
        return 1


FIRST = Wide()
WIDE = max(FIRST, FIRST, key=id)
"""

_TRIED = "try:\n    import torch\nexcept ImportError:\n    torch = {}"


def _told(code: str, *lines: str) -> list[Case]:
    return [Case(f"{TILES}x = n\n{line}", (code,)) for line in lines]


def _right(*lines: str) -> list[Case]:
    return [Case(f"{TILES}x = n\n{line}", taken_since="0.2.0") for line in lines]


ATTRIBUTES = [
    *_told(
        "FLY233",
        "y = fx.block_idx.w",
        "y = fx.block_idx[0]",
        "y = fx.gpu.thread_idx[n]",
        "y = fx.gpu.thread_id('w')",
        "y = tiled.slice(0)",
        "y = part.partition_dst(buf)",
        "y = tiled.tile_mnk",
        "values.zero_()",
        "y = values.strides",
        "y = buf[None, 0].zero_()",
        "y = fx.zipped_divide(buf, (2, 2)).size()",
        "y = atom.bits",
        "y = mma.shape",
        "y = piece.partition_D(values)",
        "y = vector.max()",
        "y = values.load().sum()",
        "y = vector.to(fx.Float16).item()",
        "y = fx.Int32(n).item()",
        "y = (fx.Int32(n) << 2).view(fx.Float32)",
        "y = fx.ReductionOp.SUM",
        "y = fx.AddressSpace.GLOBAL",
        "y = fx.GemmTraversalOrder.KNN",
        "y = fx.SharedAllocator().alloc(4)",
        "def load(t):\n    return fx.memref_load_vec(t)\ny = load(values).mean()",
        "def inner():\n    return tiled.slice(0)\ny = inner()",
    ),
    *_right(
        "y = fx.block_idx.z",
        "thread_idx = [n]\ny = thread_idx[0]",
        "y = values.load().reduce(fx.ReductionOp.ADD)",
        "y = values.type",
        "y = part.tile_mn",
        "y = part.thr_idx",
        "y = piece.tiled_mma",
        "values = [n]\nvalues.sort(key=str)",
        "values = [n]\ny = [values.count for values in ('a', 'b')]",
        "if fx.const_expr(hasattr(values, 'zero_')):\n    values.zero_()",
        "if fx.const_expr(False):\n    values.zero_()",
        "for tiled in ('a', 'b'):\n    y = tiled.upper()",
        "def inner(tiled):\n    return tiled.upper()\ny = inner('a')",
        "def load(t):\n    return 'a'\ny = load(values).upper()",
        "y = {'a': vector}.items()",
        "vector.tag = 1\ny = vector.tag",
        "*rows, = [rows, rows]\nrows.append(1)",
        "*row, = [rows]\nrow.append(1)",
        "async def load(t):\n    return fx.memref_load_vec(t)\nload(values).close()",
        "y = [n.upper() for n in ('a', 'b')]",
        "y = (1).real",
    ),
    Case(f"{TILES}x = values.zero_()", helper="if not torch:\n    fx.Tensor.zero_ = int", refused=True),
    Case(
        call="y = n.item()\n    k(A, n)",
        codes=("FLY233",),
    ),
]
"""Attributes that values have, and that they do not have."""

METHODS = [
    *_told(
        "FLY228",
        "y = vector.reduce()",
        "y = vector.reduce(fx.ReductionOp.ADD, fast=True)",
        "y = fx.Float32(1.0).shuffle_xor(1)",
        "y = (fx.Int32(n) < 3).select(n)",
        "y = part.retile(values, values)",
        "y = piece.make_fragment_B(values, 2)",
        "y = piece.make_fragment_B(values, stage=2)",
        "y = tiled.get_slice()",
    ),
    *_right(
        "y = vector.reduce(fx.ReductionOp.ADD, fastmath=None)",
        "y = fx.Float32(1.0).shuffle_xor(1, 64)",
        "args = (n, 0)\ny = (fx.Int32(n) < 3).select(*args)",
        "vector = [1]\ny = vector.index(1)",
    ),
]
"""Calls of methods."""

INFERRED = [
    *_told(
        "FLY233",
        "y = (vector * 2.0).max()",
        "y = (vector < vector).any()",
        "y = vector[0].item()",
        "y = (fx.Int32(n) % WIDTH).item()",
        "y = (fx.Int32(n) + WIDTH * 2).item()",
        "y = (fx.Int32(n) % SLOTS).item()",
        "for i in fx.range_constexpr(4):\n    y = (fx.Int32(n) + i * WIDTH).item()",
        "y = fx.Float32(1.0).addf(fx.Float32(2.0)).item()",
        "y = fx.Vector(vector).max()",
        "y = vector if WIDTH > 1 else vector * 2.0\nz = y.max()",
        "def f(v):\n    return v.max()\ny = f(vector)",
        "def f(v):\n    w = v\n    return (w * 2.0).max()\ny = f(vector)",
        "y = vector\nfor i in fx.range_constexpr(4):\n    y = y + vector\nz = y.max()",
        "y = fx.Float32(0.0)\nfor i in fx.range_constexpr(4):\n    w = y.shuffle_xor(i, 64)\n    y = y.addf(w)\nz = y.item()",
    ),
    *_told(
        "FLY228",
        "def f(v):\n    return v.shuffle_xor(1)\ny = f(fx.Float32(1.0))",
        "def f(v):\n    w = v\n    for i in fx.range_constexpr(2):\n        w = w.addf(v, fast=1)\n    return w\n"
        "y = f(fx.Float32(1))",
    ),
    *_right(
        "def f(v):\n    return v.upper()\ny = f('a')",
        "def f(v):\n    return v.strip()\ny = [f(v) for v in ('a', 'b')]",
        "def f(v):\n    return v.upper() if isinstance(v, str) else v\ny = (f('a'), f(vector))",
        "def f(v):\n    if fx.const_expr(isinstance(v, list)):\n        v.sort()\n    return v\ny = f(vector)",
        "def f(v, plain):\n    if fx.const_expr(plain):\n        v.sort()\n    return v\ny = (f([1], True), f(vector, False))",
        "y = vector\nfor i in fx.range_constexpr(2):\n    y = [i]\ny.sort()",
        "y = 'a'\nfor i in fx.range_constexpr(2):\n    y = y + 'b'\nz = y.upper()",
        "y = (WIDTH * 2).bit_length()",
        "y = (fx.Int32(n) % WIDE).item()",
        "rows = [vector] * 2\nrows.append(vector)",
        "y = vector[0] + 1.0",
    ),
]
"""Types that follow from operations, variables of loops, and what helpers are passed."""

ARGUMENTS = [
    *_told(
        "FLY234",
        "y = fx.make_copy_atom(fx.UniversalCopy32b, fx.Float32)",
        "y = fx.make_copy_atom(fx.UniversalCopy32b(), torch.float32)",
        "y = fx.make_copy_atom(fx.UniversalCopy32b(), float)",
        "y = fx.make_copy_atom(fx.UniversalCopy32b(), 'f32')",
        "y = fx.make_mma_atom(fx.rocdl.MFMA)",
        "y = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, torch.float32))",
        "y = fx.make_rmem_tensor(4, torch.float32)",
        "y = fx.make_rmem_tensor(4, 32)",
        "y = fx.make_fragment_like(source, dtype=bool)",
        "y = fx.Vector.filled(4, 0.0, float)",
        "y = fx.full(4, 0.0, dtype=torch.float32)",
        "y = fx.Vector.from_elements([n], torch.int32)",
        "y = fx.Vector.from_elements(fx.Int32, [n])",
        "y = vector.to(torch.float16)",
        "y = vector.bitcast(torch.int32)",
        "y = fx.Int32(n).to(torch.float32)",
        "y = fx.Float32('0')",
        "y = fx.Int32(None)",
        "y = fx.Int32()",
        "y = fx.Boolean()",
        "y = fx.Int32((n,))",
        "y = fx.Int32(torch.int32)",
        "fx.copy(source, values, atom)",
        "fx.copy(atom, rows, values)",
        "fx.copy(mma, source, values)",
        "fx.copy(atom, source, n + fx.Int32(1))",
        "fx.copy_atom_call(tiled, source, values)",
        "y = fx.make_tiled_copy(rows, rows, tile)",
        "y = fx.make_tiled_copy(atom, tile, layout)",
        "y = fx.make_tiled_copy_A(multiply, atom)",
        "y = fx.make_tiled_copy_A(atom, mma)",
        "y = fx.make_tiled_mma(rows, mma)",
        "y = fx.make_layout_tv((4, 1), (1, 1))",
        "y = fx.make_view(buf, rows)",
        "y = fx.make_view(fx.get_iter(A), (4, 4))",
        "y = part.partition_S(atom)",
        "y = piece.make_fragment_A(rows)",
        "y = fx.rocdl.make_buffer_tensor(atom)",
    ),
    *_right(
        "y = fx.make_copy_atom(fx.UniversalCopy32b(), 32)",
        "y = fx.make_fragment_like(source, fx.Float16)",
        "y = fx.make_fragment_like(source, None)",
        "y = fx.Vector.from_elements([n, n])",
        "y = fx.Int32(True)",
        "y = fx.Float32(1)",
        "y = fx.Int32(4.0)",
        "fx.copy(atom, source, values)",
        "fx.copy(atom, source, values, pred=None)",
        "y = fx.make_tiled_copy_A(atom, piece)",
        "y = fx.Float32(1.0).to(float)",
        "y = [fx.Vector.filled(4, 0.0, float) for float in (fx.Float32,)]",
        "y = (lambda float: fx.Vector.filled(4, 0.0, float))(fx.Float32)",
        "y = torch.zeros(4).to(torch.float16)",
        "if fx.const_expr(False):\n    fx.copy(source, values, atom)",
        "try:\n    y = fx.Int32('a')\nexcept ValueError:\n    y = n",
    ),
    Case(f"{TILES}y = fx.make_rmem_tensor(4, torch.float32)", ("FLY234",), helper=_TRIED.format("None")),
    Case(f"{TILES}y = fx.make_rmem_tensor(4, torch.float32)", helper=_TRIED.format("fx"), refused=True),
    Case(
        f"{TILES}y = fx.make_rmem_tensor(4, torch.float32)",
        helper=f"{_TRIED.format('None')}\n\n\ndef setup():\n    global torch\n    torch = None",
        refused=True,
    ),
    Case(
        f"{TILES}y = fx.make_rmem_tensor(4, torch.float32)",
        helper=f"{_TRIED.format('None')}\n\nglobals()['torch'] = torch",
        refused=True,
    ),
]
"""Arguments of the right and of other types."""

LAYOUTS = [
    *_told(
        "FLY235",
        "y = fx.make_layout((4, 1), (1, 1, 1))",
        "y = fx.make_layout((4, 1), ((1, 1), 1))",
        "y = fx.make_layout((4, 1), 1)",
        "y = fx.make_layout(4, (1,))",
        "y = fx.make_layout(shape=(4, 1), stride=[1, 1, 1])",
        "y = fx.make_layout(((4, 2), 1), (1, 1))",
        "y = fx.make_ordered_layout((8, 16), order=(1, 0, 2))",
        "y = fx.make_ordered_layout(8, (1,))",
        "y = fx.make_layout((4, 2.0), (1, 1))",
        "y = fx.make_layout((4, 8 / 2), (1, 1))",
        "half = 2.0\ny = fx.make_layout((4, half), (1, 1))",
        "y = fx.zipped_divide(buf, (2, 4 / 2))",
        "y = fx.make_tile(4, 2.0)",
        "y = fx.make_rmem_tensor((4, 2.0), fx.Float32)",
    ),
    *_right(
        "y = fx.make_layout([4, 1], (1, 4))",
        "y = fx.make_layout((4, n), (1, 4))",
        "y = fx.make_layout((4, len(XS)), (1, 4))",
        "pair = (2, 2)\ny = fx.make_layout((4, pair), (1, (4, 8)))",
        "pair = (2, 2)\ny = fx.make_layout(pair, (1, 2))",
        "pair = (2, 2)\ny = fx.make_layout((4, *pair), (1, 4, 8))",
        "y = fx.make_ordered_layout((8, (4, 2)), (0, 1))",
        "y = fx.make_ordered_layout((8, 16), 0)",
        "y = fx.zipped_divide(buf, (2, 4 // 2))",
        "half = 2.0\ny = [fx.make_layout((4, half), (1, 4)) for half in (1, 2)]",
        "half = 2.0\nhalf = int(half)\ny = fx.make_layout((4, half), (1, 1))",
    ),
]
"""Shapes with strides, orders and floats."""


def _stored(line: str, *codes: str, helper: str = STRUCTURES) -> Case:
    return Case(f"x = n\n{line}", codes, helper=helper, taken_since="0.2.0")


_USE = "s = fx.SharedAllocator().allocate(Storage).peek()\ny = s.sums.view(fx.make_layout(4, 1))"

STORAGES = [
    *(
        _stored(line, "FLY236")
        for line in (
            "s = fx.SharedAllocator().allocate(Storage).peek()\ny = s.sum",
            "s = fx.SharedAllocator().allocate(Reduction).peek()\ny = s.sums",
            "s = fx.SharedAllocator().allocate(Storage).peek()\ndef f():\n    return s.sum\ny = f()",
            "y = fx.SharedAllocator().allocate(Other).peek()",
            "y = fx.SharedAllocator().allocate(Storage())",
        )
    ),
    *(
        _stored(_USE, "FLY236", helper=f"SLOTS = 4\n\n\n@fx.struct\nclass Storage:\n    sums: fx.Array{given}")
        for given in (
            "[4, fx.Float32, 16]",
            "[SLOTS, fx.Float32, 16]",
            "[float, 4, 16]",
            "[torch.float32, 4]",
            "[fx.Float32]",
            "[fx.Float32, 4, 16, 1]",
            "[fx.Float32, 4, 12]",
            "[fx.Float32, 4.0]",
            "[fx.Float32, 0]",
            "(fx.Float32, 4)",
        )
    ),
    *(
        _stored(line)
        for line in (
            _USE,
            "s = fx.SharedAllocator().allocate(Reduction).peek()\ny = s.parts",
            "y = fx.SharedAllocator().allocate(64)",
            "s = fx.SharedAllocator().allocate(Storage).peek()\ns = 'a'\ny = s.upper()",
            "alloc = fx.SharedAllocator()\ns = alloc.allocate(Storage).peek()\ny = s.sums",
            "s = fx.SharedAllocator().allocate(Storage).peek()\ny = s.replace",
            "s = fx.SharedAllocator().allocate(Storage).peek()\ny = getattr(s, 'rest', None)\nif fx.const_expr(False):\n    s.rest",
        )
    ),
    _stored(_USE, helper="@fx.struct\nclass Storage:\n    sums: fx.Array[fx.Float32, 4]"),
    _stored(
        _USE,
        helper="@fx.struct\nclass Storage:\n    first: fx.Array[fx.Float32, 4]\n    __annotations__['su' + 'ms'] = first\n".replace(
            "= first", "= fx.Array[fx.Float32, 4]"
        ),
    ),
    _stored(
        "s = fx.SharedAllocator().allocate(made(4, fx.Float32)).peek()\ny = s.parts",
        helper=f"from torch import float32 as dtype\n\n\n{STRUCTURES}".replace(
            "fx.Float32, slots", "dtype, slots"
        ).replace("made(slots)", "made(slots, dtype=fx.Float32)"),
    ),
    _stored(
        _USE,
        helper=f"{STRUCTURES}\n\ndef test():\n    with pytest.raises(TypeError):\n        @fx.struct\n        class Wrong:\n"
        "            sums: fx.Array[float, 4]",
    ),
    _stored(_USE, helper="@fx.struct()\nclass Storage:\n    sums: fx.Array[fx.Float32, 2 * len(XS), 16]"),
]
"""Structures in shared memory."""

_LOOP = "for i, s in range(0, 4, 1, init={}):\n    r = yield {}\nx = n"

STATES = [
    *(
        Case(body, ("FLY237",))
        for body in (
            "for i, s in range(0, 4, 1, init=[n]):\n    x = s[0]",
            "for i in range(0, 4, 1, init=[n]):\n    x = i",
            "for i, s in range(0, 4, 1, init=[n]):\n    yield\nx = n",
            _LOOP.format("[n]", "[s[0], n]"),
            _LOOP.format("[n, n]", "[s[0]]"),
            _LOOP.format("(n, n)", "[s[0], n, n]"),
            _LOOP.format("fx.Int32(n)", "[n]"),
            _LOOP.format("4", "[n]"),
            "for i in range(0, 4, 1, init=[n]):\n    k = fx.Int32(i)\n    r = yield [n]",
            "for i in range(0, 4, 1, init=[n]):\n    k = i * 64 + n\n    r = yield [n]",
            "for i, a, b in range(0, 4, 1, init=[n, n]):\n    r = yield [a, b]",
            "for i, (a, b) in range(0, 4, 1, init=[n]):\n    r = yield [a]",
        )
    ),
    *(
        Case(body)
        for body in (
            _LOOP.format("[n]", "[s[0] + 1]"),
            _LOOP.format("[n]", "s[0] + 1"),
            _LOOP.format("(n, n)", "[s[1], s[0]]"),
            "xs = [n, n]\nfor i, s in range(0, 4, 1, init=[n, *xs]):\n    r = yield [s[0], s[1], s[2]]\nx = n",
            "xs = [n, n]\nfor i, s in range(0, 4, 1, init=xs):\n    r = yield [s[0], s[1]]\nx = n",
            "for i in range(0, 4, 1, init=None):\n    x = n",
            "for i in range(0, 4, 1, init=[n]):\n    i = 4\n    r = yield [n + i]",
            "for i in range(0, 4, 1, init=[n]):\n    i, j = 4, 5\n    r = yield [n + i]",
            "for i in range(0, 4, 1, init=[n]):\n    for i in fx.range_constexpr(2):\n        x = n + i\n    r = yield [n]",
            "for i in range(0, 4, 1, init=[n]):\n    print('%s %s' % i)\n    r = yield [n]",
            "for i in range(0, 4, 1, init=[n]):\n    a, b, c, d = i * 2\n    r = yield [n]",
            "for i in range(0, 4, 1, init=[n]):\n    a, b, c = i + (1,)\n    r = yield [n]",
            "for i in range(0, 4, 1, init=[n]):\n    xs = [i + 1 for i in (1, 2)]\n    r = yield [n]",
        )
    ),
]
"""Loops that carry values by `init`."""

BITS = [
    *(
        Case(f"x = n\n{line}", ("FLY238",))
        for line in (
            "y = fx.Float32(1.0) << 1",
            "y = ~fx.Float32(1.0)",
            "y = -fx.Boolean(n)",
            "y = fx.Float32(n) | 1",
            "y = -1 ^ fx.Float32(1.0)",
            "y = fx.Int32(n) & 1.5",
            "y = fx.Int32(n) >> fx.Float32(1.0)",
            "y = fx.thread_idx.x / 2 & 1",
            "y = (fx.thread_idx.x * 0.5) & 1",
            "z = fx.Float16(n)\ny = z & 1",
            "z = fx.Float32(0.0)\ndef f():\n    return z ^ 1\ny = f()",
            "y = -(fx.Int32(n) < 3)",
        )
    ),
    *(
        Case(f"x = n\n{line}")
        for line in (
            "y = fx.Int32(n) << 1",
            "y = ~fx.Int32(n)",
            "y = fx.thread_idx.x // 2 & 1",
            "y = -fx.Float32(1.0)",
            "z = fx.Float32(0.0)\nz = n\ny = z & 1",
            "z = fx.Float32(0.0)\ny = [z & 1 for z in (1, 2)]",
            "z = fx.Float32(0.0)\ny = (lambda z: z & 1)(3)",
            "y = {1} | {2}",
            "y = fx.Int32(2.0) & 1",
            "y = -fx.Int32(n)",
            "y = (fx.Float32(1.0) > 0.5) & (fx.Int32(n) < 3)",
        )
    ),
]
"""Operations on bits."""

VALUES = [
    *[replace(case, helper=_WIDTH) for case in INFERRED],
    *ATTRIBUTES,
    *METHODS,
    *ARGUMENTS,
    *LAYOUTS,
    *STORAGES,
    *STATES,
    *BITS,
]
