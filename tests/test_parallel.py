"""`make test` shares the suite among processes file by file: what a module's fixture makes or measures is made once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

MAKEFILE = Path(__file__).parents[1] / "Makefile"
TESTS = """
import os
import pytest

@pytest.mark.parametrize("number", range(4))
def test_one(number):
    with open({log!r}, "a") as log:
        log.write(f"{{__name__}} {{os.getpid()}}\\n")

def test_other():
    test_one(4)
"""


def test_the_tests_of_a_file_run_in_one_process(tmp_path: Path) -> None:
    (found,) = re.findall(r"-m pytest -n \S+ --dist (\w+)", MAKEFILE.read_text(encoding="utf-8"))
    log = tmp_path / "log"
    for name in ("a", "b"):
        (tmp_path / f"test_{name}.py").write_text(TESTS.format(log=str(log)))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", found, "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = log.read_text().splitlines()
    assert len(lines) == 10
    assert sorted(line.split()[0] for line in set(lines)) == ["test_a", "test_b"]
    assert len({line.split()[1] for line in lines}) == 2


def test_no_test_asks_for_a_group_that_would_be_ignored() -> None:
    mark = "xdist_" + "group"
    assert [path.name for path in Path(__file__).parent.rglob("*.py") if mark in path.read_text(encoding="utf-8")] == []
