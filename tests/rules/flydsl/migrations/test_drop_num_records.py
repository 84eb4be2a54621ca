"""Byte counts of descriptors: dropped where the layout gives the same, left where it may not."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.flydsl.examples import HEAD, KERNELS_PATH, example_files
from opschema_rules.flydsl.pack import PACK

KERNEL = """\
M, N = 4096, 256


@flyc.kernel
def scale(A: fx.Tensor):
    A = fx.rocdl.make_buffer_tensor(A, max_size=False, num_records_bytes=M * N * 2)


@flyc.jit
def launch(A: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    scale(A).launch(grid=(M, 1, 1), block=(256, 1, 1), stream=stream)


a = torch.randn(M, N, dtype=torch.float16).cuda()
launch(a)
"""
DROPPED = KERNEL.replace(", num_records_bytes=M * N * 2", "")
LINE = HEAD.count("\n") + 6


def migrate(text: str, version: str = "0.4.2", **others: str) -> Migrated:
    files = example_files([("toml", f'[flydsl]\nversion = "{version}"\n'), ("python", text)])
    return migrate_files(
        PACK, "drop-num-records", {**files, **{f"kit/{key}.py": other for key, other in others.items()}}
    )


def code(done: Migrated) -> str:
    return done.files[KERNELS_PATH].removeprefix(HEAD)


def test_the_count_of_a_raw_tensor_goes() -> None:
    done = migrate(KERNEL)
    assert code(done) == DROPPED
    assert done.notes() == []
    assert done.sites() == [f"kit/kernels.py:{LINE}: drop `num_records_bytes`"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("launch(a)", "launch(flyc.from_dlpack(a).mark_layout_dynamic(leading_dim=1, divisibility=16))"),
        ("launch(a)", "launch(flyc.from_torch_tensor(a))"),
        ("launch(a)", "t = flyc.from_torch_tensor(a)\nlaunch(A=t)"),
        ("launch(a)", "def main():\n    t = flyc.from_torch_tensor(a)\n    launch(t)\n\n\nmain()"),
        ("torch.randn(M, N, dtype=torch.float16).cuda()", 'torch.empty((M, N), dtype=torch.bfloat16, device="cuda")'),
        ("torch.randn(M, N, dtype=torch.float16).cuda()", 'torch.zeros(size=[N, M]).to("cuda", torch.float16)'),
        ("torch.randn(M, N, dtype=torch.float16).cuda()", "torch.zeros_like(torch.ones(M * N)).half().contiguous()"),
        ("torch.randn(M, N, dtype=torch.float16).cuda()", "torch.full((2 * M * N - M * N,), 0, dtype=torch.half)"),
        ("M, N = 4096, 256", "M, N = 4096, int(256)"),
        ("scale(A)", "scale(fx.Tensor(fx.make_view(fx.get_iter(A), fx.make_layout((M, N), (N, 1)))))"),
        ("scale(A)", "scale(fx.make_view(fx.get_iter(A), fx.make_layout(((16, M // 16), N), ((N, 16 * N), 1))))"),
    ],
)
def test_a_tensor_is_followed_to_where_it_is_made(before: str, after: str) -> None:
    done = migrate(KERNEL.replace(before, after))
    assert code(done) == DROPPED.replace(before, after)
    assert done.notes() == []


def test_an_extent_is_followed_as_the_tensor_is() -> None:
    text = """\
@flyc.kernel
def scale(A: fx.Tensor, rows: fx.Int32, N: fx.Constexpr[int]):
    size = fx.Int32(rows) * N * 4
    described(A, size)


def described(tensor, size):
    return fx.rocdl.make_buffer_tensor(tensor, max_size=False, num_records_bytes=size)


@flyc.jit
def launch(A: fx.Tensor, m: fx.Int32, n: fx.Constexpr[int] = 128):
    scale(A, m, n).launch(grid=(m, 1, 1), block=(256, 1, 1))


def run(rows: int):
    cols = columns()
    launch(torch.empty(rows, cols, dtype=torch.float32), rows, cols)
    launch(torch.empty(rows, 128, dtype=torch.float32), rows)
"""
    done = migrate(text)
    assert code(done) == text.replace(", num_records_bytes=size", "")
    assert done.notes() == []


def test_a_local_that_only_held_the_count_goes_too() -> None:
    text = KERNEL.replace(
        "    A = fx.rocdl.make_buffer_tensor(A, max_size=False, num_records_bytes=M * N * 2)",
        "    size = fx.Int64(M) * N * 2  # bytes\n"
        "    A = fx.rocdl.make_buffer_tensor(\n        A,\n        max_size=False,\n        num_records_bytes=size,\n    )",
    )
    assert code(migrate(text)) == DROPPED.replace(
        "(A, max_size=False)", "(\n        A,\n        max_size=False,\n    )"
    )


def test_comments_that_speak_of_the_count_come_back_as_notes() -> None:
    call = "    A = fx.rocdl.make_buffer_tensor(A, max_size=False"
    about = "    # Exact sizes (f16 = 2 bytes);\n    # ``num_records_bytes`` is required here.\n"
    done = migrate(KERNEL.replace(call, "    # other\n\n" + about + call))
    assert code(done) == DROPPED.replace(call, "    # other\n\n" + about + call)
    assert done.notes() == [f"kit/kernels.py:{LINE + 2}: this comment still mentions the removed `num_records_bytes`"]


DIFFERS = "the count may differ from the tensor's elements times their size"


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("M * N * 2)", "M * N)", DIFFERS),
        ("M * N * 2)", "M * N * 2 - 2)", DIFFERS),
        ("torch.randn(M, N, ", "torch.randn(M, N + 1, ", DIFFERS),
        ("dtype=torch.float16", "dtype=torch.float32", DIFFERS),
        (
            "torch.randn(M, N, ",
            "torch.randn(*shape, ",
            "the value of `torch.randn(*shape, dtype=torch.float16)` is not known",
        ),
        (".cuda()", ".t()", "the value of `torch.randn(M, N, dtype=torch.float16).t()` is not known"),
        ("launch(a)", "launch(a[:16])", "the value of `a[:16]` is not known"),
        ("launch(a)", "launch(a)\nlaunch(load())", "the value of `load()` is not known"),
        ("launch(a)", "launch(a)\na = load()\nlaunch(a)", "the value of `a` is not known"),
        ("launch(a)", "run = launch\nrun(load())", "the calls of `launch()` from here on are not known"),
        ("launch(a)", "flyc.compile(launch, a)", "the calls of `launch()` from here on are not known"),
        ("launch(a)", "", "nothing calls `launch()`, so its arguments are not known"),
        ("    A = ", "    A = partition(A)\n    A = ", "the value of `A` is not known"),
        ("    A = ", "    for _ in fx.range_constexpr(2):\n        A = ", "the value of `A` is not known"),
        ("M, N = 4096, 256", "M, N = 4096, 256\nM = 2", "the value of `M` is not known"),
    ],
)
def test_a_count_that_may_say_something_else_is_left(before: str, after: str, reason: str) -> None:
    text = KERNEL.replace(before, after, 1)
    done = migrate(text)
    assert code(done) == text
    assert [item.status for item in done.result.sites] == ["left"]
    assert reason in " ".join(done.notes())


WIDE = "the count has 64 bits: the size from the layout may be computed in 32 bits and overflow"


def test_two_gigabytes_are_left() -> None:
    text = KERNEL.replace("M, N = 4096, 256", "M, N = 4096 * 1024, 256")
    done = migrate(text)
    assert code(done) == text
    assert WIDE in done.notes()[0]


def test_a_count_of_64_bits_is_left() -> None:
    text = KERNEL.replace("M * N * 2", "fx.Int64(m) * N * 2").replace(
        "scale(A: fx.Tensor)", "scale(A: fx.Tensor, m: fx.Int32)"
    )
    text = text.replace("scale(A)", "scale(A, m)").replace(
        "launch(A: fx.Tensor, ", "launch(A: fx.Tensor, m: fx.Int32, "
    )
    text = text.replace("launch(a)", "rows = load()\na = torch.empty(rows, N, dtype=torch.float16)\nlaunch(a, rows)")
    text = text.replace("a = torch.randn(M, N, dtype=torch.float16).cuda()\n", "")
    done = migrate(text)
    assert code(done) == text
    assert WIDE in done.notes()[0]
    assert code(migrate(text.replace("Int64", "Int32"))) == text.replace(", num_records_bytes=fx.Int64(m) * N * 2", "")


def test_the_type_of_a_pointer_decides() -> None:
    view = "fx.make_view(fx.recast_iter(fx.{}, fx.get_iter(A)), fx.make_layout((M, N), (N, 1)))"
    for kind, status in (("Float16", "migrated"), ("Float32", "left"), ("BFloat16", "migrated"), ("Int8", "left")):
        done = migrate(KERNEL.replace("scale(A)", f"scale({view.format(kind)})"))
        assert [item.status for item in done.result.sites] == [status], kind


CALL = "    A = fx.rocdl.make_buffer_tensor(A, max_size=False, num_records_bytes=M * N * 2)"
BARE = CALL.strip().removeprefix("A = ")
HIDING = {
    "a lambda's parameter": f"    described = lambda M: {BARE}\n    described(3)",
    "a comprehension's variable": f"    described = [{BARE} for M in (1, 2)]",
    "another tensor in a comprehension": f"    described = [{BARE} for A in (A, B)]",
    "an assignment expression": f"    if (M := 3):\n    {CALL}",
    "a loop's variable": f"    for M in range(3):\n        x = {BARE}",
    "a context": f"    with opened() as M:\n        x = {BARE}",
    "a nested function": f"    def M():\n        pass\n\n{CALL}",
    "an import": f"    from kit.other import M\n\n{CALL}",
}


@pytest.mark.parametrize("body", HIDING.values(), ids=HIDING)
def test_a_name_may_mean_something_else_inside(body: str) -> None:
    text = KERNEL.replace(CALL, body)
    done = migrate(text)
    assert code(done) == text
    assert [item.status for item in done.result.sites] == ["left"]


ELSEWHERE = {
    "a function writes it": ("@flyc.kernel", "def grow():\n    global M\n    M = 7\n\n\n@flyc.kernel"),
    "it is deleted": ("launch(a)", "launch(a)\ndel a"),
    "a lambda's parameter is passed": ("launch(a)", "run = lambda a: launch(a)"),
    "a comprehension's variable is passed": ("launch(a)", "[launch(a) for a in tensors]"),
    "a method passes its parameter": ("launch(a)", "class Run:\n    def go(self, a):\n        launch(a)"),
    "it calls itself": ("    scale(A).launch", "    launch(A[1:])\n    scale(A).launch"),
    "torch writes into another": ("dtype=torch.float16", "out=b, dtype=torch.float16"),
    "elements of another size by default": ("dtype=torch.float16", 'device="cuda"'),
}


@pytest.mark.parametrize(("before", "after"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_what_happens_elsewhere_counts(before: str, after: str) -> None:
    text = KERNEL.replace(before, after, 1)
    done = migrate(text)
    assert code(done) == text
    assert [item.status for item in done.result.sites] == ["left"]


def test_each_caller_counts() -> None:
    other = "import torch\nfrom kit.kernels import launch\n\nlaunch(torch.empty(16, 256, dtype=torch.float16))\n"
    done = migrate(KERNEL, other=other)
    assert code(done) == KERNEL
    assert done.notes() == [f"kit/kernels.py:{LINE}: drop `num_records_bytes` by hand: {DIFFERS}"]


def test_a_launcher_is_found_under_another_name() -> None:
    done = migrate(KERNEL, other="from kit.kernels import launch as go\n\ngo(load())\n")
    assert code(done) == KERNEL
    assert done.notes()[0] == "kit/other.py:3: the value of `load()` is not known"


def test_without_a_version_it_is_left() -> None:
    files = {"kernels.py": HEAD + KERNEL}
    done = migrate_files(PACK, "drop-num-records", files)
    assert done.files == files
    assert "it is not known for which FlyDSL the kernels are" in done.notes()[0]


@pytest.mark.parametrize(
    "call",
    [
        "make_buffer_tensor(A, num_records_bytes=M * N * 2)",
        "make_buffer_tensor(A, max_size=True, num_records_bytes=M * N * 2)",
        "make_buffer_tensor(A, max_size=flag, num_records_bytes=M * N * 2)",
        "make_buffer_tensor(A, max_size=False)",
        "create_buffer_resource(A, max_size=False, num_records_bytes=M * N * 2)",
    ],
)
def test_what_the_layout_does_not_decide_is_no_site(call: str) -> None:
    done = migrate(KERNEL.replace("make_buffer_tensor(A, max_size=False, num_records_bytes=M * N * 2)", call))
    assert done.sites() == []


GUARD = """\
def make_buffer_tensor(tensor, max_size=True, *, num_records_bytes=None):
    if num_records_bytes is None and not max_size and is_static(tensor):
        raise ValueError("pass num_records_bytes")
"""
STATIC = "class TensorAdaptor:\n    def __init__(self, tensor):\n        self.tensor = tensor\n"
DYNAMIC = f"{STATIC}        self.mark_layout_dynamic(-1, 1)\n"


def migrate_own(example: str, describer: str, adaptor: str = DYNAMIC) -> Migrated:
    """In a workspace that is FlyDSL itself."""
    files = {
        "python/flydsl/__init__.py": "",
        "python/flydsl/compiler/__init__.py": "from .jit_argument import from_dlpack\nfrom .api import jit, kernel\n",
        "python/flydsl/compiler/api.py": "def jit(f): ...\n\n\ndef kernel(f): ...\n",
        "python/flydsl/compiler/jit_argument.py": f"{adaptor}\n\ndef from_dlpack(tensor): ...\n",
        "python/flydsl/expr/__init__.py": "from . import rocdl\nfrom ._mlir import *\n",
        "python/flydsl/expr/rocdl.py": describer,
        KERNELS_PATH: HEAD + example,
    }
    return migrate_files(PACK, "drop-num-records", files)


def test_up_to_0_1_8_only_marked_tensors_have_a_size_at_run_time() -> None:
    describer = GUARD.partition("    if")[0] + "    return tensor\n"
    done = migrate_own(KERNEL, describer, STATIC)
    assert code(done) == KERNEL
    assert "a constant of the compiled code, whose key has no shape" in done.notes()[0]
    marked = "launch(flyc.from_dlpack(a).mark_layout_dynamic())"
    done = migrate_own(KERNEL.replace("launch(a)", marked), describer, STATIC)
    assert code(done) == DROPPED.replace("launch(a)", marked)


@pytest.mark.parametrize("view", [False, True])
def test_the_guard_of_may_2026_wants_the_count_of_a_constant_layout(view: bool) -> None:
    inner = "fx.make_view(fx.get_iter(A), fx.make_layout((M, N), (N, 1)))" if view else "A"
    done = migrate_own(KERNEL.replace("scale(A)", f"scale({inner})"), GUARD)
    assert [item.status for item in done.result.sites] == ["left" if view else "migrated"]
    if view:
        assert "rejects a constant layout as the size" in done.notes()[0]
