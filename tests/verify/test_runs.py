"""Whole runs: every cell is reported whatever others do, shards are the run, and the command says what is wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import NamedTuple
from unittest.mock import Mock

import msgspec
import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.main import run as opschema
from opschema_cli.verify.gathering import ResultOptions
from opschema_cli.verify.model import CellResult, Plan, Target
from opschema_cli.verify.results import Header, Results, Version, Writer, read_results, result_from_json, to_json
from opschema_cli.verify.run import SUFFIX, Run
from opschema_cli.verify.session import run_cells
from tests.command import TILEKIT, environment
from tests.test_git import git
from tests.verify.kit import OPS, write_kit
from tests.verify.oplib import cell, write_library

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


# Cells that end their process


FAULTS = {5: "abort", 9: "hang", 13: "raise", 16: "memory"}
"""What cells of the first op do, by their place; those of the other are sound."""

RECIPE = """
from opschema_cli.verify.recipes import Recipe, recipe


@recipe("Op", "kit::Other")
class PlusOne(Recipe):
    def reference(self, tensors, params):
        return tensors["x"] + 1
"""


def faulty_run(folder: Path, count: int = 20) -> Run:
    """Forty cells of two ops, four of which go wrong in the midst; or ``count`` of each op."""
    root = write_library(folder / "lib", folder / "log")
    (root / "recipes.py").write_text(RECIPE)
    target = Target(root=str(root), module="lib", name="Op", recipe="recipes.py")
    first = tuple(cell(f"r{number}", FAULTS.get(number, "")) for number in range(count))
    second = tuple(cell(f"r{number}", op="kit::Other") for number in range(count))
    plans = tuple(Plan(op=cells[0].op, target=target, cells=cells) for cells in (first, second))
    names = tuple(item.id for item in (*first, *second))
    here = Version(name=".")
    header = Header(
        run="x", shard=1, shards=1, total=len(names), before=None, after=here, device="cpu-sim", cells=names
    )
    (folder / "scratch").mkdir()
    return Run(header=header, plans=plans, compared=False, folder=str(folder / "scratch"), seconds=4)


def test_what_runs_on_the_cpu_is_shown_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    (tmp_path / "lib.py").write_text("import os\ndef op(x, do): raise ValueError(os.environ['CUDA_VISIBLE_DEVICES'])\n")
    item = cell("r")
    here = Plan(op="Op", target=Target(root=str(tmp_path), module="lib", name="op"), cells=(item,))
    header = Header(
        run="x", shard=1, shards=1, total=1, before=None, after=Version(name="."), device="cpu-sim", cells=(item.id,)
    )
    results = run_cells(Run(header=header, plans=(here,), compared=False, folder=str(tmp_path), seconds=60))
    assert results.cells[item.id].reason.startswith("after raised: ValueError\n")


class Faulty(NamedTuple):
    """A run of :func:`faulty_run`, its folder and its results."""

    run: Run
    folder: Path
    results: Results


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Faulty:
    """The run in this process."""
    return ran_in(tmp_path_factory.mktemp("faulty"))


def ran_in(folder: Path, *jobs: str) -> Faulty:
    run = faulty_run(folder)
    return Faulty(run, folder, run_cells(run, jobs=jobs, options=ResultOptions(folder / "results.jsonl")))


def test_all_cells_are_reported_whatever_some_do(faulty: Faulty) -> None:
    assert_complete(faulty)


def test_all_cells_are_reported_by_several_processes(tmp_path: Path) -> None:
    assert_complete(ran_in(tmp_path, "-n", "2"))


def assert_complete(found: Faulty) -> None:
    """All cells have a result in their order, whatever the faulty ones did."""
    run, folder, results = found
    assert (results.missing, results.errors) == ([], [])
    assert list(results.cells) == list(run.header.cells)
    reasons = {name: found.reason for name, found in results.cells.items() if found.verdict == "crashed"}
    assert list(reasons) == [cell(f"r{number}", do).id for number, do in FAULTS.items()]
    told = ("SIGABRT", "no answer within 4 s", "ValueError", "out of memory")
    assert all(text in reason for text, reason in zip(told, reasons.values(), strict=True))
    others = [found for name, found in results.cells.items() if name not in reasons]
    assert {found.verdict for found in others} == {"within-tolerance"}
    assert len(others) == 36
    assert read_results(folder / "results.jsonl").cells == results.cells
    # Only a process that died is replaced: three times, of one op.
    assert len((folder / "log").read_text().splitlines()) == 2 + 3


def test_a_failure_of_the_harness_is_told_and_its_cells_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opschema_cli.verify.plugin.OpCells.check", lambda *_: 1 / 0)
    results = run_cells(faulty_run(tmp_path, count=2))
    assert results.failed
    assert len(results.missing) == len(results.errors) == 4
    assert [error.partition(": ")[0] for error in results.errors] == results.missing
    assert "ZeroDivisionError" in results.errors[0]


# The command


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with two commits; the second changes what TimesFwdOp computes."""
    root = write_kit(tmp_path_factory.mktemp("kit"))
    git(root, "init", "-q", ".")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    path = root / "kit/times.py"
    path.write_text(path.read_text().replace("x * self.amount", "x * self.amount * 1.01"))
    return root


