"""Cells with a tensor of more than 2³¹ elements. Most tests have 2¹⁵ instead, and kernels with an index of 16 bits."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

import torch

from opschema_cli.main import run as opschema
from opschema_cli.verify.cells import Case
from opschema_cli.verify.harness import Harness
from opschema_cli.verify.large import running
from opschema_cli.verify.large.free_memory import memory_limited, spare_memory
from opschema_cli.verify.large.growth import ELEMENTS, call_at, with_large_tensor
from opschema_cli.verify.large.judging import judge_large
from opschema_cli.verify.model import LARGE, Call, Cell, CellResult, Finding, Input, Output, Plan, Ran, Returned, Target
from opschema_cli.verify.protocol import Load
from opschema_cli.verify.protocol import Run as Request
from opschema_cli.verify.results import Header, Version
from opschema_cli.verify.run import CPU_LABEL, Run
from opschema_cli.verify.worker import _run, _side

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler is found")

SMALL = 1 << 15
COLUMNS = 67

MODULE = """
import ctypes, pathlib, subprocess
import torch

source = pathlib.Path(__file__).with_suffix(".cpp")
library = source.with_suffix(".so")
if not library.exists():
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
kernel = ctypes.CDLL(str(library)).kernel


def flip(x):
    y = torch.empty_like(x)
    x = x.contiguous()
    kernel(*map(ctypes.c_void_p, (x.data_ptr(), y.data_ptr())), *map(ctypes.c_int64, x.shape))
    return y


def flip_(x):
    x.copy_(flip(x))
    return x


def summed(x):
    return flip(x).cumsum(0, dtype=torch.int8)


def small_only(x):
    if x.numel() > {limit}:
        raise ValueError("too large")
    return flip(x)


def slow(x):
    import time

    time.sleep(x.numel() / {limit} * 20)
    return flip(x)
