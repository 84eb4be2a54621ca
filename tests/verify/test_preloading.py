"""A package that is slow to import is imported once for all ops of a side, if workers can be forked from what it leaves."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("torch")

from opschema_cli.verify import forkserver
from opschema_cli.verify.model import Plan, Ran, Target
from opschema_cli.verify.preloading import Package, preload
from opschema_cli.verify.workers import Workers
from tests.verify.oplib import cell

pytestmark = pytest.mark.skipif(not forkserver.available(), reason="workers are forked on Linux only")

PACKAGE = """
import os, threading, time

with open({log!r}, "a") as log:
    log.write("package\\n")
os.environ["SLOW_PACKAGE"] = "set"
time.sleep(1.1)
{more}
"""
OP = """
import os
import slow


class Op:
    def forward(self, x, do=""):
        assert os.environ["SLOW_PACKAGE"] == "set" and "slow" in os.environ["PYTHONPATH"]
        return x + 1

    __call__ = forward
"""
RECIPES = """
with open({log!r}, "a") as log:
    log.write("recipes\\n")
"""


def imported(tmp_path: Path, more: str = "", device: str = "cpu") -> tuple[list[Ran], list[str]]:
    """The results of four ops of a package, and what was executed meanwhile."""
    root, log = tmp_path / "slowlib", tmp_path / "log"
    (root / "slow").mkdir(parents=True)
    (root / "slow" / "__init__.py").write_text(PACKAGE.format(log=str(log), more=more))
    (root / "recipes.py").write_text(RECIPES.format(log=str(log)))
    ops = [f"op{number}" for number in range(4)]
    for op in ops:
        (root / "slow" / f"{op}.py").write_text(OP)
    plans = {
        op: Plan(op=op, target=Target(root=str(root), module=f"slow.{op}", name="Op", recipe="recipes.py"), cells=())
        for op in ops
    }
    with Workers(tmp_path / "scratch", device=device) as workers:
        ran = [workers.run("after", plan, cell("row", op=op), "cpu", 60) for op, plan in plans.items()]
    return ran, log.read_text().split()


def test_the_third_op_and_all_others_are_forked_from_a_process_that_has_the_package(tmp_path: Path) -> None:
    ran, executed = imported(tmp_path)
    assert [(one.status, one.detail) for one in ran] == [("ok", "")] * 4
    assert executed == ["recipes", "package"] * 3
    assert ran[1].seconds["import"] > 1 > ran[3].seconds["import"]


def test_a_package_that_leaves_what_forks_cannot_share_is_imported_for_each_op(tmp_path: Path) -> None:
    ran, executed = imported(tmp_path, "KEPT = open(__file__)")
    assert [(one.status, one.detail) for one in ran] == [("ok", "")] * 4
    assert executed.count("package") == 5  # one is the attempt, in vain


def test_on_a_gpu_each_op_imports_by_itself(tmp_path: Path) -> None:
    ran, executed = imported(tmp_path, device="cuda")
    assert [one.status for one in ran] == ["ok"] * 4
    assert executed.count("package") == 4


@pytest.mark.parametrize(
    ("code", "forks"),
    [
        ("import mmap\nSHARED = mmap.mmap(-1, 4096)", False),
        ("import os\nPID = os.getpid()", False),
        ("import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])", False),
        ("import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()", False),
        ("import subprocess\nsubprocess.Popen(['sleep', '60'])", False),
        ("import threading\nthread = threading.Thread(target=int)\nthread.start()\nthread.join()", True),
    ],
)
def test_what_forks_cannot_share(tmp_path: Path, code: str, forks: bool) -> None:
    package = quick(tmp_path, code)
    pid = os.fork()
    if not pid:
        found = 2
        try:
            os.setsid()
            found = int(preload(package))
        finally:
            os._exit(found)
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what the package started
    assert ended == forks


def quick(folder: Path, code: str) -> Package:
    """A package that executes ``code``."""
    (folder / "quick").mkdir()
    (folder / "quick" / "__init__.py").write_text(code)
    return Package(str(folder), (), "", "quick")


def test_a_server_that_cannot_be_forked_ends(tmp_path: Path) -> None:
    package = quick(tmp_path, "import subprocess\nsubprocess.Popen(['sleep', '60'])")
    server = forkserver.Forkserver(dict(os.environ), tmp_path, package=package, seconds=60)
    try:
        with pytest.raises(OSError, match="ended"):
            server.spawn({})
    finally:
        server.close()


SEEN = """
import os, random, sys
import torch
import slow

SEEN = [
    random.random(),
    torch.get_default_dtype(),
    torch.relu is torch.abs,
    os.getcwd(),
    sys.path[:3],
    os.environ["PYTHONPATH"].split(os.pathsep)[:2],
    sorted(name for name in sys.modules if name.startswith("slow"))[:1],
]


class Op:
    def forward(self, x, do=""):
        raise ValueError(SEEN)

    __call__ = forward
"""
CHANGES = """
import atexit, os, random, sys, time
import torch

time.sleep(1.1)
random.seed(7)
torch.set_default_dtype(torch.float64)
torch.relu = torch.abs
os.makedirs({root!r} + "/lib", exist_ok=True)
sys.path.insert(0, {root!r} + "/lib")
os.chdir({where!r})
atexit.register(lambda: open({root!r} + "/at-exit", "w").close())
"""


def test_a_fork_finds_what_the_package_changed(tmp_path: Path) -> None:
    roots = {side: tmp_path / side for side in ("after", "before")}
    plans: dict[str, list[Plan]] = {}
    for side, root in roots.items():
        (root / "slow").mkdir(parents=True)
        (root / "slow" / "__init__.py").write_text(CHANGES.format(root=str(root), where=f"{root}/lib"))
        (root / "recipes.py").write_text(f"import sys\nsys.path.insert(0, {str(root / 'recipes')!r})\n")
        for number in range(4):
            (root / "slow" / f"op{number}.py").write_text(SEEN)
        plans[side] = [
            Plan(
                op=f"op{number}",
                target=Target(root=str(root), module=f"slow.op{number}", name="Op", recipe="recipes.py"),
                cells=(),
            )
            for number in range(4)
        ]
    with Workers(tmp_path / "scratch", device="cpu") as workers:
        for side in ("after", "before"):
            ran = [workers.run(side, plan, cell("row", op=plan.op), "cpu", 60) for plan in plans[side]]
            told = [one.detail.splitlines()[0] for one in ran]
            assert told == told[:1] * 4
            assert str(roots[side]) in told[0]
            assert ran[0].seconds["import"] > 1 > ran[3].seconds["import"]
            other = roots["before" if side == "after" else "after"]
            assert str(other) not in told[0]
    assert not any((root / "at-exit").exists() for root in roots.values())
