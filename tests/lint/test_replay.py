"""Replay: a run over an unchanged workspace comes from the store, and whatever a run depends on makes a new one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from opschema_cli.cache import Cache
from opschema_cli.commands import lint_run as command
from opschema_cli.lint.replay import StaleRun, _Stored, code_stamp, recall, remember
from opschema_cli.lint.runner import Outcome
from opschema_cli.main import run
from opschema_cli.workspace import Workspace

TOYPACK = Path(__file__).parents[1] / "toypack.py"
CONFIG = 'plugins = ["plugins/toypack.py"]\n'

Lint = Callable[..., tuple[int, str]]


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "root"
    (folder / "plugins").mkdir(parents=True)
    shutil.copy(TOYPACK, folder / "plugins/toypack.py")
    (folder / "opschema.toml").write_text(CONFIG)
    (folder / ".gitignore").write_text("*.out\n")
    (folder / "a.toy.yaml").write_text("add: {dtype: f8, impl: impl.py, needs: made.out}\n")
    (folder / "impl.py").write_text("class A: ...\n")
    monkeypatch.chdir(folder)
    return folder


class Runs:
    """Counts the runs that were not replayed."""

    def __init__(self) -> None:
        self.count = 0

    def counted(self, real: Callable[..., Outcome]) -> Callable[..., Outcome]:
        def run(*args: object) -> Outcome:
            self.count += 1
            return real(*args)

        return run


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    counter = Runs()
    monkeypatch.setattr(command, "report_outcome", counter.counted(command.report_outcome))
    return counter


@pytest.fixture
def lint(capfd: pytest.CaptureFixture[str]) -> Lint:
    def lint(*args: str) -> tuple[int, str]:
        code = run(["lint", "--output-format", "concise", *args])
        report, errors = capfd.readouterr()
        assert "Traceback" not in errors
        return code, "\n".join(line for line in report.splitlines() if not line.startswith(("Found", "All clean")))

    return lint


def test_the_second_run_is_answered_from_the_store_and_says_the_same(lint: Lint, runs: Runs) -> None:
    first = lint()
    assert (first[0], runs.count) == (1, 1)
    assert all(code in first[1] for code in ("TOY101", "TOY103", "TOY104", "TOY304"))
    assert lint() == first
    assert runs.count == 1


@pytest.mark.parametrize("report", ["text", "json", "sarif", "github", "gitlab", "junit"])
def test_every_format_reports_a_replayed_run_like_a_fresh_one(
    report: str, runs: Runs, capfd: pytest.CaptureFixture[str]
) -> None:
    def once() -> str:
        run(["lint", "--output-format", report])
        return "\n".join(
            line for line in capfd.readouterr().out.splitlines() if " s)" not in line and "time=" not in line
        )

    assert once() == once()
    assert runs.count == 1


def test_all_that_reports_show_is_stored() -> None:
    not_shown = {"timings", "crashed", "traces"}  # statistics are of a run, and nothing is stored of one that failed
    assert set(_Stored.__struct_fields__) == {"asked", *Outcome.__struct_fields__} - not_shown


def _edit(path: str, old: str, new: str) -> Callable[[Path], None]:
    return lambda root: (root / path).write_text((root / path).read_text().replace(old, new)) and None


CHANGES: dict[str, Callable[[Path], object]] = {
    "a schema file's text": _edit("a.toy.yaml", "f8", "f9"),
    "a code file's text, of the same length": _edit("impl.py", "A", "B"),
    "a file appears": lambda root: (root / "b.toy.yaml").write_text(""),
    "a file that no pack reads appears": lambda root: (root / "notes.txt").write_text(""),
    "a file goes": lambda root: (root / "impl.py").unlink(),
    "a file is renamed": lambda root: (root / "a.toy.yaml").rename(root / "c.toy.yaml"),
    "the configuration": lambda root: (root / "opschema.toml").write_text(CONFIG + "ignore = ['TOY101']\n"),
    "a plugin's code": _edit("plugins/toypack.py", "has no doc", "lacks a doc"),
    "an ignored file that a rule looked for": lambda root: (root / "made.out").write_text(""),
    "a file becomes unreadable": lambda root: (root / "a.toy.yaml").write_bytes(b"\0"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_run_depends_on_makes_a_new_one(
    root: Path, lint: Lint, runs: Runs, change: Callable[[Path], object]
) -> None:
    lint()
    change(root)
    after = lint()
    assert runs.count == 2
    assert lint("--no-cache") == after
    assert lint() == after
    assert runs.count == 3


@pytest.mark.parametrize(
    "options",
    [
        ("--select", "TOY101"),
        ("--ignore", "TOY101"),
        ("a.toy.yaml",),
        ("impl.py",),
        ("--statistics", "--output-format", "text"),
        ("--no-cache",),
    ],
)
def test_other_options_make_a_new_one(lint: Lint, runs: Runs, options: tuple[str, ...]) -> None:
    lint()
    lint(*options)
    assert runs.count == 2


def test_options_that_only_report_do_not(lint: Lint, runs: Runs) -> None:
    lint()
    assert lint("--fail-on", "info")[0] == 1
    lint("--output-format", "json")
    assert runs.count == 1


def test_an_edit_undone_is_a_run_of_its_own_at_most_once(root: Path, lint: Lint, runs: Runs) -> None:
    first = lint()
    text = (root / "a.toy.yaml").read_text()
    (root / "a.toy.yaml").write_text("mul: {doc: x}\n")
    assert lint() != first
    (root / "a.toy.yaml").write_text(text)
    assert lint() == first


def test_a_touched_file_changes_nothing(root: Path, lint: Lint, runs: Runs) -> None:
    first = lint()
    (root / "a.toy.yaml").write_text((root / "a.toy.yaml").read_text())
    assert lint() == first
    assert runs.count == 1


def test_a_run_in_which_a_rule_failed_is_not_kept(root: Path, lint: Lint, runs: Runs) -> None:
    (root / "a.toy.yaml").write_text("add: {crash: yes}\n")
    assert lint()[0] == lint()[0] == 3
    assert runs.count == 2


def test_fixing_starts_from_a_replayed_run(root: Path, lint: Lint, runs: Runs) -> None:
    (root / "a.toy.yaml").write_text("add: {doc: LOUD}\n")
    lint()
    assert lint("--fix") == (0, "")
    assert (root / "a.toy.yaml").read_text() == "add: {doc: loud}\n"
    assert runs.count == 1, "but for the rounds of the fixes themselves"


def test_two_workspaces_do_not_share_runs(root: Path, lint: Lint, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    lint()
    monkeypatch.chdir(shutil.copytree(root, root.parent / "other"))
    lint()
    assert runs.count == 2


@pytest.fixture
def recalled(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Outcome | StaleRun | None]:
    """What is recalled of a run that read ``outside.yaml`` beside the root and asked for the variable ``TOY_HOME``."""
    monkeypatch.setenv("TOY_HOME", "here")
    (root.parent / "outside.yaml").write_text("old")
    workspace = Workspace(root)
    workspace.data(workspace.admit(root.parent / "outside.yaml"))
    workspace.is_file(workspace.admit(root.parent / "missing.yaml"))
    workspace.variable("TOY_HOME")
    cache = Cache.for_workspace(root)
    remember(cache, "key", workspace, Outcome())
    return lambda: recall(cache, "key", Workspace(root))


def test_a_file_outside_the_root_that_is_as_it_was_makes_no_new_run(recalled: Callable[[], object]) -> None:
    assert recalled() == Outcome()


def test_a_file_outside_the_root_that_changes_or_appears_makes_a_new_run(
    root: Path, recalled: Callable[[], object]
) -> None:
    (root.parent / "missing.yaml").write_text("")
    (root.parent / "outside.yaml").write_text("new")
    changed = [f"{root.parent.as_posix()}/missing.yaml", f"{root.parent.as_posix()}/outside.yaml"]
    assert recalled() == StaleRun(changed, [])


@pytest.mark.parametrize("value", ["elsewhere", None])
def test_another_value_of_a_variable_makes_a_new_run(
    monkeypatch: pytest.MonkeyPatch, recalled: Callable[[], object], value: str | None
) -> None:
    monkeypatch.setenv("TOY_HOME", value) if value else monkeypatch.delenv("TOY_HOME")
    assert recalled() is None


PINS = [f"{digit}" * 40 for digit in range(1, 3)]


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", root, *arguments], check=True, capture_output=True)


def pin(root: Path, commit: str) -> None:
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{commit},inner")


@pytest.fixture
def pinned(root: Path) -> Callable[[], Outcome | StaleRun | None]:
    """The stored result of a run that read the pin of a submodule."""
    git(root, "init")
    pin(root, PINS[0])
    workspace = Workspace(root)
    assert workspace.submodule_pin("inner") == PINS[0]
    cache = Cache.for_workspace(root)
    remember(cache, "key", workspace.with_overlay({"draft.yaml": ""}), Outcome())
    return lambda: recall(cache, "key", Workspace(root))


def test_a_submodule_that_is_pinned_as_it_was_makes_no_new_run(root: Path, pinned: Callable[[], object]) -> None:
    assert pinned() == Outcome()
    git(root, "update-index", "--force-remove", "inner")
    pin(root, PINS[0])
    assert pinned() == Outcome()


@pytest.mark.parametrize(
    "change",
    [
        lambda root: pin(root, PINS[1]),
        lambda root: git(root, "update-index", "--force-remove", "inner"),
        lambda root: shutil.rmtree(root / ".git"),
    ],
    ids=["moved", "removed", "git is gone"],
)
def test_another_pin_makes_a_new_run(
    root: Path, pinned: Callable[[], object], change: Callable[[Path], object]
) -> None:
    change(root)
    assert pinned() is None


def test_a_pin_that_was_not_there_makes_a_new_run(root: Path) -> None:
    workspace, cache = Workspace(root), Cache.for_workspace(root)
    assert workspace.submodule_pin("inner") is None
    remember(cache, "key", workspace, Outcome())
    assert recall(cache, "key", Workspace(root)) == Outcome()
    git(root, "init")
    pin(root, PINS[0])
    assert recall(cache, "key", Workspace(root)) is None


def test_the_stamp_follows_code_in_any_folder_and_nothing_else(tmp_path: Path) -> None:
    code = tmp_path / "code"
    (code / "inner" / "__pycache__").mkdir(parents=True)
    (code / "a.py").write_text("a = 1\n")
    (code / "inner" / "table.json").write_text("{}\n")
    (code / ".#editing.py").symlink_to("nowhere")
    (code / "locked").mkdir(mode=0)
    plugin = tmp_path / "plugin.py"
    plugin.write_text("b = 1\n")
    stamps = {code_stamp([code, plugin])}
    (code / "inner" / "notes.txt").write_text("x")
    (code / "inner" / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"x")
    assert code_stamp([code, plugin]) in stamps
    for file in (code / "a.py", code / "inner" / "table.json", code / "inner" / "new.py", plugin):
        file.write_text("longer than it was before\n" * (1 + len(stamps)))
        stamps.add(code_stamp([code, plugin]))
    assert len(stamps) == 5
    (code / "a.py").unlink()
    assert code_stamp([code, plugin]) not in stamps