CELLS = ["--cells", "3", "--device", "cpu"]


@pytest.fixture(scope="module")
def whole(kit: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, object], Path]:
    """The run of all cells from a subfolder: exit code, report, and the folder with what else it wrote."""
    out = tmp_path_factory.mktemp("out")
    asked = ["--before", "HEAD", "--output-format", "json", "--output-file", str(out / "report.json")]
    files = ["--junit", str(out / "junit.xml"), "--results", str(out / "all.jsonl"), "--report", str(out / "pages")]
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(StringIO()) as said:
        patch.chdir(kit / "kit")
        patch.setenv("KIT_LOG", str(out / "log"))
        code = opschema(["verify", *CELLS, *asked, *files])
    assert "Traceback" not in said.getvalue(), said.getvalue()
    return code, json.loads((out / "report.json").read_text()), out


def verdicts(results: Results) -> dict[str, str]:
    return {name: found.verdict for name, found in results.cells.items()}


def test_a_regression_is_found_and_fails_the_run(whole: tuple[int, dict[str, object], Path]) -> None:
    code, report, out = whole
    results = read_results(out / "all.jsonl")
    assert code == 1
    assert report["missing"] == []
    of_op = {op: {found.verdict for found in results.cells.values() if found.op == op} for op in OPS}
    assert of_op == {
        "PlusFwdOp": {"unchanged"},
        "TimesFwdOp": {"regression"},
        "MinusFwdOp": {"unchanged"},
    }


