"""What a run could not look at: said once, of the run, in the report, the exit code, the baseline and the store."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from opschema_cli.lint.diagnostic import CPP, Missing, NotChecked
from opschema_cli.lint.not_checked import joined, not_checked, still_missing
from opschema_cli.main import run
from opschema_cli.source import cpp
from opschema_cli.testing import lint_files
from tests.toypack import PACK

ORCHKIT = Path(__file__).parents[2] / "fixtures/orchkit"

Lint = Callable[..., tuple[int, str]]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree whose kernels are judged by C++, one of them wrongly declared."""
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "root"
    shutil.copytree(ORCHKIT, folder)
    config = next(path for path in sorted(folder.rglob("*.py")) if "D.INOUT" in path.read_text())
    config.write_text(config.read_text().replace("D.INOUT", "D.IN", 1))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def opschema(capfd: pytest.CaptureFixture[str]) -> Lint:
    def opschema(*args: str) -> tuple[int, str]:
        code = run([*args])
        out, errors = capfd.readouterr()
        assert "Traceback" not in errors
        return code, out + errors

    return opschema


def without_cpp(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(sys.modules, "tree_sitter_cpp", None)
    cpp._language.cache_clear()


def test_only_rules_that_need_it_and_run_are_named() -> None:
    missing = [Missing(CPP, "no parser", "install it", ("a.cpp",)), Missing(CPP, "no parser", "install it", ("b.cpp",))]
    assert not_checked(missing, [("A", (CPP,)), ("B", ()), ("C", (CPP,))]) == [
        NotChecked("no parser", "install it", ("A", "C"), ("a.cpp", "b.cpp"))
    ]
    assert not_checked(missing, [("B", ())]) == []


def test_one_reason_is_said_once() -> None:
    one, two = NotChecked("r", "h", ("A",), ("a",)), NotChecked("r", "h", ("B",), ("a", "b"))
    other = NotChecked("another", "h", ("A",))
    assert joined([one, other, two]) == [NotChecked("r", "h", ("A", "B"), ("a", "b")), other]


def test_a_module_that_is_there_by_now_is_not_missing() -> None:
    assert still_missing(NotChecked("r", "h", module="no_such_module"))
    assert not still_missing(NotChecked("r", "h", module="json"))
    assert still_missing(NotChecked("a reference is missing", "h"))


@pytest.mark.usefixtures("no_cpp")
@pytest.mark.parametrize("path", [".", "README.md", "attention"])
def test_it_is_said_whatever_paths_are_given(root: Path, opschema: Lint, path: str) -> None:
    code, out = opschema("lint", "--output-format", "json", path)
    (missed,) = json.loads(out)["not_checked"]
    assert missed["message"] == "C++ is not read, as `tree_sitter_cpp` cannot be imported"
    assert missed["hint"] == "install it: pip install opschema-cli"
    assert {"PTO101", "PTO102", "PTO103"} <= set(missed["rules"])
    assert "PTO115" not in missed["rules"], "it reads no C++"
    assert missed["files"]
    assert all(file.endswith(".cpp") and (root / file).exists() for file in missed["files"])
    assert code == 0


@pytest.mark.usefixtures("no_cpp", "root")
def test_the_level_that_fails_makes_it_exit_code_2(opschema: Lint) -> None:
    assert opschema("lint", "--fail-on", "warning")[0] == 2
    assert opschema("lint", "--fail-on", "warning", "--ignore", "OPS104")[0] == 0


@pytest.mark.usefixtures("no_cpp", "root")
def test_it_is_not_said_where_no_rule_that_runs_needs_it(opschema: Lint) -> None:
    assert json.loads(opschema("lint", "--output-format", "json", "--select", "PTO115")[1])["not_checked"] == []
    assert json.loads(opschema("lint", "--output-format", "json", "--select", "PTO102")[1])["not_checked"]


@pytest.mark.usefixtures("no_cpp", "root")
def test_a_run_that_could_not_look_is_not_clean(opschema: Lint) -> None:
    out = opschema("lint")[1]
    assert "All clean" not in out
    assert "No findings, but not all was checked" in out
    assert "OPS104 not-checked" in opschema("lint", "--quiet")[1]


def test_a_stored_run_holds_only_while_it_is_missing(
    root: Path, opschema: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        without_cpp(patch)
        first = opschema("lint", "--output-format", "json")
        assert opschema("lint", "--output-format", "json") == first
    cpp._language.cache_clear()
    after = json.loads(opschema("lint", "--output-format", "json")[1])
    assert after["not_checked"] == []
    assert after["diagnostics"]


def test_a_baseline_keeps_what_could_not_be_judged(root: Path, opschema: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    held = root / ".opschema-baseline.json"
    assert opschema("baseline")[0] == 0
    before = held.read_text()
    assert "PTO1" in before
    with monkeypatch.context() as patch:
        without_cpp(patch)
        assert "SUP003" not in opschema("lint")[1], "nothing is fixed"
        assert "Kept 1 entry that could not be judged in this run" in opschema("baseline")[1]
    cpp._language.cache_clear()
    assert held.read_text() == before


def test_a_file_that_does_not_parse_may_hide_any_finding() -> None:
    files = {"a.toy.yaml": "add: {dtype: f8, doc: x}\n", "impl.py": "x = 1\n"}
    assert "TOY103" in lint_files([PACK], files).outcome.judged
    broken = {**files, "b.toy.yaml": "add: [\n"}
    assert lint_files([PACK], broken).outcome.judged == frozenset()


def test_a_rule_that_failed_judged_nothing() -> None:
    outcome = lint_files([PACK], {"a.toy.yaml": "add: {dtype: f8, doc: x, crash: x}\n"}).outcome
    assert outcome.crashed
    assert "TOY301" not in outcome.judged
    assert "TOY103" in outcome.judged


@pytest.mark.usefixtures("root")
def test_with_the_parser_nothing_of_it_is_said(opschema: Lint) -> None:
    assert json.loads(opschema("lint", "--output-format", "json")[1])["not_checked"] == []


@pytest.mark.usefixtures("no_cpp")
def test_commands_without_a_report_say_it_on_standard_error(root: Path, opschema: Lint) -> None:
    name = "mean"
    out = opschema("show", name)[1]
    assert "opschema: C++ is not read, as `tree_sitter_cpp` cannot be imported: " in out
    assert "(install it: pip install opschema-cli)" in out
    assert "not read    C++ is not read, as `tree_sitter_cpp`" in opschema("lint", "--show-settings")[1]


def test_a_baseline_keeps_the_findings_of_rules_that_were_not_selected(root: Path, opschema: Lint) -> None:
    held = root / ".opschema-baseline.json"
    assert opschema("baseline")[0] == 0
    before = held.read_text()
    assert opschema("lint", "--select", "PTO115", "--write-baseline")[0] == 0
    assert held.read_text() == before
