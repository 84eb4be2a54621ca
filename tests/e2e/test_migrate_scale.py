"""Four times the carriers take about four times the time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.generate_carriers import generate_carriers
from tests.command import EXECUTABLE, environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are measured with wait4")

FEW, MANY = 25, 100


def migrate(folder: Path, cache: Path) -> float:
    """Processor seconds of a cold run and its workers."""
    cache.mkdir()
    command: list[str | Path] = [
        EXECUTABLE,
        "migrate",
        "drop-carrier",
        "--apply",
        "--allow-dirty",
        "--output-format",
        "json",
    ]
    process = subprocess.Popen(command, cwd=folder, env=environment(cache), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def test_time_grows_with_the_carriers(tmp_path: Path) -> None:
    seconds = {}
    for ops in (FEW, MANY):
        generate_carriers(tmp_path / str(ops), ops)
        seconds[ops] = migrate(tmp_path / str(ops), tmp_path / f"cache{ops}")
        texts = [path.read_text() for path in (tmp_path / str(ops)).rglob("*.py")]
        assert not any("_stand_in" in text or "_register_carried" in text for text in texts)
    assert seconds[MANY] < 1.6 * MANY / FEW * seconds[FEW], seconds
