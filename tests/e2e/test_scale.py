"""Four times the ops take about four times the time, and little more memory for each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.generate import generate
from tests.command import EXECUTABLE, environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are measured with wait4")

FEW, MANY = 500, 2000


# A process counts what its parent held when it started as its own peak; so a small one starts it, not this one.
_MEASURE = """
import json, os, subprocess, sys
_, status, usage = os.wait4(subprocess.Popen(sys.argv[1:]).pid, 0)
print(json.dumps([status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss]))
"""


@dataclass(frozen=True)
class Measured:
    """Processor seconds of a run and its workers, and the peak memory of its largest process in MiB."""

    seconds: float
    peak: float
    report: dict[str, dict[str, int]]


def lint(folder: Path, cache: Path) -> Measured:
    report = cache / "report.json"
    cache.mkdir(exist_ok=True)
    command = [EXECUTABLE, "lint", folder, "--output-format", "json", "--output-file", report]
    run = subprocess.run(
        [sys.executable, "-c", _MEASURE, *command], env=environment(cache), stdout=subprocess.PIPE, check=True
    )
    status, seconds, peak = json.loads(run.stdout)
    assert os.waitstatus_to_exitcode(status) == 0
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return Measured(seconds, peak / unit, json.loads(report.read_text()))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Measured, Measured]]:
    """A cold and a warm run for each size."""
    folder = tmp_path_factory.mktemp("scale")
    found = {}
    for ops in (FEW, MANY):
        generate(folder / str(ops), ops)
        found[ops] = (lint(folder / str(ops), folder / f"cache{ops}"), lint(folder / str(ops), folder / f"cache{ops}"))
    return found


def test_every_op_is_seen_and_nothing_is_found(runs: dict[int, tuple[Measured, Measured]]) -> None:
    for ops, both in runs.items():
        for measured in both:
            assert measured.report["summary"]["ops"] == ops
            assert measured.report["diagnostics"] == []


def test_time_grows_with_the_ops_and_not_with_their_square(runs: dict[int, tuple[Measured, Measured]]) -> None:
    ratio = runs[MANY][0].seconds / runs[FEW][0].seconds
    assert ratio < 2 * MANY / FEW, f"{MANY} ops took {ratio:.1f} times the time of {FEW}"


def test_memory_grows_no_faster(runs: dict[int, tuple[Measured, Measured]]) -> None:
    assert runs[MANY][0].peak < runs[FEW][0].peak * MANY / FEW
    assert runs[MANY][0].peak < 400


def test_a_warm_run_takes_a_fraction(runs: dict[int, tuple[Measured, Measured]]) -> None:
    cold, warm = runs[MANY]
    assert warm.seconds < cold.seconds / 4
