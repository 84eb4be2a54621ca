"""FLY226 on sizes in loops, tests, callers and tensors, and that FlyDSL's numbers have these types and wrap."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import BASE_FILES, HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK
from tests.rules.flydsl.key_oracle import RELEASES
from tests.rules.flydsl.launch_cases import Case
from tests.rules.flydsl.trace_oracle import errors

KERNEL = """\
@flyc.kernel
def k(A: fx.Tensor, M: fx.Int32, K: fx.Int32, N: fx.Int64):
    {}


@flyc.jit
def launch(A: fx.Tensor, M: fx.Int32, K: fx.Int32):
    k(A, M, K, fx.Int64(K)).launch(grid=({}, 1, 1), block=(256, 1, 1))


"""

RUN = "def run():\n    M, K = 65536, 131072\n    launch(torch.empty(M, K), M, K)\n"
TWICE = "def run():\n    for M, K in {}:\n        launch(torch.empty(M, K), M, K)\n"
TEST = "import pytest\n\n\n@pytest.mark.parametrize('M, K', {})\ndef test_launch(M, K):\n    launch(torch.empty(M, K), M, K)\n"
CALLED = "def run(rows, width):\n    launch(torch.empty(rows, width), rows, width)\n\n\nrun(64, 64)\nrun({}, {})\n"
SHAPE = "def run():\n    a = torch.empty(65536, 131072)\n    launch(a, a.shape[0], a.size(-1))\n"
UNPACKED = "def run():\n    a = torch.empty(65536, 131072)\n    M, K = {}\n    launch(a, M, K)\n"
CONSTANT = """\
@flyc.kernel
def fill(A: fx.Tensor, W: fx.Constexpr[int]):
    x = fx.block_idx.x * W


@flyc.jit
def start(A: fx.Tensor, M: fx.Int32, W: fx.Constexpr[int]):
    fill(A, W).launch(grid=(M, 1, 1), block=(256, 1, 1))


def run():
    M, K = 65536, 131072
    start(torch.empty(M, K), M, K)
