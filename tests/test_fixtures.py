"""The fixture repositories' own tests, where no other test runs them."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.command import TILEKIT


def test_the_kernels_of_tilekit_are_built_as_they_should() -> None:
    pytest.importorskip("torch")
    if not any(map(shutil.which, ("g++", "c++", "clang++"))):
        pytest.skip("no C++ compiler for the kernels of tilekit")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_build.py"]
    run = subprocess.run(command, cwd=TILEKIT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
