"""Worker processes: whatever an op does to its own, all other cells are reported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from opschema_cli.verify.forkserver import Forkserver
from opschema_cli.verify.model import Plan, Ran
from opschema_cli.verify.own_gradients import GRADIENT
from opschema_cli.verify.workers import Workers, environment
from tests.verify.oplib import cell, plan, write_library

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

DOES = ["", "abort", "", "hang", "", "raise", "", "memory", "leave", "", "", ""]
HARMLESS = {"", "raise", "leave"}


class Session(NamedTuple):
    """Twelve cells in a row, and what they left behind."""

    ran: list[Ran]
    log: Path
    folder: Path
    leaks: Counter[str]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("workers")
    log = folder / "log"
    here = plan(write_library(folder / "lib", log))
    before = open_things()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("opschema_cli.verify.workers.Forkserver", Forkserver)  # not one that outlives the workers
        with Workers(folder / "scratch") as workers:
            ran = [
                workers.run("after", here, cell(f"r{n}", do), "cpu", 4 if do == "hang" else 60)
                for n, do in enumerate(DOES)
            ]
    return Session(ran, log, folder, open_things() - before)


def open_things() -> Counter[str]:
    """Open files and threads. Those of an earlier test may end meanwhile."""
    found = Counter(f"thread {thread.ident}" for thread in threading.enumerate())
    for link in Path("/proc/self/fd").glob("*"):
        with suppress(FileNotFoundError):  # the one that lists them
            found[os.readlink(link)] += 1
    return found


def of(session: Session, do: str) -> Ran:
    return session.ran[DOES.index(do)]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def test_all_cells_are_reported(session: Session) -> None:
    assert [ran.cell for ran in session.ran] == [cell(f"r{n}", do).id for n, do in enumerate(DOES)]
    expected = {"": "ok", "raise": "raised", "leave": "raised", "hang": "stalled"}
    assert [ran.status for ran in session.ran] == [expected.get(do, "died") for do in DOES]


def test_the_library_is_imported_once_in_a_process(session: Session) -> None:
    killed = sum(do not in HARMLESS for do in DOES)
    assert session.log.read_text().splitlines() == ["imported"] * (killed + 1)


def test_output_of_the_op_does_not_disturb(session: Session) -> None:
    saved = torch.load(session.ran[0].file, weights_only=True)
    assert [name for name in saved if not name.startswith(GRADIENT)] == ["y"]
    assert saved["y"].shape == (4, 5)


def test_an_abort_is_told_with_its_stack_and_what_was_printed(session: Session) -> None:
    first, *said = of(session, "abort").detail.splitlines()
    assert first == "the process was killed by SIGABRT, running the cell"
    assert "calling abort" in "\n".join(said)
    assert "lib.py" in "\n".join(said)
    assert "of a child" in "\n".join(said)


def test_a_hang_is_told_with_its_stack_and_takes_its_children_along(session: Session) -> None:
    detail = of(session, "hang").detail
    assert detail.startswith("no answer within 4 s, running the cell\n")
    assert "in forward" in detail
    child = int(Path(f"{session.log}.child").read_text())
    assert not alive(child)


def test_memory_that_is_out_is_told(session: Session) -> None:
    assert of(session, "memory").detail.startswith("out of memory: RuntimeError: ")


def test_an_exception_is_told_with_its_place(session: Session) -> None:
    says, place = of(session, "raise").detail.splitlines()
    assert says == f"ValueError: {session.folder}/scratch/caches/after/triton"
    assert place.startswith("lib.py:")
    assert place.endswith(" in forward")
    assert of(session, "leave").detail.splitlines()[0] == "SystemExit: enough"


def test_nothing_is_left(session: Session) -> None:
    assert not session.leaks
    assert not list((session.folder / "lib").rglob("*.pyc"))


def test_starting_is_told_once(session: Session) -> None:
    fresh = [n for n, ran in enumerate(session.ran) if "import" in ran.seconds]
    assert fresh == [0, 2, 4, 8]
    assert all(ran.seconds.keys() >= {"construct", "call", "check", "save"} for ran in session.ran if ran.file)


def test_memory_can_be_limited_and_a_kill_is_told(tmp_path: Path) -> None:
    here = plan(write_library(tmp_path / "lib", tmp_path / "log"))
    with Workers(tmp_path / "scratch", memory=32 << 30) as workers:
        ran = [workers.run("after", here, cell(do, do), "cpu", 60) for do in ("bytes", "kill")]
    assert [one.status for one in ran] == ["died", "died"]
    assert ran[0].detail.startswith("out of memory: MemoryError\nlib.py:")
    assert ran[1].detail.startswith(
        "the process was killed by SIGKILL; the kernel does so when memory is out, running the cell"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_time_in_which_a_compiler_computes_does_not_count(tmp_path: Path) -> None:
    here = plan(write_library(tmp_path / "lib", tmp_path / "log"))
    with Workers(tmp_path / "scratch") as workers:
        started = time.monotonic()
        ran = workers.run("after", here, cell("r", "compile"), "cpu", 3)
        assert (ran.status, ran.detail) == ("ok", "")
        assert time.monotonic() - started > 3


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_that_computes_is_given_more_time_where_that_is_asked_for(tmp_path: Path) -> None:
    here = plan(write_library(tmp_path / "lib", tmp_path / "log"))
    with Workers(tmp_path / "scratch") as workers:
        ran = workers.run("after", here, cell("first", "think"), "cpu", 2, computing=60)
        assert (ran.status, ran.detail) == ("ok", "")
        ran = workers.run("after", here, cell("second", "hang"), "cpu", 2, computing=60)
        assert ran.status == "stalled"
        ran = workers.run("after", here, cell("third", "think"), "cpu", 2)
        assert ran.status == "stalled"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_killed_build_keeps_no_later_one_waiting(tmp_path: Path) -> None:
    here = plan(write_library(tmp_path / "lib", tmp_path / "log"))
    with Workers(tmp_path / "scratch") as workers:
        lock = tmp_path / "scratch" / "caches" / "after" / "extensions" / "py" / "kit" / "lock"
        for number in range(2):  # the second would fail, as the file is there
            ran = workers.run("after", here, cell(f"r{number}", "lock"), "cpu", 3)
            assert ran.status == "stalled", ran.detail
            assert lock.parent.is_dir()
            assert not lock.exists()


def test_sides_have_caches_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", "shared")
    monkeypatch.setenv("PYTHONPATH", "relative")
    one, other = environment(tmp_path / "before"), environment(tmp_path / "after")
    caches = {name for name in one if one[name] != other[name]}
    assert caches >= {"TRITON_CACHE_DIR", "TILELANG_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME"}
    assert one["PYTHONPATH"].split(os.pathsep)[0] == os.path.abspath("relative")


SEES = """
import os
import torch