"""

KERNEL = """
#include <cstdint>
extern "C" void kernel(const int8_t* x, int8_t* y, int64_t rows, int64_t columns) {
    int64_t n = rows * columns;
    BODY
}
"""

SOUND = "for (int64_t i = 0; i < n; i++) y[i] = ~x[i];"
TRUNCATED = "INDEX count = (INDEX)n; for (INDEX i = 0; i < count; i++) y[i] = ~x[i];"
WRAPPED = "for (int64_t i = 0; i < n; i++) { int64_t at = i & LAST; y[at] = ~x[at]; }"
NEGATIVE = """for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) { int32_t at = (int32_t)(r * columns + c); y[at] = ~x[at]; }"""


def write(folder: Path, body: str, elements: int) -> Target:
    """The library below a folder, whose kernel has this body."""
    folder.mkdir()
    index = "int16_t" if elements == SMALL else "int32_t"
    text = KERNEL.replace("BODY", body.replace("INDEX", index).replace("LAST", f"{elements - 1}ll"))
    (folder / "lib.cpp").write_text(text)
    (folder / "lib.py").write_text(MODULE.format(limit=elements))
    return Target(root=str(folder), module="lib", name="flip")


def call(rows: int, dtype: str = "int8", mutated: bool = False) -> Call:
    spec = Input(name="x", shape=(rows, COLUMNS), dtype=dtype, mutated=mutated)
    return Call(inputs=(spec,), outputs=(Output(name="y", shape=(rows, COLUMNS), dtype=dtype),))


def case(dtype: str = "int8", mutated: bool = False) -> Case:
    shapes = {"odd": call(7, dtype, mutated), "larger": call(17, dtype, mutated)}
    return Case("Op", "r", dtype, "row", call(4, dtype, mutated), lambda: shapes)


class Sides:
    """Runs the large cell of an op on both sides."""

    def __init__(self, folder: Path, elements: int = SMALL, seconds: float = 60.0) -> None:
        self.folder, self.elements, self.seconds = folder, elements, seconds

    def __call__(self, after: str, before: str | None = SOUND, name: str = "flip", mutated: bool = False) -> CellResult:
        targets = [
            msgspec.structs.replace(write(self.folder / side, body, self.elements), name=name)
            for side, body in (("after", after), ("before", before))
            if body is not None
        ]
        plan = with_large_tensor(
            Plan(op="Op", target=targets[0], cells=()), [case(mutated=mutated)], None, self.elements
        )
        cell = plan.cells[-1]
        here = Version(name="")
        header = Header(run="", shard=1, shards=1, total=1, before=here, after=here, device=CPU_LABEL, cells=(cell.id,))
        run = Run(
            header=header,
            plans=(plan,),
            compared=before is not None,
            before={"Op": targets[1]} if before is not None else {},
            folder=str(self.folder),
            seconds=self.seconds,
        )
        with closing(Harness(run)) as harness:
            return harness.check(plan, cell)


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    return Sides(tmp_path)


def checks(result: CellResult) -> set[str]:
    return {finding.check for finding in result.findings if finding.side == "after"}


@needs_compiler
@pytest.mark.parametrize("before", [SOUND, None])
@pytest.mark.parametrize("fault", [TRUNCATED, WRAPPED])
def test_an_index_that_overflows_is_a_regression(fault: str, before: str | None, sides: Sides) -> None:
    result = sides(fault, before)
    assert result.verdict == "regression", result
    assert "large-tensor" in checks(result)
    first = "[0, 0]" if fault == TRUNCATED else "[489, 5]"  # 32,768 elements, in rows of 67
    assert first in result.reason


@needs_compiler
@pytest.mark.parametrize("name", ["flip", "flip_", "summed"])
def test_sound_ops_are_unchanged(name: str, sides: Sides) -> None:
    result = sides(SOUND, name=name, mutated=name == "flip_")
    assert (result.verdict, result.findings) == ("unchanged", ()), result
    reason = "a part of its outputs depends on other parts of its inputs" if name == "summed" else ""
    assert reason in result.reason
    assert bool(result.reason) == bool(reason)


@needs_compiler
def test_a_fault_in_place_is_found(sides: Sides) -> None:
    assert "large-tensor" in checks(sides(WRAPPED, None, "flip_", mutated=True))


@needs_compiler
def test_a_fault_of_both_sides_was_wrong_already(sides: Sides) -> None:
    assert sides(WRAPPED, WRAPPED).verdict == "wrong-already"


@needs_compiler
def test_where_parts_say_nothing_blocks_are_compared(sides: Sides) -> None:
    result = sides(WRAPPED, SOUND, "summed")
    assert result.verdict == "regression"
    assert checks(result) == {"bits"}
    (bits,) = result.findings
    assert "1 of 1 blocks of 16,777,216 elements differ from before, the first from element 0 on" in bits.message


@needs_compiler
def test_without_before_an_op_without_parts_is_not_checked(sides: Sides) -> None:
    result = sides(SOUND, None, "summed")
    assert result.verdict == "not-checked"
    assert "a part of its outputs depends on other parts of its inputs" in result.reason


@needs_compiler
def test_a_sound_op_without_before_is_right(sides: Sides) -> None:
    result = sides(SOUND, None)
    assert (result.verdict, result.reason) == ("within-tolerance", "after is right; no before to compare with")


@needs_compiler
def test_a_size_that_both_refuse_is_not_checked(sides: Sides) -> None:
    result = sides(SOUND, SOUND, "small_only")
    assert result.verdict == "not-checked"
    assert "ValueError: too large" in result.reason


@needs_compiler
def test_a_call_that_takes_too_long_is_not_made(tmp_path: Path) -> None:
    result = Sides(tmp_path, seconds=10.0)(SOUND, SOUND, "slow")
    assert result.verdict == "not-checked"
    assert "too long for a --timeout of 10 s" in result.reason
    assert result.seconds["whole"] < 10


@needs_compiler
def test_too_little_memory_is_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = with_large_tensor(Plan(op="Op", target=write(tmp_path / "a", SOUND, SMALL), cells=()), [case()], None, SMALL)
    side = _side(Load(side="after", op="Op", target=plan.target), {})
    request = Request(cell=plan.cells[-1], device="cpu", folder=str(tmp_path), seconds=60)
    load = Load(side="after", op="Op", target=plan.target)
    monkeypatch.setattr(running, "spare_memory", lambda device: 1000)
    ran = _run(side, request, load).ran
    assert (ran.status, ran.detail) == ("refused", "it needs 0.0 GiB of memory, and 0.0 GiB can be spared")
    assert judge_large(request.cell, None, ran).verdict == "not-checked"
    monkeypatch.setattr(running, "spare_memory", lambda device: None)
    assert "is not known" in _run(side, request, load).ran.detail


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what is free is read from /proc")
def test_memory_is_limited_while_a_large_tensor_is_there() -> None:
    assert (spare_memory("cpu") or 0) > 0
    with memory_limited(1 << 28, "cpu"), pytest.raises(RuntimeError, match=r"not enough memory|can't allocate"):
        torch.empty(1 << 30, dtype=torch.uint8)
    torch.empty(1 << 30, dtype=torch.uint8)


def ran(**more: object) -> Ran:
    found: dict[str, object] = {
        "cell": "c",
        "status": "ok",
        "outputs": (Returned(name="y", shape=(3,), dtype="int8"),),
        "blocks": {"y": ("1", "2")},
        "agrees": True,
        **more,
    }
    return Ran(**found)  # type: ignore[arg-type]


CELL = Cell(op="Op", row="r", dtype="int8", shape=LARGE, call=call(4))
OUT_OF_MEMORY = ran(status="died", detail="out of memory: RuntimeError: not enough memory")
KILLED = ran(status="died", detail="the process was killed by SIGKILL; the kernel does so when memory is out")
CRASHED = ran(status="died", detail="the process was killed by SIGSEGV")
RAISED = ran(status="raised", detail="ValueError: too large", error="ValueError: too large")
STALLED = ran(status="stalled", detail="no answer within 1 s\nstack")
WRONG = ran(findings=(Finding(check="large-tensor", side="after", about="y", message="m"),))
OTHER = ran(blocks={"y": ("1", "3")})
ALONE = ran(agrees=False, detail="it depends")


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (ran(), ran(), "unchanged"),
        (ran(), OTHER, "within-tolerance"),
        (ran(), ran(agrees=False, detail="d", blocks=OTHER.blocks), "regression"),
        (ran(), WRONG, "regression"),
        (None, WRONG, "regression"),
        (None, ran(), "within-tolerance"),
        (None, ALONE, "not-checked"),
        (ALONE, ALONE, "unchanged"),
        *((ran(), item, "not-checked") for item in (OUT_OF_MEMORY, KILLED)),
        *((item, ran(), "not-checked") for item in (OUT_OF_MEMORY, KILLED)),
        (ran(), CRASHED, "regression"),
        (CRASHED, CRASHED, "crashed"),
        (None, CRASHED, "crashed"),
        (ran(), RAISED, "regression"),
        (None, RAISED, "not-checked"),
        (ran(), STALLED, "regression"),
        (STALLED, STALLED, "not-checked"),
    ],
)
def test_verdicts(before: Ran | None, after: Ran, verdict: str) -> None:
    judged = judge_large(CELL, before, after)
    assert judged.verdict == verdict, judged
    assert "\nstack" not in judged.reason or verdict == "regression"


def planned(cases: list[Case], accepts: Callable[[Call], str] | None = None) -> Plan:
    return with_large_tensor(Plan(op="Op", target=Target(root="", module="m", name="Op"), cells=()), cases, accepts)


def test_a_little_more_than_2_to_the_31_elements() -> None:
    (cell,) = planned([case()]).cells
    rows = cell.call.inputs[0].shape[0]
    assert ELEMENTS < (rows - 3) * COLUMNS < rows * COLUMNS < ELEMENTS + 5 * COLUMNS
    assert cell.id == "Op[r-int8-large-tensor-s0]"
    assert cell.call.outputs[0].shape == (rows, COLUMNS)


def test_the_dtype_with_the_fewest_bytes() -> None:
    assert planned([case("float32"), case("float16")]).cells[0].dtype == "float16"
    assert planned([case("float32")], lambda call: "").cells[0].dtype == "int8"
    refusing = planned([case("float32")], lambda call: "no" if call.inputs[0].dtype != "bool" else "")
    assert refusing.cells[0].dtype == "bool"
    assert planned([case("float32")], lambda call: "no").cells[0].dtype == "float32"


def test_numbers_that_follow_the_size_grow_with_it() -> None:
    def sized(rows: int) -> Call:
        spec = Input(name="index", shape=(2, rows), dtype="int64", low=0, high=rows)
        return Call(inputs=(spec, *call(2 * rows).inputs), params={"rows": rows, "sizes": [rows, 5], "eps": 1e-5})

    (cell,) = planned([Case("Op", "r", "int8", "row", sized(4), lambda: {"larger": sized(12)})]).cells
    index, x = cell.call.inputs
    assert cell.call.params == {"rows": index.shape[1], "sizes": [index.shape[1], 5], "eps": 1e-5}
    assert (x.shape[0], index.high) == (2 * index.shape[1], index.shape[1])
    assert cell.growth is not None
    assert call_at(cell.growth, 9) == sized(9)


@pytest.mark.parametrize(
    "derived",
    [{}, {"larger": call(4)}, {"larger": msgspec.structs.replace(call(9), params={"mode": "other"})}],
    ids=["nothing", "the same", "another mode"],
)
def test_a_call_that_cannot_grow_is_reported(derived: dict[str, Call]) -> None:
    plan = planned([Case("Op", "r", "int8", "row", call(4), lambda: derived)])
    assert plan.cells == ()
    assert plan.unplanned == {
        "Op[large-tensor]": "no size of its calls can be raised until a tensor has 2,147,483,648 elements"
    }


def test_the_command_lists_them_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(Path(__file__).parents[2] / "fixtures" / "tilekit", tmp_path / "tilekit")
    monkeypatch.chdir(tmp_path / "tilekit")
    arguments = ["verify", "ReluFwdOp", "WindowMaskFwdOp", "--list", "--device", "cpu"]
    assert opschema(arguments) == 0
    assert LARGE not in capsys.readouterr().out
    assert opschema([*arguments, "--large-tensors"]) == 0
    found = [line for line in capsys.readouterr().out.splitlines() if LARGE in line]
    assert found == ["ReluFwdOp[square-float16-large-tensor-s0]", "WindowMaskFwdOp[large-tensor]"]


NEEDED = 8 << 30
large = pytest.mark.skipif(
    os.environ.get("OPSCHEMA_SLOW") != "1" or (spare_memory("cpu") or 0) < NEEDED,
    reason="tensors of 2³¹ elements, with OPSCHEMA_SLOW=1 and 8 GiB of free memory",
)


@large
@needs_compiler
@pytest.mark.parametrize("fault", [TRUNCATED, WRAPPED, NEGATIVE], ids=["truncated", "wrapped", "negative"])
def test_an_index_of_32_bits(fault: str, tmp_path: Path) -> None:
    result = Sides(tmp_path, ELEMENTS, 300)(fault)
    assert result.verdict == "regression", result
    assert "large-tensor" in checks(result) or "SIGSEGV" in result.reason


@large
@needs_compiler
def test_an_index_of_64_bits(tmp_path: Path) -> None:
    result = Sides(tmp_path, ELEMENTS, 300)(SOUND)
    assert (result.verdict, result.reason) == ("unchanged", ""), result
