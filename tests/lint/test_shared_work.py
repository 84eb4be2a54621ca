"""Processes that share the runs of rules find what one process finds, whatever becomes of them."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest

from opschema_cli import suggestions
from opschema_cli.commands.lint_run import HelperProcesses
from opschema_cli.lint import shared_work
from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.shared_work import Ranges, Share, SharedFlag, divided
from opschema_cli.main import run
from opschema_cli.session import open_session
from opschema_cli.source.text import Span

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")

FIXTURES = Path(__file__).parents[2] / "fixtures"
TOYPACK = Path(__file__).parents[1] / "toypack.py"

Lint = Callable[..., dict[str, Any]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Helpers are forked at once; how many have been."""
    monkeypatch.setattr(shared_work, "PATIENCE", -1.0)
    forks: list[int] = []
    fork = HelperProcesses.fork

    def counted(self: HelperProcesses, work: Callable[[], Share]) -> Callable[[], Share]:
        forks.append(1)
        return fork(self, work)

    monkeypatch.setattr(HelperProcesses, "fork", counted)
    return forks


@pytest.fixture
def lint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], asked: list[int]) -> Lint:
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    root = tmp_path / "tree"
    root.mkdir()
    monkeypatch.chdir(root)

    def told(*options: str) -> dict[str, Any]:
        run(["lint", "--output-format", "json", "--show-unresolved", *options])
        found: dict[str, Any] = json.loads(capfd.readouterr().out)
        return found

    return told