def op(x, do):
    raise ValueError(f"{os.environ['CUDA_VISIBLE_DEVICES']!r}, {torch.cuda.device_count()} GPUs")
"""


@pytest.mark.parametrize("forks", [True, False])
def test_a_run_on_the_cpu_hides_the_gpus_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: bool
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr("opschema_cli.verify.forkserver.available", lambda: forks)
    (tmp_path / "lib.py").write_text(SEES)
    with Workers(tmp_path / "scratch", device="cpu") as workers:
        ran = workers.run("after", plan(tmp_path, name="op"), cell("r"), "cpu", 60)
        assert (workers._forkserver is not None) == forks
    assert ran.detail.startswith("ValueError: '', 0 GPUs\n")


def test_a_run_on_a_gpu_sees_those_that_the_harness_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    (tmp_path / "lib.py").write_text(SEES)
    with Workers(tmp_path / "scratch", device="cuda") as workers:
        ran = workers.run("after", plan(tmp_path, name="op"), cell("r"), "cpu", 60)
    assert ran.detail.startswith("ValueError: '0', ")


REGISTERS = """
import torch

@torch.library.custom_op("opschema_test::same", mutates_args=())
def same(x: torch.Tensor) -> torch.Tensor:
    return x + {plus}

@same.register_fake
def _(x):
    return torch.empty_like(x)

def op(x, do):
    return torch.ops.opschema_test.same(x)