"""


LAST_THREAD = "if fx.block_idx.x < M and fx.thread_idx.x >= 255:\n        x = fx.block_idx.x * K"


def _lint(body: str, host: str = RUN, grid: str = "1") -> list[str]:
    files = {**BASE_FILES, KERNELS_PATH: HEAD + KERNEL.format(body, grid) + host}
    return [item.message for item in lint_files([PACK], files, ["FLY226"]).diagnostics]


FOUND = {
    "the test of a conditional expression": ("x = 1 if M * K > 4 else 0", RUN, "1"),
    "a product": ("x = M * K", RUN, "1"),
    "a product of products": ("x = (M * 4) * (K * 8)", CALLED.format(8192, 65536), "1"),
    "a name between": ("rows = M\n    x = rows * K + 4", RUN, "1"),
    "a cast of the product": ("x = fx.Int64(M * K)", CALLED.format(65536, 49152), "1"),
    "the last block": ("x = fx.block_idx.x * K", RUN, "M"),
    "blocks and threads": ("x = (fx.block_idx.x * 256 + fx.thread_idx.x) * K", RUN, "M // 256"),
    "the second row of a loop": ("x = M * K", TWICE.format("[(64, 64), (65536, 131072)]"), "1"),
    "the last test": ("x = M * K", TEST.format("[(64, 64), (65536, 131072)]"), "1"),
    "a caller": ("x = M * K", CALLED.format(65536, 131072), "1"),
    "shapes": ("x = M * K", SHAPE, "1"),
    "a condition that the last thread fulfils": (LAST_THREAD, RUN, "M"),
    "a condition on sizes": ("if M > 4096 or K < 0:\n        x = M * K", RUN, "1"),
    "a condition while tracing": ("if fx.const_expr(65536 > 1):\n        x = M * K", RUN, "1"),
    "the other branch": ("if M <= 4096:\n        x = M\n    else:\n        x = M * K", RUN, "1"),
    "behind a block that does not leave": ("if A[0] > 0:\n        A[0] = 1\n    x = M * K", RUN, "1"),
    "a shift": ("x = M << 17", RUN, "1"),
    "the last run of a loop": ("for i in range(M):\n        x = i * K", RUN, "1"),
    "a loop with steps": ("for i in range(0, M, 4):\n        for j in range(4):\n            x = i * K + j", RUN, "1"),
    "in a GPU loop": ("for i in range(M):\n        x = M * K", RUN, "1"),
    "multiplied in place": ("x = M\n    x *= K", RUN, "1"),
    "added in place": ("x = fx.block_idx.x\n    x += M * K", RUN, "1"),
    "the number of blocks": ("x = fx.grid_dim.x * K", RUN, "M"),
    "the number of threads": ("x = (fx.block_idx.x * fx.block_dim.x + fx.thread_idx.x) * K", RUN, "M // 256"),
    "an unpacked shape": ("x = M * K", UNPACKED.format("a.shape"), "1"),
    "an unpacked size": ("x = M * K", UNPACKED.format("a.size()"), "1"),
    "a stride": ("x = M * K", SHAPE.replace("size(-1)", "stride(0)"), "1"),
    "a constant while tracing": ("pass", CONSTANT, "1"),
}  # fmt: skip

SILENT = {
    "64 bits from the start": ("x = fx.Int64(M) * K", RUN, "1"),
    "a parameter of 64 bits": ("x = M * N", RUN, "1"),
    "a product that is made for few rows": ("x = M * K if M < 4 else 0", RUN, "1"),
    "a product after a test": ("x = M < 4 and M * K", RUN, "1"),
    "a small product": ("x = M * K", CALLED.format(4096, 4096), "1"),
    "an offset that may be unsigned": ("x = M * K", CALLED.format(65536, 49152), "1"),
    "numbers that are no sizes": ("x = M * K", "def run(a):\n    launch(a, 65536, 131072)\n", "1"),
    "unknown sizes": ("x = M * K", "def run(a, rows):\n    launch(a, rows, 131072)\n", "1"),
    "below a condition": ("if M < 4096:\n        x = M * K", RUN, "1"),
    "a condition that another thread fulfils": ("if fx.block_idx.x < 4:\n        x = fx.block_idx.x * K", RUN, "M"),
    "a condition that is not known": ("if A[0] > 0:\n        x = M * K", RUN, "1"),
    "the branch that is not taken": ("if M > 4096:\n        x = M\n    else:\n        x = M * K", RUN, "1"),
    "a constant that does not hold": ("if fx.const_expr(65536 < 1):\n        x = M * K", RUN, "1"),
    "behind a return": ("if M > 4096:\n        return\n    x = M * K", RUN, "1"),
    "behind what may return": ("if A[0] > 0:\n        return\n    x = M * K", RUN, "1"),
    "a loop that does not run": ("for i in range(0):\n        x = M * K", RUN, "1"),
    "a Python loop that does not run": ("for i in fx.range_constexpr(0):\n        x = M * K", RUN, "1"),
    "a loop that some threads do not run": ("for i in range(fx.thread_idx.x):\n        x = M * K", RUN, "1"),
    "a loop that begins elsewhere": ("for i in range(fx.block_idx.x, M, 4):\n        x = i * K", RUN, "M"),
    "a loop that counts down": ("for i in range(M, 0, -1):\n        x = i * K", RUN, "1"),
    "a loop that may end early": (
        "for i in range(M):\n        x = i * K\n        if x > 5:\n            break",
        RUN,
        "1",
    ),
    "a loop behind which another is": (
        "for i in range(M):\n        pass\n    for i in range(4):\n        x = i * K",
        RUN,
        "1",
    ),
    "divided in place": ("x = M\n    x //= 4096\n    y = x * K", RUN, "1"),
    "made less in place": ("x = M\n    x -= 65530\n    y = x * K", RUN, "1"),
    "random numbers": ("x = (fx.block_idx.x * 256 + fx.thread_idx.x) * 1664525 + 1013904223", RUN, "M"),
    "a column's stride": ("x = M * K", SHAPE.replace("size(-1)", "stride(-1)"), "1"),
    "the shape of a part": ("x = M * K", UNPACKED.format("a[:4].shape"), "1"),
    "an unpacked shape that is changed": ("x = M * K", UNPACKED.format("a.shape\n    M //= 65536"), "1"),
    "constants of another call": ("pass", CONSTANT.replace("65536, 131072", "4, 131072"), "1"),
    "a part of the block": ("x = (fx.block_idx.x % 4) * K", RUN, "M"),
    "blocks that cancel out": ("x = (fx.block_idx.x * K) - (fx.block_idx.x * K) + K", SHAPE, "4"),
    "a sum that is reduced": ("x = M // 4 * K // 8", CALLED.format(4096, 4096), "1"),
    "another variable": ("for M in fx.range_constexpr(4):\n        x = M * K", RUN, "1"),
    "a product of Python numbers": ("x = 65536 * 131072", RUN, "1"),
}


GUARDED = """\
import pytest


def run():
    M, K = 65536, 131072
    a = torch.empty(M, K)
    {guard}launch(a, M, K)
