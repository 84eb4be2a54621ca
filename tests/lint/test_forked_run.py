"""Packs in a forked process find what they find here, and what that process asked of the workspace is known."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from opschema_cli.cache import Cache
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.diagnostic import Diagnostic, NotUnderstood, Place, Severity
from opschema_cli.lint.runner import PackFindings
from opschema_cli.lint.shared_work import LostForkError
from opschema_cli.project import Project
from opschema_cli.source.text import Span
from opschema_cli.workspace import Workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")

FOUND = Diagnostic("message", Place("a.py", Span(1, 2)), code="TOY001", severity=Severity.WARNING, ops=("op",))
UNRESOLVED = NotUnderstood(Place("a.py", Span(0, 1)), "it cannot be followed")


def forked(task: Callable[[], tuple[PackFindings, Project]], project: Project) -> PackFindings:
    from opschema_cli.lint.forked_run import ForkedRun

    process = ForkedRun(lambda report_parsed, publish: task(), PackFindings)
    try:
        return process.join(project)
    finally:
        process.close()


def project_of(folder: Path) -> Project:
    return Project(Workspace(folder), Cache(None))


def test_what_was_found_and_asked_there_is_known_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSCHEMA_TEST_FORK", "set")
    (tmp_path / "a.py").write_text("x = (\n")
    (tmp_path / "peeked").write_text("x")
    outside = tmp_path.parent / "outside.txt"

    def task() -> tuple[PackFindings, Project]:
        there = project_of(tmp_path)
        there.python("a.py")
        there.workspace.peek("peeked")
        there.workspace.is_file("missing")
        there.workspace.variable("OPSCHEMA_TEST_FORK")
        there.workspace.submodule_pin("third_party/x")
        there.workspace.admit(outside)
        return PackFindings(["toy"], 3, 1, [UNRESOLVED], [], [FOUND]), there

    here = project_of(tmp_path)
    found = forked(task, here)
    assert (found.packs, found.ops, found.unresolved, found.found, found.crashed) == (
        ["toy"],
        3,
        [UNRESOLVED],
        [FOUND],
        False,
    )
    assert here.inputs == {"a.py"}
    assert [code for code, _ in here.problems] == ["OPS102"]
    workspace = here.workspace
    assert set(workspace.reads) == {"a.py", "peeked"}
    assert workspace.probes == {"missing": False}
    assert workspace.environment == {"OPSCHEMA_TEST_FORK": "set"}
    assert workspace.pins == {"third_party/x": None}
    assert workspace.admitted == {outside.as_posix()}


def test_a_refusal_there_is_one_here(tmp_path: Path) -> None:
    def task() -> tuple[PackFindings, Project]:
        raise OpschemaError("tool.opschema.toy: no")

    with pytest.raises(OpschemaError, match=r"tool\.opschema\.toy: no"):
        forked(task, project_of(tmp_path))


@pytest.mark.parametrize("end", [lambda: 1 // 0, lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: sys.exit(0)])
def test_a_process_that_dies_has_found_nothing(
    tmp_path: Path, end: Callable[[], object], capfd: pytest.CaptureFixture[str]
) -> None:
    def task() -> tuple[PackFindings, Project]:
        end()
        raise AssertionError

    here = project_of(tmp_path)
    with pytest.raises(LostForkError):
        forked(task, here)
    assert not here.workspace.reads
    assert capfd.readouterr() == ("", "")


def test_closing_does_not_wait_for_it(tmp_path: Path) -> None:
    from opschema_cli.lint.forked_run import ForkedRun

    started = time.monotonic()
    process = ForkedRun(
        lambda report_parsed, publish: (time.sleep(60), (PackFindings(), project_of(tmp_path)))[1], PackFindings
    )
    process.close()
    process.close()
    assert time.monotonic() - started < 30
    with pytest.raises(ProcessLookupError):
        os.kill(process._pid, 0)


def test_a_file_that_is_no_more_as_it_was_read_there_makes_the_packs_run_here(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("before")

    def task() -> tuple[PackFindings, Project]:
        there = project_of(tmp_path)
        there.workspace.peek("a.txt")
        (tmp_path / "a.txt").write_text("after")
        return PackFindings(["toy"]), there

    with pytest.raises(LostForkError):
        forked(task, project_of(tmp_path))


def test_where_nobody_waits_for_children_it_works_too(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        found = forked(lambda: (PackFindings(["toy"]), project_of(tmp_path)), project_of(tmp_path))
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert found.packs == ["toy"]


def test_wait_parsed_waits_for_the_report(tmp_path: Path) -> None:
    from opschema_cli.lint.forked_run import ForkedRun

    def task(report_parsed: Callable[[], None], publish: object) -> tuple[PackFindings, Project]:
        (tmp_path / "first").touch()
        report_parsed()
        while not (tmp_path / "second").exists():
            time.sleep(0.01)
        report_parsed()
        return PackFindings(["toy"]), project_of(tmp_path)

    process = ForkedRun(task, PackFindings)
    try:
        process.wait_parsed()
        assert (tmp_path / "first").exists()
        (tmp_path / "second").touch()
        process.wait_parsed()
        found = process.join(project_of(tmp_path))
    finally:
        process.close()
    assert found.packs == ["toy"]


def test_what_packs_share_is_there_before_they_have_run(tmp_path: Path) -> None:
    from opschema_cli.lint.forked_run import ForkedRun

    large = b"x" * 1_000_000

    def task(report_parsed: object, publish: Callable[[Mapping[str, bytes]], None]) -> tuple[PackFindings, Project]:
        publish({"toy": large})
        while not (tmp_path / "second").exists():
            time.sleep(0.01)
        return PackFindings(["toy"]), project_of(tmp_path)

    process = ForkedRun(task, PackFindings)
    try:
        assert process.shared() == {"toy": large}
        (tmp_path / "second").touch()
        found = process.join(project_of(tmp_path))
        assert process.shared() == {"toy": large}
    finally:
        process.close()
    assert found.packs == ["toy"]


def test_that_it_died_before_ends_the_wait(tmp_path: Path) -> None:
    from opschema_cli.lint.forked_run import ForkedRun

    process = ForkedRun(lambda report_parsed, publish: os._exit(1), PackFindings)
    try:
        process.wait_parsed()
        with pytest.raises(LostForkError):
            process.join(project_of(tmp_path))
    finally:
        process.close()


def test_what_is_kept_afterwards_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opschema_cli.lint.forked_run import ForkedRun

    monkeypatch.setattr(Project, "save_readings", lambda self: (time.sleep(0.3), (tmp_path / "kept").touch()))
    process = ForkedRun(lambda report_parsed, publish: (PackFindings(["toy"]), project_of(tmp_path)), PackFindings)
    assert process.join(project_of(tmp_path)).packs == ["toy"]
    process.close()
    assert (tmp_path / "kept").exists()