def copy_drifted() -> None:
    """A tree with findings of many rules, some of which are found by executing code in parts."""
    shutil.copytree(FIXTURES / "tilekit", ".", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(FIXTURES / "tilekit_drifted", ".", dirs_exist_ok=True)
    for file in Path("tilekit/ops").glob("*.py"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("return {", "return {**{}, ", 1), encoding="utf-8")
    softmax = Path("tilekit/ops/softmax.py")
    softmax.write_text(softmax.read_text(encoding="utf-8").replace("_shape)", "_shape[1:])"), encoding="utf-8")


def alone(lint: Lint) -> dict[str, Any]:
    return lint("--no-cache", "--jobs", "1")


@pytest.mark.parametrize("jobs", ["2", "4"])
def test_they_find_the_same(lint: Lint, asked: list[int], jobs: str) -> None:
    copy_drifted()
    expected = alone(lint)
    assert not asked
    assert {item["code"][:3] for item in expected["diagnostics"]} >= {"CAR", "WKL"}
    assert lint("--no-cache", "--jobs", jobs) == expected
    assert asked
    assert lint("--jobs", jobs) == expected
    forks = len(asked)
    assert lint("--jobs", jobs) == expected, "which is replayed"
    assert len(asked) == forks


@pytest.mark.parametrize("cached", [(), ("--no-cache",)])
def test_pure_rules_over_subjects_that_keep_their_findings_themselves(
    lint: Lint, asked: list[int], cached: tuple[str, ...]
) -> None:
    """Those of FlyDSL's files. What a helper found of them is kept, too."""
    for kit in ("flykit", "flykit_broken"):
        shutil.copytree(FIXTURES / kit, ".", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    Path("unrelated.py").write_text("")
    expected = alone(lint)
    assert {item["code"] for item in expected["diagnostics"]} >= {"FLY201", "FLY215", "FLY217"}
    assert lint("--jobs", "2", *cached) == expected
    forks = len(asked)
    assert forks
    Path("unrelated.py").write_text("MORE = 1\n")
    lint("--jobs", "2", *cached)
    assert (len(asked) > forks) is bool(cached)


@pytest.mark.parametrize("waits", [True, False])
def test_a_forked_process_has_a_helper_while_the_first_one_only_waits_for_it(
    lint: Lint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, waits: bool
) -> None:
    copy_drifted()
    for kit in ("flykit", "flykit_broken"):
        shutil.copytree(FIXTURES / kit, ".", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    expected = alone(lint)
    assert {item["code"][:3] for item in expected["diagnostics"]} >= {"CAR", "FLY", "WKL"}
    forks, fork = tmp_path / "forks", HelperProcesses.fork
    forks.touch()

    def noted(self: HelperProcesses, work: Callable[[], Share]) -> Callable[[], Share]:
        with forks.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return fork(self, work)

    monkeypatch.setattr(HelperProcesses, "fork", noted)
    monkeypatch.setattr(SharedFlag, "__bool__", lambda self: waits)
    assert lint("--no-cache", "--jobs", "2") == expected
    # Whether the first process has helpers depends on how much it did while files were parsed.
    assert len(set(forks.read_text().split()) - {str(os.getpid())}) == waits


def test_a_flag_is_seen_by_processes_that_were_forked() -> None:
    flag = SharedFlag()

    def seen() -> bool:
        child = os.fork()
        if not child:
            os._exit(int(bool(flag)))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1

    assert not seen()
    child = os.fork()
    if not child:
        with flag.raised():
            time.sleep(0.2)
        os._exit(0)
    until = time.monotonic() + 20
    while not flag and time.monotonic() < until:
        time.sleep(0.001)
    assert flag
    assert seen()
    os.waitpid(child, 0)
    assert not flag


def test_helpers_are_waited_for_until_there_is_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_work, "PATIENCE", -1.0)
    monkeypatch.setattr(shared_work, "READ_EVERY", 0.0)
    made: list[int] = []

    class _Later(_Here):
        @property
        def count(self) -> int:  # type: ignore[override]
            return int(len(made) > 3)

    found, shares = divided(9, lambda number: made.append(number) or [], _Later(), lambda ranges: Share({8: []}))
    assert made[:4] == [0, 1, 2, 3]
    assert (len(found), len(shares)) == (9, 1)


def test_what_helpers_computed_is_kept_for_the_next_run(
    lint: Lint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opschema_rules.tileops.calls import outcomes

    copy_drifted()
    unrelated, executed = Path("unrelated.py"), list[str]()
    outcome = outcomes._Caller.outcome

    def noted(self: outcomes._Caller) -> outcomes.OpOutcome:
        executed.append(self.op.name)
        return outcome(self)

    monkeypatch.setattr(outcomes._Caller, "outcome", noted)

    def executed_again(jobs: str) -> tuple[list[str], list[str]]:
        """The ops that are executed by this process in a first run, and those in one after an unrelated change."""
        monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / f"cache{jobs}"))
        unrelated.write_text("import torch\n")
        executed.clear()
        lint("--jobs", jobs)
        first = [*executed]
        executed.clear()
        unrelated.write_text("import torch\n\nMORE = 1\n")
        lint("--jobs", "1")
        return first, sorted(executed)

    every, differing = executed_again("1")
    mine, then = executed_again("4")
    assert set(differing) < set(every)
    assert then == differing, "only those that differ from the manifest, which no run keeps"
    assert len(mine) < len(every), "others executed the rest"


def test_a_helper_that_dies(lint: Lint, asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    copy_drifted()
    expected = alone(lint)
    here, taken = os.getpid(), Ranges.taken

    def dies(self: Ranges, run: Callable[[int], list[Diagnostic]]) -> dict[int, list[Diagnostic]]:
        if os.getpid() != here:
            os._exit(1)
        return taken(self, run)

    monkeypatch.setattr(Ranges, "taken", dies)
    assert lint("--no-cache", "--jobs", "2") == expected
    assert asked


def test_no_process_can_be_started(lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_drifted()
    expected = alone(lint)

    def refuse(self: HelperProcesses, work: object) -> NoReturn:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(HelperProcesses, "fork", refuse)
    assert lint("--no-cache", "--jobs", "2") == expected


def toys(text: str) -> None:
    """A tree of many ops that are like ``text``."""
    Path("plugins").mkdir()
    shutil.copy(TOYPACK, "plugins/toypack.py")
    Path("opschema.toml").write_text('plugins = ["plugins/toypack.py"]\n')
    Path("a.toy.yaml").write_text("".join(f"op{i}: {{{text}}}\n" for i in range(99)))


def test_suggestions_do_not_depend_on_who_ran_out_of_them(
    lint: Lint, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    toys("dtype: f32, doc: x, near: float")
    monkeypatch.setattr(suggestions, "WORK", 50 * (2 + 2 * suggestions.COMPARED))
    taken = Ranges.taken
    monkeypatch.setattr(
        Ranges, "taken", lambda self, run: taken(self, lambda number: (time.sleep(0.001), run(number))[1])
    )
    expected = alone(lint)
    assert len([item for item in expected["diagnostics"] if "[]" in item["message"]]) in range(45, 52)
    assert lint("--no-cache", "--jobs", "4") == expected
    assert asked


def test_a_rule_that_fails_in_a_helper_is_told_once(
    lint: Lint, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    toys("dtype: f8, doc: x, crash: yes")
    expected = alone(lint)
    assert [item["code"] for item in expected["diagnostics"]].count("OPS900") == 1
    here, taken = os.getpid(), Ranges.taken
    monkeypatch.setattr(Ranges, "taken", lambda self, run: {} if os.getpid() == here else taken(self, run))
    assert lint("--no-cache", "--jobs", "2") == expected
    assert asked


def test_what_is_being_parsed_is_there_before_a_helper_is_forked(tmp_path: Path) -> None:
    (tmp_path / "opschema.toml").write_text("")
    paths = [f"m{at}.py" for at in range(6)]
    for path in paths:
        (tmp_path / path).write_text("x = 1\n" * 20_000)
    with closing(open_session(tmp_path, cache=False, jobs=2)) as session:
        project = session.project()
        project.load_python(paths)

        def work() -> Share:
            return Share({0: [diagnostic(at) for at, path in enumerate(paths) if project.python(path) is not None]})

        assert len(HelperProcesses(session, project, 1).fork(work)().found[0]) == len(paths)
        assert not project.problems


def test_too_many_open_files(lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_drifted()
    expected = alone(lint)

    def refuse(self: Ranges, numbers: object, processes: int) -> NoReturn:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(Ranges, "__init__", refuse)
    assert lint("--no-cache", "--jobs", "2") == expected


def diagnostic(number: int) -> Diagnostic:
    return Diagnostic(f"{number}", Place("a", Span(number, number)))


class _Here:
    """Helpers that do their part in this process, before it does its own."""

    count = 2

    def fork(self, work: Callable[[], Share]) -> Callable[[], Share]:
        share = work()
        return lambda: share


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50, 20_000])
def test_each_run_is_made_once_and_in_its_place(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(shared_work, "PATIENCE", -1.0)
    made: list[int] = []

    def run_of(number: int) -> list[Diagnostic]:
        made.append(number)
        return [diagnostic(number)] * (number % 3)

    found, _ = divided(count, run_of, _Here(), lambda ranges: Share(ranges.taken(run_of)))
    assert sorted(made) == list(range(count))
    assert found == [[diagnostic(number)] * (number % 3) for number in range(count)]


class _Clock:
    """Processor time that each run takes so much of."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._now = 0.0

    def process_time(self) -> float:
        return self._now

    perf_counter = process_time

    def run(self, number: int) -> list[Diagnostic]:
        self._now += self._seconds
        return []


@pytest.mark.parametrize(
    ("seconds", "count", "alone"),
    [
        (0.021, 100, 1),  # 2.1 seconds in all
        (0.021, 40, 5),  # 0.84
        (0.0011, 800, 91),  # 0.88
        (0.0011, 1_000, 19),  # 1.1
        (0.00009, 1_000, None),  # 0.09
        (0.2, 2, None),
    ],
)
def test_helpers_start_once_it_is_plain_that_all_takes_long(
    monkeypatch: pytest.MonkeyPatch, seconds: float, count: int, alone: int | None
) -> None:
    clock = _Clock(seconds)
    monkeypatch.setattr(shared_work, "time", clock)
    left: list[int] = []

    class _Noting(_Here):
        def fork(self, work: Callable[[], Share]) -> Callable[[], Share]:
            left.append(round(clock.process_time() / seconds))
            return lambda: Share()

    divided(count, clock.run, _Noting(), lambda ranges: Share())
    assert left[:1] == ([] if alone is None else [alone])
