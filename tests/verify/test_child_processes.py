"""Whether the processes that a worker has started compute."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from opschema_cli.verify.child_processes import ChildProcesses, computed, open_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

BUSY = "import time\nwhile True: pass"
IDLE = "import time; time.sleep(100)"
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


@pytest.mark.parametrize(("text", "busy"), [(BUSY, True), (IDLE, False)])
def test_grandchildren_count_and_those_that_wait_do_not(text: str, busy: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, text], start_new_session=True) as child:
        try:
            children = ChildProcesses(child.pid, time.monotonic())
            until = time.monotonic() + 60
            found = not busy
            while found is not busy and time.monotonic() < until:  # also one that waits computes at its start
                time.sleep(1)
                found = children.have_computed(time.monotonic())
            assert found is busy
        finally:
            os.killpg(child.pid, 9)


def test_the_process_itself_does_not_count() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY]) as child:
        time.sleep(1)
        assert computed(child.pid) == 0
        child.kill()


def test_what_has_ended_counts() -> None:
    before = computed(os.getpid())
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 1: pass"], check=True)
    # Each time that the system counts is rounded down.
    assert computed(os.getpid()) >= before + 0.9


def test_a_process_that_is_not_there_has_none() -> None:
    assert computed(1 << 30) == 0


def test_processes_that_end_while_they_are_counted() -> None:
    """Each look at ``/proc`` may meet one that is gone by the time its file is opened."""
    loop = "while :; do /bin/true & /bin/true & wait; done"
    with subprocess.Popen(["sh", "-c", loop], start_new_session=True) as child:
        try:
            until = time.monotonic() + 0.5
            while time.monotonic() < until:
                computed(child.pid)
                open_files()
        finally:
            os.killpg(child.pid, 9)


def test_a_process_of_which_nothing_is_left_but_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [*os.listdir("/proc"), str(1 << 30)]
    monkeypatch.setattr(os, "listdir", lambda folder: names)
    assert computed(os.getpid()) >= 0
    assert open_files()
