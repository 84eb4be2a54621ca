"""A package that is slow to import is imported once for all ops of a side, if workers can be forked from what it leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from opschema_cli.verify import forkserver
from opschema_cli.verify.model import Plan, Ran, Target
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


@pytest.mark.parametrize(
    "more",
    [
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        "KEPT = open(__file__)",
    ],
    ids=["thread", "file"],
)
def test_a_package_that_leaves_what_forks_cannot_share_is_imported_for_each_op(tmp_path: Path, more: str) -> None:
    ran, executed = imported(tmp_path, more)
    assert [(one.status, one.detail) for one in ran] == [("ok", "")] * 4
    assert executed.count("package") == 5  # one is the attempt, in vain


def test_on_a_gpu_each_op_imports_by_itself(tmp_path: Path) -> None:
    ran, executed = imported(tmp_path, device="cuda")
    assert [one.status for one in ran] == ["ok"] * 4
    assert executed.count("package") == 4
