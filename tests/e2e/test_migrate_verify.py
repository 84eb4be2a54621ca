"""``opschema migrate --apply --verify``: written only if the ops still compute the same."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("torch")

from opschema_cli.commands.verified import Subject
from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.engine import Chosen, Result
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.session import Session
from opschema_cli.source.text import Position, Span
from opschema_cli.verify.model import Limits, Plan
from opschema_cli.verify.prepare import make_plans
from opschema_cli.verify.results import Results
from opschema_cli.verify.run import Run
from tests.command import TILEKIT, Here
from tests.test_git import git

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="tilekit's kernels need a C++ compiler"),
    pytest.mark.usefixtures("compiled_kernels"),
]

MIGRATED = TILEKIT.with_name("tilekit_migrated")
NORM = Path("tilekit/kernels/cuda/rms_norm.cu")
DOUBLE_ROWS = '''\
from opschema_cli.lint.diagnostic import Place
from opschema_cli.lint.loaded import Loaded
from opschema_cli.lint.pack import Pack
from opschema_cli.migrate.migration import Site, migration
from opschema_cli.source.text import Edit, Span

PATH, OLD, NEW = "tilekit/kernels/cuda/rms_norm.cu", "* scale * weight[i]", "* scale * 2.0f * weight[i]"


def find(draft, options):
    source = draft.project.source(PATH)
    if OLD in source.text:
        yield Site(Place(PATH, Span(source.text.index(OLD), source.text.index(OLD) + len(OLD))), "double")


@migration("double-rows", find=find)
def double_rows(draft, sites, options):
    """Change what rms_norm computes."""
    for site in sites:
        draft.edit(PATH, [Edit(site.place.span, NEW)])
    yield from ()


PACK = Pack("double", "a pack", lambda *_: True, lambda *_: Loaded(), (), migrations=lambda: (double_rows,))
'''
"""A pack whose one migration changes what an op computes; it does not say which op."""


@pytest.fixture
def tilekit(tmp_path: Path) -> Path:
    """The fixture in a git repository, with the pack that does harm."""
    root = tmp_path / "tilekit"
    shutil.copytree(TILEKIT, root, ignore=shutil.ignore_patterns("__pycache__", ".ruff_cache"))
    (root / "double.py").write_text(DOUBLE_ROWS)
    config = root / "opschema.toml"
    config.write_text('plugins = ["double.py"]\n' + config.read_text())
    git(root, "init", "-q", ".")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


@pytest.fixture
def opschema(
    tilekit: Path,
    tmp_path: Path,
    forkservers: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Here:
    return Here(tilekit, tmp_path / "cache", monkeypatch, capsys)


def test_what_computes_the_same_is_written(tilekit: Path, opschema: Here) -> None:
    done = opschema("migrate", "drop-carrier", "--apply", "--verify", "--cells", "4")
    assert done.code == 0, done.err
    assert "Migrated 2 sites" in done.out
    assert "WindowMaskFwdOp" in done.err
    assert "RotaryTableFwdOp" in done.err
    assert "Passed: " in done.err
    changed = [path.relative_to(MIGRATED) for path in sorted(MIGRATED.rglob("*")) if path.is_file()]
    assert all((tilekit / path).read_bytes() == (MIGRATED / path).read_bytes() for path in changed)


def test_what_computes_something_else_is_not_written(tilekit: Path, opschema: Here) -> None:
    done = opschema("migrate", "double-rows", "--apply", "--verify", "--cells", "4")
    assert done.code == 1, done.err
    assert "regression  RMSNormFwdOp[" in done.err
    assert "regression  BatchCenterFwdOp[" not in done.err, "it runs the same module, and another kernel"
    assert "BatchCenterFwdOp" in done.err
    assert "ReluFwdOp" not in done.err
    assert "nothing was written" in done.err
    assert (tilekit / NORM).read_bytes() == (TILEKIT / NORM).read_bytes()


def test_a_renamed_op_is_compared_with_itself(tilekit: Path, opschema: Here) -> None:
    asked = [
        "rename-op",
        "-o",
        "old=AvgPool1dFwdOp",
        "-o",
        "new=MeanPool1dFwdOp",
        "--apply",
        "--verify",
        "--cells",
        "4",
    ]
    done = opschema("migrate", *asked)
    assert done.code == 0, done.err
    row = next(line for line in done.err.splitlines() if line.startswith(" MeanPool1dFwdOp (was AvgPool1dFwdOp)"))
    assert " - " in row.partition("cpu-sim")[2], row
    assert "declares no op" not in done.err
    assert "Passed: " in done.err
    assert "4 unchanged" in done.err
    assert "class MeanPool1dFwdOp" in (tilekit / "tilekit/ops/pool.py").read_text()


def test_nothing_is_written_of_an_op_of_which_nothing_could_be_run(tilekit: Path, opschema: Here) -> None:
    path = tilekit / "tilekit/manifest/reduction.yaml"
    path.write_text(path.read_text().replace("[4, 16, 1024]", "[4, 16, 0.5]").replace("[2, 3, 101]", "[2, 3, 0.5]"))
    git(tilekit, "commit", "-qam", "rows that cannot be run")
    asked = ["rename-op", "-o", "old=AvgPool1dFwdOp", "-o", "new=MeanPool1dFwdOp", "--apply"]
    done = opschema("migrate", *asked, "--verify")
    assert done.code == 1, done.err
    assert "nothing was checked of MeanPool1dFwdOp; --allow-unverified writes anyway" in done.err
    assert "AvgPool1dFwdOp" in path.read_text()
    done = opschema("migrate", *asked, "--verify", "--cells", "4", "--allow-unverified")
    assert done.code == 0, done.err
    assert "AvgPool1dFwdOp" not in path.read_text()
    done = opschema("migrate", *asked, "--allow-unverified")
    assert (done.code, "--allow-unverified goes with --verify" in done.err) == (2, True)


def test_each_tree_is_planned_once(tilekit: Path, opschema: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[tuple[str, Sequence[str]]] = []
    runs: list[Run] = []

    def count(session: Session, ops: Sequence[str], limits: Limits) -> list[Plan]:
        planned.append(("before" if session.root == tilekit else "after", ops))
        return make_plans(session, ops, limits)

    def run(found: Run) -> Results:
        runs.append(found)
        return Results(found.header)

    monkeypatch.setattr("opschema_cli.commands.verified.make_plans", count)
    monkeypatch.setattr("opschema_cli.verify.prepare.make_plans", count)
    monkeypatch.setattr("opschema_cli.commands.verified._run", run)
    asked = ["-o", "old=SumFwdOp", "-o", "new=TotalFwdOp"]
    done = opschema("migrate", "drop-carrier", "rename-op", *asked, "--apply", "--verify")
    assert done.code == 1
    # Those that the migrations are about, then those that run a module which drop-carrier changes.
    ops = ["RotaryTableFwdOp", "TotalFwdOp", "WindowMaskFwdOp"]
    others = ["ReluFwdOp", "SiluFwdOp", "GeluFwdOp"]
    assert [plan.op for plan in runs[0].plans] == [*ops, *others]
    assert planned == [("after", ()), ("before", ())]
    assert runs[0].before["TotalFwdOp"].name == "SumFwdOp"
    assert "opschema: verifying 6 ops, 3 of them because a file changes that they run\n" in done.err


def test_renamings_follow_each_other() -> None:
    def renaming(old: str, new: str) -> Result:
        site = Site(Place("a.yaml", Span(0, 1)), "rename", (old,), renamed=new)
        return Result(item, (Chosen(site, Position(1, 1), "migrated"),), (), ())

    @migration("rename", find=lambda *_: ())
    def item(*_: object) -> Sequence[Note]:
        """Rename."""
        return ()

    subject = Subject.of([renaming("A", "B"), renaming("C", "D"), renaming("B", "E")])
    assert subject == Subject({"D", "E"}, {"E": "A", "D": "C"})


def test_a_number_of_cells_goes_with_verify(opschema: Here) -> None:
    done = opschema("migrate", "drop-carrier", "--apply", "--cells", "3")
    assert (done.code, "--cells goes with --verify" in done.err) == (2, True)


def test_verify_goes_with_apply(opschema: Here) -> None:
    done = opschema("migrate", "drop-carrier", "--verify")
    assert (done.code, "--verify goes with --apply" in done.err) == (2, True)
