"""Workers are forked from a process that has torch; without it they start by themselves."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

pytest.importorskip("torch")

from opschema_cli.verify import forkserver, workers
from opschema_cli.verify.workers import Workers
from tests.verify.oplib import cell, plan, write_library

pytestmark = pytest.mark.skipif(not forkserver.available(), reason="workers are forked on Linux only")


def test_workers_start_without_a_forkserver_that_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opschema_cli.verify.workers.Forkserver", forkserver.Forkserver)
    here = plan(write_library(tmp_path / "lib", tmp_path / "log"))
    with Workers(tmp_path / "scratch") as found:
        assert found.run("after", here, cell("forked"), "cpu", 60).status == "ok"
        assert found._forkserver is not None
        found._forkserver._process.kill()
        found._forkserver._process.wait()
        assert found.run("after", here, cell("goes on", "think"), "cpu", 60).status == "ok"
        assert found.run("before", here, cell("by itself"), "cpu", 60).status == "ok"
        assert not found._forks
        ran = found.run("before", here, cell("killed", "kill"), "cpu", 60)
        assert (ran.status, "SIGKILL" in ran.detail) == ("died", True)


def test_a_fork_reports_its_number_and_its_end(tmp_path: Path) -> None:
    server = workers.Forkserver({**os.environ}, tmp_path)  # the one that all tests share
    worker = server.spawn({**os.environ})
    assert worker.pid > 0
    assert worker.poll() is None
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == -signal.SIGTERM
    assert worker.poll() == -signal.SIGTERM
    patient = server.spawn({**os.environ})
    assert patient.stdin is not None
    patient.stdin.close()
    assert patient.wait(30) == 0