"""


def test_two_registrations_of_one_name_do_not_meet(tmp_path: Path) -> None:
    results = {}
    plans: dict[str, Plan] = {}
    for side, plus in (("before", 1), ("after", 2)):
        (tmp_path / side).mkdir()
        (tmp_path / side / "lib.py").write_text(REGISTERS.format(plus=plus))
        plans[side] = plan(tmp_path / side, name="op")
    with Workers(tmp_path / "scratch") as workers:
        workers.start(plans["before"], "before")
        workers.start(plans["after"], "after")
        for side in ("before", "after"):
            ran = workers.run(side, plans[side], cell("r"), "cpu", 30)  # type: ignore[arg-type]
            results[side] = torch.load(ran.file, weights_only=True)["y"]
    torch.testing.assert_close(results["after"] - results["before"], torch.ones(4, 5))


@pytest.mark.parametrize(
    ("library", "status", "detail"),
    [
        ("1 / 0", "raised", "importing `lib`: ZeroDivisionError: division by zero\nlib.py:2 in <module>"),
        ("import os; os._exit(5)", "died", "the process ended itself with exit status 5, importing the op"),
    ],
)
def test_an_import_that_fails_is_every_cells_result(tmp_path: Path, library: str, status: str, detail: str) -> None:
    log = tmp_path / "log"
    (tmp_path / "lib.py").write_text(f"open({str(log)!r}, 'a').write('x')\n{library}\n")
    with Workers(tmp_path / "scratch") as workers:
        ran = []
        for row in ("a", "b"):
            workers.start(plan(tmp_path), "after")
            ran.append(workers.run("after", plan(tmp_path), cell(row), "cpu", 30))
    assert [(one.cell, one.status, one.detail) for one in ran] == [(cell(row).id, status, detail) for row in ("a", "b")]
    assert log.read_text() == "x"


def test_an_import_that_hangs(tmp_path: Path) -> None:
    (tmp_path / "lib.py").write_text("import time; time.sleep(1000)")
    with Workers(tmp_path / "scratch", import_seconds=1) as workers:
        ran = workers.run("after", plan(tmp_path), cell("r"), "cpu", 30)
    assert ran.status == "stalled"
    assert ran.detail.startswith("no answer within 1 s, importing the op")


def test_an_interrupt_ends_the_processes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    here = plan(write_library(tmp_path / "lib", log))
    child = Path(f"{log}.child")

    def interrupt() -> None:
        deadline = time.monotonic() + 240
        while not child.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt), Workers() as workers:
        workers.run("after", here, cell("r", "hang"), "cpu", 100)
    assert not alive(int(child.read_text()))
    assert not workers.folder.exists()


LONELY = """
import sys
import threading
from pathlib import Path
from opschema_cli.verify import forkserver
from opschema_cli.verify.workers import Workers
from tests.verify.oplib import cell, plan

root, forks = sys.argv[1:]
forkserver.available = lambda: bool(forks)
op = plan(Path(root) / "lib")
with Workers(Path(root) / "scratch") as workers:
    if forks:
        threading.Thread(target=workers.run, args=("before", op, cell("r", "stuck"), "cpu", 1000), daemon=True).start()
    workers.run("after", op, cell("r", "hang"), "cpu", 1000)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc")
@pytest.mark.parametrize("forks", ["forks", ""])
def test_workers_do_not_outlive_a_harness_that_is_killed(tmp_path: Path, forks: str) -> None:
    write_library(tmp_path / "lib", tmp_path / "log")
    children = tmp_path / "log.child"
    harness = subprocess.Popen([sys.executable, "-c", LONELY, str(tmp_path), forks])
    count = 2 if forks else 1
    try:
        wait_for(lambda: children.exists() and len(children.read_text().splitlines()) == count)
        started = descendants(harness.pid)
        assert {int(child) for child in children.read_text().split()} < {*started}
        assert len(started) == (5 if forks else 2), "each worker, its child, and the forkserver"
    finally:
        harness.kill()
        harness.wait()
    wait_for(lambda: not any(map(alive, started)))


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def descendants(pid: int) -> list[int]:
    children = [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return [found for child in children for found in (child, *descendants(child))]


def test_closing_frees_the_threads_that_wait(tmp_path: Path) -> None:
    log = tmp_path / "log"
    here = plan(write_library(tmp_path / "lib", log))
    found: list[Ran] = []
    with Workers() as workers:
        thread = threading.Thread(
            target=lambda: found.append(workers.run("after", here, cell("r", "hang"), "cpu", 200)), daemon=True
        )
        thread.start()
        deadline = time.monotonic() + 240
        while not Path(f"{log}.child").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
    thread.join(20)
    assert [ran.status for ran in found] == ["died"]
    assert not workers.folder.exists()


def test_what_an_op_does_to_its_process_is_told_in_a_line(tmp_path: Path) -> None:
    here = plan(write_library(tmp_path / "lib", tmp_path / "log"))
    with Workers(tmp_path / "scratch") as workers:
        mute, patch = (workers.run("after", here, cell(do, do), "cpu", 60) for do in ("mute", "patch"))
    assert (mute.status, mute.error) == ("raised", "Mute: (its message cannot be read: RuntimeError)")
    assert patch.status == "ok"
    assert Path(patch.file).exists()


def test_a_call_that_returns_in_two_processes_is_no_result_of_another_cell(tmp_path: Path) -> None:
    here = plan(write_library(tmp_path / "lib", tmp_path / "log"))
    names = ["fork", "a", "b", "c", "d"]
    with Workers(tmp_path / "scratch") as workers:
        ran = [workers.run("after", here, cell(name, name), "cpu", 60) for name in names]
    assert [item.cell for item in ran] == [cell(name).id for name in names]
    assert {item.status for item in ran} == {"ok", "died"}  # the second process may be slower than a further cell