@pytest.fixture
def changed(kit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the kit to be changed, the current folder; the kit is what was before."""
    root = write_kit(tmp_path / "after")
    monkeypatch.chdir(root)
    return root


def verify(root: Path, *more: str) -> tuple[int, dict[str, list[str]]]:
    """The exit code, and the verdicts by op, of a run against the sound kit."""
    report = root / "report.json"
    before = write_kit(root.parent / "before")
    asked = ["--before", str(before), "--device", "cpu", "--cells", "1"]
    code = opschema(["verify", *asked, *more, "--output-format", "json", "--output-file", str(report)])
    found: dict[str, list[str]] = {}
    for one in json.loads(report.read_text())["cells"]:
        found.setdefault(one["op"], []).append(one["verdict"])
    return code, found


def test_what_only_the_tree_before_has_fails_the_run(changed: Path) -> None:
    path = changed / "kit/manifest/toy.yaml"
    text = path.read_text()
    first, _, rest = text.partition("TimesFwdOp:")
    path.write_text(first.replace("implemented", "spec-only") + "MinusFwdOp:" + rest.partition("MinusFwdOp:")[2])
    assert verify(changed) == (
        1,
        {"PlusFwdOp": ["regression"], "MinusFwdOp": ["unchanged"], "TimesFwdOp": ["regression"]},
    )
    code, found = verify(changed, "--expect-removed", "PlusFwdOp", "--expect-removed", "TimesFwdOp")
    assert (code, found["PlusFwdOp"], found["TimesFwdOp"]) == (0, ["not-checked"], ["not-checked"])


@pytest.mark.parametrize(
    ("module", "old", "new"), [("plus", "PlusFwdOp", "PlusOp"), ("plus", "import torch", "import kit.nothing")]
)
def test_an_op_that_can_no_longer_be_run_fails_the_run(changed: Path, module: str, old: str, new: str) -> None:
    path = changed / f"kit/{module}.py"
    path.write_text(path.read_text().replace(old, new))
    assert verify(changed, "PlusFwdOp") == (1, {"PlusFwdOp": ["regression"]})


def test_a_run_that_checks_nothing_fails(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for root in (changed, changed.parent / "before"):
        path = write_kit(root) / "kit/plus.py"
        path.write_text("import kit_needs_this\n" + path.read_text())
    asked = ["verify", "--before", str(changed.parent / "before"), "--device", "cpu", "--cells", "1"]
    assert opschema([*asked, "PlusFwdOp"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "Nothing was checked: 1 cell of 1 op on cpu-sim: 1 not checked, 1 op not imported" in out
    assert opschema([*asked, "PlusFwdOp", "TimesFwdOp"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "Failed: 2 cells of 2 ops on cpu-sim: 1 unchanged, 1 not checked, 1 op not imported" in out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def\n", "recipes.py:1: invalid syntax"),
        ("1 / 0\n", "recipes.py raises ZeroDivisionError: division by zero"),
        (None, "recipes.py: No such file"),
    ],
)
def test_recipes_that_cannot_be_read_are_an_error(
    changed: Path, capsys: pytest.CaptureFixture[str], text: str | None, says: str
) -> None:
    path = changed / "tests/recipes.py"
    path.unlink()
    if text is not None:
        path.write_text(text)
    assert opschema(["verify", "PlusFwdOp", "--device", "cpu", "--cells", "1"]) == 2
    err = capsys.readouterr().err
    assert "opschema: the recipes cannot be read: " in err, err
    assert says in err


def test_a_recipe_of_an_unknown_op_is_told(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = changed / "tests/recipes.py"
    path.write_text(path.read_text().replace('"PlusFwdOp"', '"PlsFwdOp"'))
    opschema(["verify", "--device", "cpu", "--cells", "1"])
    line = path.read_text().splitlines().index('@recipe("PlsFwdOp")') + 1
    out = capsys.readouterr().out
    assert f"recipes.py:{line}: there is no op `PlsFwdOp` for this recipe; did you mean `PlusFwdOp`?" in out


def test_junit_says_the_same(whole: tuple[int, dict[str, object], Path]) -> None:
    out = whole[2]
    cases = {case.get("name"): case for case in ET.parse(out / "junit.xml").iter("testcase")}
    results = read_results(out / "all.jsonl")
    assert cases.keys() == results.cells.keys()
    failed = {name for name, case in cases.items() if case.find("failure") is not None}
    assert failed == {name for name, found in results.cells.items() if found.verdict == "regression"}


def test_pages_are_written(whole: tuple[int, dict[str, object], Path]) -> None:
    assert "TimesFwdOp" in (whole[2] / "pages/index.html").read_text()


def test_a_page_shows_the_trend_since_earlier_results(
    whole: tuple[int, dict[str, object], Path], tmp_path: Path
) -> None:
    results = str(whole[2] / "all.jsonl")
    assert opschema(["verify", "--merge", results, "--earlier", results, "--report", str(tmp_path)]) == 1
    assert "over 2 runs" in (tmp_path / "index.html").read_text()


def test_each_op_is_imported_once_on_each_side_and_after_the_recipes(
    whole: tuple[int, dict[str, object], Path],
) -> None:
    lines = [line.split(" ", 2) for line in (whole[2] / "log").read_text().splitlines()]
    assert len(lines) == len({process for _, process, _ in lines}) == 2 * len(OPS)
    assert {state for *_, state in lines} == {"set up"}


def test_shards_together_are_the_whole_run(
    kit: Path,
    whole: tuple[int, dict[str, object], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(kit)
    files = [tmp_path / f"{number}.jsonl" for number in (1, 2, 3)]
    for number, path in enumerate(files, 1):
        opschema(["verify", *CELLS, "--before", "HEAD", "--shard", f"{number}/3", "--results", str(path)])
    capsys.readouterr()
    report = tmp_path / "merged.json"
    merge = ["verify", "--merge", "--output-format", "json", "--output-file", str(report)]
    assert opschema([*merge, *map(str, files)]) == 1
    merged = {item["id"]: item["verdict"] for item in json.loads(report.read_text())["cells"]}
    assert merged == verdicts(read_results(whole[2] / "all.jsonl"))

    # Without the shard of the regression, it is the missing shard that fails.
    sound = [path for path in files if not read_results(path).failed]
    assert len(sound) == 2
    assert opschema(["verify", "--merge", *map(str, sound)]) == 1
    told = capsys.readouterr()
    assert " of 3 is missing" in told.err
    assert "Incomplete: " in told.out
    assert "Passed" not in told.out
    assert opschema([*merge, *map(str, sound)]) == 1
    assert json.loads(report.read_text())["lacks"]
    capsys.readouterr()

    # Of a shard that was killed a cell is missing.
    lines = sound[0].read_text().splitlines(keepends=True)
    sound[0].write_text("".join(lines[:-1]))
    assert opschema(["verify", "--merge", *map(str, files)]) == 1
    assert f"{json.loads(lines[-1])['id']} has no result" in capsys.readouterr().err


@pytest.fixture
def history(kit: Path, tmp_path: Path) -> Path:
    """The repository with three commits: the first, one in which an op computes something else, one that renames it."""
    root = tmp_path / "history"
    shutil.copytree(kit, root, ignore=shutil.ignore_patterns("__pycache__"))
    git(root, "commit", "-qam", "second")
    for path in ("kit/times.py", "kit/manifest/toy.yaml", "tests/recipes.py"):
        (root / path).write_text((root / path).read_text().replace("TimesFwdOp", "ProductFwdOp"))
    git(root, "commit", "-qam", "third")
    return root


def test_shards_are_of_one_run_whatever_its_commits_are_called(
    history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(history)
    run = subprocess.run(["git", "rev-parse", "HEAD~1", "HEAD~2"], capture_output=True, text=True, check=True)
    second, first = run.stdout.split()
    head = read_head(history)

    def shard(number: int, before: str) -> str:
        path = tmp_path / f"{number}-{before[:6]}.jsonl"
        names = ["PlusFwdOp", "MinusFwdOp"]
        opschema(["verify", *names, *CELLS, "--before", before, "--shard", f"{number}/2", "--results", str(path)])
        return str(path)

    files = [shard(1, "HEAD~2"), shard(2, first)]
    report = tmp_path / "merged.json"
    asked = ["--output-format", "json", "--output-file", str(report)]
    assert opschema(["verify", "--merge", *asked, *files]) == 0
    told = json.loads(report.read_text())
    assert told["before"] == {"name": "HEAD~2", "commit": first}
    assert told["after"] == {"name": ".", "commit": head}
    capsys.readouterr()
    assert opschema(["verify", "--merge", files[0], shard(2, "HEAD~1")]) == 2
    said = f"the tree before is `HEAD~2` (commit {first[:12]}) in one and `HEAD~1` (commit {second[:12]}) in another"
    assert said in capsys.readouterr().err


def read_head(root: Path) -> str:
    done = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_renamed_op_is_compared_with_itself(
    history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(history)
    renamed = ["--renamed", "TimesFwdOp=ProductFwdOp"]
    results = tmp_path / "results.jsonl"
    # Against the commit before the renaming it is the same; against the first it computes something else.
    asked = ["verify", "ProductFwdOp", *CELLS, "--results", str(results)]
    assert opschema([*asked, "--before", "HEAD~1", *renamed]) == 0
    same = read_results(results)
    assert set(verdicts(same).values()) == {"wrong-already"}
    assert same.header.renamed == {"ProductFwdOp": "TimesFwdOp"}
    told = capsys.readouterr().out
    assert "ProductFwdOp (was" in told
    assert "TimesFwdOp)" in told
    assert opschema([*asked, "--before", "HEAD~2", *renamed]) == 1
    assert set(verdicts(read_results(results)).values()) == {"regression"}
    # Without being told there is nothing to compare with.
    assert opschema([*asked, "--before", "HEAD~1"]) == 1
    reasons = {found.reason for found in read_results(results).cells.values()}
    assert all("`kit.times` has no `ProductFwdOp`" in reason for reason in reasons), reasons


def test_an_op_that_only_the_tree_after_declares_is_called_on_both_sides(
    changed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write_kit(changed.parent / "before")
    (before / "kit/manifest/toy.yaml").write_text(
        (changed / "kit/manifest/toy.yaml").read_text().partition("MinusFwdOp")[0]
    )
    assert opschema(["verify", "--before", str(before), "--device", "cpu", "--cells", "1", "MinusFwdOp"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "note MinusFwdOp: only the tree after declares it; both sides are called so" in out
    assert "Passed: 1 cell of 1 op on cpu-sim: 1 unchanged" in out


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--renamed", "A=B"], "--renamed goes with --before"),
        (["--before", "HEAD", "--renamed", "PlusFwdOp"], "--renamed takes OLD=NEW, once for each NEW, not `PlusFwdOp`"),
        (["--before", "HEAD", "--renamed", "A=B", "--renamed", "C=B"], "not `C=B`"),
        (
            ["--before", "HEAD", "--renamed", "A=PlsFwdOp"],
            "`A=PlsFwdOp` renames none of the ops that are verified; did",
        ),
        (["--before", "HEAD", "--renamed", "A=PlusFwdOp"], "the tree before: no operator here is called `A`"),
    ],
)
def test_a_renaming_that_cannot_be_is_refused(
    kit: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], args: list[str], says: str
) -> None:
    monkeypatch.chdir(kit)
    assert opschema(["verify", "--device", "cpu", *args]) == 2
    assert says in capsys.readouterr().err


def test_pytest_runs_a_run_file(
    kit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(kit)
    path = tmp_path / f"kit{SUFFIX}"
    assert opschema(["verify", *CELLS, "--run-file", str(path)]) == 0
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    command = [str(path), "-k", "PlusFwdOp and not odd", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"]
    if not any("opschema" in name for name in _plugins()):
        command += ["-p", "opschema_cli.verify.plugin"]
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    assert pytest.main([*command, f"--junitxml={tmp_path / 'junit.xml'}"]) == 0
    assert "2 passed, 7 deselected" in capsys.readouterr().out
    names = [case.get("name") for case in ET.parse(tmp_path / "junit.xml").iter("testcase")]
    assert names == ["PlusFwdOp[small-float32-row-s0]", "PlusFwdOp[small-float32-row-strided-s0]"]


def _plugins() -> list[str]:
    from importlib.metadata import entry_points

    return [point.value for point in entry_points(group="pytest11")]


# What is refused


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["PlsFwdOp"], "no operator here is called `PlsFwdOp`; did you mean `PlusFwdOp`"),
        (["--shard", "4/3"], "`4/3` is not a shard"),
        (["--before", "gone"], "'gone' is neither a folder nor a revision that git can export"),
        (["--run-file", "x.json"], "call it `x.opschema-run`"),
        (["--run-file", f"x{SUFFIX}", "--before", "HEAD"], "git worktree add FOLDER HEAD"),
        (["--timeout", "nan"], "--timeout takes a number of seconds, not nan"),
        (["--tx", "foo"], "--tx takes popen, ssh=HOST or socket=HOST:PORT"),
        (["--results", "gone/a.jsonl"], "gone/a.jsonl cannot be written: there is no folder"),
        (["--junit", "kit"], "kit cannot be written: it is a folder"),
        (["--report", "opschema.toml/pages"], "opschema.toml/pages cannot be written"),
        (["--merge"], "--merge takes the files of results of all shards"),
        (["--merge", "gone.jsonl"], "gone.jsonl cannot be read"),
        (["--merge", "opschema.toml"], "opschema.toml:1: this is not a result of `opschema verify`"),
        (["PlusFwdOp", "--results", "gone/x.jsonl"], "gone/x.jsonl cannot be written"),
        (["--earlier", "gone.jsonl"], "--earlier goes with --report DIR"),
        (["--earlier", "gone.jsonl", "--report", "build"], "gone.jsonl cannot be read"),
    ],
)
def test_what_cannot_be_run_is_refused(
    kit: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], args: list[str], says: str
) -> None:
    monkeypatch.chdir(kit)
    assert opschema(["verify", "--device", "cpu", *args]) == 2
    assert says in capsys.readouterr().err


def test_a_gpu_that_is_not_there_is_refused(
    kit: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.chdir(kit)
    assert opschema(["verify", "--device", "cuda"]) == 2
    assert "PyTorch sees no GPU here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "args"),
    [("torch", []), ("pytest", []), ("xdist", ["--jobs", "2"]), ("jinja2", ["--report", "pages"])],
)
def test_a_package_that_is_not_there_is_named(
    kit: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], module: str, args: list[str]
) -> None:
    monkeypatch.chdir(kit)
    monkeypatch.setattr("opschema_cli.commands.verify.find_spec", lambda name: None if name == module else name)
    assert opschema(["verify", *args]) == 2
    assert (
        f"this needs `{module}`, which is not installed: pip install 'opschema-cli[verify]'" in capsys.readouterr().err
    )


def test_operators_that_nothing_imports_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(TILEKIT.with_name("atenkit"))
    assert opschema(["verify", "--device", "cpu"]) == 2
    says = "28 operators of `aten`: it is defined in `aten/native_functions.yaml`, which cannot be imported; name"
    assert (
        f"found no op to verify among the {says} the module that registers it with --import" in capsys.readouterr().err
    )


def test_an_op_is_found_in_any_case(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(TILEKIT)
    assert opschema(["verify", "--device", "cpu", "--list", "rmsnormfwdop"]) == 0
    assert all(line.startswith("RMSNormFwdOp[") for line in capsys.readouterr().out.splitlines())


def test_a_repository_without_ops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert opschema(["verify"]) == 2
    assert "found no op to verify here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "says"),
    [("raise OSError('libcudart.so.12: no such file')", "OSError: libcudart.so.12"), ("", "AttributeError: ")],
)
def test_a_torch_that_cannot_be_loaded(kit: Path, tmp_path: Path, code: str, says: str) -> None:
    (tmp_path / "torch.py").write_text(code)
    env = environment(tmp_path / "cache")
    env["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{env.get('PYTHONPATH', '')}"
    command = [sys.executable, "-m", "opschema_cli", "verify", "PlusFwdOp"]
    done = subprocess.run(command, cwd=kit, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"opschema: PyTorch cannot be loaded: {says}")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_told(kit: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(kit)
    command = ["verify", "PlusFwdOp", "--device", "cpu", "--cells", "1"]
    assert opschema([*command, "--results", "/dev/full"]) == 2
    assert "opschema: /dev/full cannot be written: No space left on device" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_disk_that_fills_up_loses_no_report(
    kit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(kit)
    monkeypatch.setattr(Writer, "add", Mock(side_effect=OpschemaError("a.jsonl cannot be written: it is full")))
    command = ["verify", "PlusFwdOp", "--device", "cpu", "--cells", "2", "--results", str(tmp_path / "a.jsonl")]
    assert opschema([*command, "--junit", "/dev/full"]) == 2
    told = capsys.readouterr()
    assert "Passed: 2 cells of 1 op" in told.out
    assert told.err.endswith(
        "a.jsonl cannot be written: it is full\n/dev/full cannot be written: No space left on device\n"
    )


def test_a_reader_who_goes_away_changes_no_exit_code(
    whole: tuple[int, dict[str, object], Path], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "opschema_cli", "verify", "--merge", str(whole[2] / "all.jsonl")]
    reader, writer = os.pipe()
    os.close(reader)
    env = environment(tmp_path / "cache")
    done = subprocess.run(command, env=env, stdout=writer, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


# Numbers that JSON lacks


def test_figures_may_be_infinite() -> None:
    found = {"id": "a", "op": "a", "verdict": "regression", "device": "cpu-sim"}
    figures = [{"side": "after", "output": "y", "worst": "inf", "ulps": "nan", "kappa": 1.5, "at": [3]}]
    read = result_from_json(json.dumps({**found, "figures": figures}))
    assert isinstance(read, CellResult)
    assert read.figures[0].worst == float("inf")
    assert read.figures[0].ulps != read.figures[0].ulps
    written = json.loads(to_json(read), parse_constant=pytest.fail)
    assert written["figures"][0].items() >= figures[0].items()


# Interrupted


def test_an_end_of_the_job_ends_all_processes(
    kit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hangs = tmp_path / "hangs"
    hangs.touch()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("KIT_HANGS", str(hangs))
    monkeypatch.chdir(kit)

    def end() -> None:
        wait_for(hangs)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end, daemon=True).start()
    assert opschema(["verify", "PlusFwdOp", "--device", "cpu"]) == 130
    assert "opschema: interrupted" in capsys.readouterr().err
    assert not [pid for pid in map(int, hangs.read_text().split()) if alive(pid)]
    assert os.listdir(tmp_path / "tmp") == []


def wait_for(hangs: Path) -> None:
    """Wait until an op hangs."""
    deadline = time.monotonic() + 240
    while not hangs.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)


def test_an_interrupt_ends_all_processes(kit: Path, tmp_path: Path) -> None:
    hangs = tmp_path / "hangs"
    hangs.touch()
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "opschema_cli", "verify", "PlusFwdOp", "--device", "cpu", "--jobs", "2"]
    env = environment(tmp_path / "cache", KIT_HANGS=str(hangs), TMPDIR=str(tmp_path / "tmp"))
    process = subprocess.Popen(
        command, cwd=kit, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        wait_for(hangs)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends ^C
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "opschema: interrupted" in err
    assert not [pid for pid in map(int, hangs.read_text().split()) if alive(pid)]
    assert os.listdir(tmp_path / "tmp") == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks")
def test_a_kill_ends_the_workers_of_all_processes(kit: Path, tmp_path: Path) -> None:
    hangs = tmp_path / "hangs"
    hangs.touch()
    command = [sys.executable, "-m", "opschema_cli", "verify", "PlusFwdOp", "--device", "cpu", "--tx", "popen"]
    env = environment(tmp_path / "cache", KIT_HANGS=str(hangs), TMPDIR=str(tmp_path))
    process = subprocess.Popen(command, cwd=kit, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(hangs)
    finally:
        process.kill()
        process.wait()
    pids = [int(pid) for pid in hangs.read_text().split()]
    assert pids
    deadline = time.monotonic() + 240
    while any(map(alive, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def alive(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


# Options of long runs


def test_a_run_goes_on_where_an_earlier_one_ended(faulty: Faulty, tmp_path: Path) -> None:
    run, folder, whole = faulty
    file = tmp_path / "results.jsonl"
    lines = (folder / "results.jsonl").read_text().splitlines(keepends=True)
    # The first op is complete but for its last cell, the second is complete; the last line is half written.
    first = [number for number, line in enumerate(lines) if '"op":"Op"' in line]
    del lines[first[-1]]
    file.write_text("".join(lines) + lines[-1][:20])
    imported = len((folder / "log").read_text().splitlines())
    seen: list[int] = []
    options = ResultOptions(file, resume=True, progress=lambda done, total, title: seen.append(done))
    again = run_cells(msgspec.structs.replace(run, folder=str(fresh(tmp_path))), options=options)
    assert {name: found.verdict for name, found in again.cells.items()} == {
        name: found.verdict for name, found in whole.cells.items()
    }
    assert seen == list(range(21, 41)), "the second op is kept, the first is run again"
    assert len((folder / "log").read_text().splitlines()) - imported == 1 + 3
    assert read_results(file).cells == again.cells
    assert run_cells(run, options=options).cells == again.cells
    assert len(seen) == 20, "nothing is left to run"


def fresh(folder: Path) -> Path:
    (folder / "again").mkdir()
    return folder / "again"


def test_another_run_is_not_resumed(tmp_path: Path) -> None:
    run, file = faulty_run(tmp_path), tmp_path / "results.jsonl"
    header = msgspec.structs.replace(run.header, run="y", after=Version(name="other", content="1"))
    Writer(file, header).close()
    with pytest.raises(
        OpschemaError, match=r"cannot be resumed: the tree after is .* without --resume it is overwritten"
    ):
        run_cells(run, options=ResultOptions(file, resume=True))


def test_a_run_may_end_with_the_first_failure(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = changed / "kit/plus.py"
    file.write_text(file.read_text().replace("x + self.amount", "x - self.amount"))
    before = write_kit(changed.parent / "before")
    arguments = ["verify", "--before", str(before), "--device", "cpu", "--cells", "2", "--fail-fast"]
    assert opschema([*arguments, "--output-format", "json"]) == 1
    done = capsys.readouterr()
    found = json.loads(done.out)
    assert [item["verdict"] for item in found["cells"]].count("regression") == 1
    assert found["missing"]
    assert f"stopped at the first cell that failed; {len(found['missing'])} cells not run" in done.err


def test_a_strict_run_fails_where_an_op_is_not_checked(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["verify", "--device", "cpu", "--cells", "1"]
    assert opschema(arguments) == 0
    capsys.readouterr()
    assert opschema([*arguments, "--strict"]) == 1
    assert "opschema: --strict: nothing was checked of MinusFwdOp\n" in capsys.readouterr().err


def test_progress_without_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from opschema_cli.commands import output

    monkeypatch.setattr(output, "LINE_SECONDS", 0.0)
    with output.ProgressBar("verifying", "cells", quiet=0, lines=True) as progress:
        progress(1, 200, "PlusFwdOp (1 failed)")
        progress(4, 200, "PlusFwdOp (1 failed)")
    with output.ProgressBar("reading", "files", quiet=0) as silent:
        silent(1, 3)
    assert capsys.readouterr().err == (
        "opschema: verifying: 1 of 200 cells, last of PlusFwdOp (1 failed)\n"
        "opschema: verifying: 4 of 200 cells, about 0 s left, last of PlusFwdOp (1 failed)\n"
    )