"""
GUARDS = [
    "if a.numel() < 2**31: ",
    "if M * K < 2**31: ",
    "if a.numel() >= 2**31:\n        return\n    ",
    "if K > 32768:\n        raise ValueError\n    ",
    "assert M * K < 2**31\n    ",
    "if M * K > 2**31:\n        pytest.skip('large')\n    ",
]
WIDE = "@flyc.kernel\ndef wide(A: fx.Tensor, M: fx.Int32, K: fx.Int32):\n    x = fx.Int64(M) * K\n\n\n"
LAUNCHED = "k(A, M, K, fx.Int64(K)).launch(grid=(1, 1, 1), block=(256, 1, 1))"
CHOSEN = [
    f"if fx.const_expr(K > 32768):\n        wide(A, M, K).launch(grid=(1, 1, 1))\n    else:\n        {LAUNCHED}",
    f"if A.shape[0] > 4:\n        pass\n    else:\n        {LAUNCHED}",
    f"if K > 32768:\n        return\n    {LAUNCHED}",
]
WRAPPED = [
    "x = (fx.block_idx.x * K) & 0xFFFF",
    "x = 0xFFFF & (fx.block_idx.x * K + 4)",
    "x = (fx.block_idx.x * K) % 1024",
    "h = fx.block_idx.x * K\n    h = h ^ (h >> 16)",
    "h = fx.block_idx.x * K\n    h ^= 5",
    "h = fx.block_idx.x * K\n    x = h & 1023",
]


@pytest.mark.parametrize("guard", GUARDS)
def test_sizes_that_the_host_looks_at_are_left_alone(guard: str) -> None:
    assert len(_lint("x = M * K", GUARDED.format(guard=""))) == 1
    assert _lint("x = M * K", GUARDED.format(guard=guard)) == []


@pytest.mark.parametrize("chosen", CHOSEN)
def test_kernels_that_may_not_be_launched_are_left_alone(chosen: str) -> None:
    text = HEAD + WIDE + KERNEL.format("x = M * K", "1").replace(LAUNCHED, chosen) + RUN
    assert chosen in text
    assert lint_files([PACK], {**BASE_FILES, KERNELS_PATH: text}, ["FLY226"]).codes() == []


@pytest.mark.parametrize("body", WRAPPED)
def test_products_that_are_reduced_may_wrap(body: str) -> None:
    assert _lint(body, RUN, "M") == []


@pytest.mark.parametrize("name", FOUND)
def test_an_overflow_is_found(name: str) -> None:
    body, host, grid = FOUND[name]
    messages = _lint(body, host, grid)
    assert len(messages) == 1
    assert "wraps" in messages[0]


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_found(name: str) -> None:
    body, host, grid = SILENT[name]
    assert _lint(body, host, grid) == []


def test_the_message_has_the_value_and_the_sizes() -> None:
    (message,) = _lint("x = M * K", TWICE.format("[(64, 64), (65536, 131072)]"))
    assert "`M * K` has 32 bits, and is up to 8,589,934,592 where `M` is 65,536, `K` is 131,072" in message


@pytest.mark.parametrize(
    ("argument", "found"),
    [
        ("5_000_000_000", 1),
        ("a.numel()", 1),
        ("2**31 - 1", 0),
        ("0xFFFFFFFF", 0),
        ("-1", 0),
        ("-5_000_000_000", 1),
        ("n", 0),
    ],
)
def test_arguments(argument: str, found: int) -> None:
    host = f"def run(n):\n    a = torch.empty(65536, 65536)\n    launch(a, {argument}, 4)\n"
    assert len(_lint("pass", host)) == found


TYPES = {
    "(n * n).ir_value().type": "i32",
    "(fx.block_idx.x * n + fx.thread_idx.x).ir_value().type": "i32",
    "(n * 4096 * 4096).ir_value().type": "i32",
    "(n << 20).ir_value().type": "i32",
    "(fx.grid_dim.x * fx.block_dim.x).ir_value().type": "i32",
    "(n * (4096 * 4096 * 4096)).ir_value().type": "i64",
    "(fx.Int64(n) * n).ir_value().type": "i64",
    "fx.Int32(5_000_000_000).value": "705032704",
}


@pytest.mark.parametrize("folder", RELEASES)
def test_flydsl_computes_in_these_types(folder: Path) -> None:
    programs = [Case(f"raise ValueError(str({expr}))").text() for expr in TYPES]
    looping = Case("for i in range(0, n, 4):\n    raise ValueError(str((i * n).type))").text()
    added = Case("x = n\nx *= n\nraise ValueError(str(x.ir_value().type))").text()
    kinds = [*TYPES.values(), "i32", "i32"]
    assert errors(folder, [*programs, looping, added]) == [f"ValueError: {kind}" for kind in kinds]
