"""A forked process that runs the command behaves like a new one."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests import forkserver
from tests.command import EXECUTABLE, environment


@pytest.mark.parametrize(
    ("args", "stdin", "code"),
    [
        (["--version"], b"", 0),
        (["lint", "--output-format", "concise"], b"", 1),
        (["lint", "--stdin-filename", "a.toy.yaml", "--output-format", "json"], b"add: {dtype: f8}\n", 1),
        (["lint", "--nonsense"], b"", 2),
        (["migrate"], b"", 0),
        (["rule", "TOY101"], b"", 2),
    ],
)
def test_a_fork_does_as_a_process_from_the_start(
    root: Path, tmp_path: Path, args: list[str], stdin: bytes, code: int
) -> None:
    env = environment(tmp_path / "cache")
    command = [str(EXECUTABLE), *args]
    forked = forkserver.run(command, cwd=root, env=env, stdin=stdin, timeout=60)
    started = subprocess.run(command, cwd=root, env=env, input=stdin, capture_output=True, timeout=60, check=False)
    assert forked.returncode == started.returncode == code, forked
    assert (timeless(forked.stdout), forked.stderr) == (timeless(started.stdout), started.stderr)


def timeless(out: bytes) -> bytes:
    return re.sub(rb" in [\d.]+ s\)", b")", out)


def test_what_takes_too_long_is_ended(root: Path, tmp_path: Path) -> None:
    (root / "toypack.py").write_text(
        "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\ntime.sleep(600)\n"
    )
    env = environment(tmp_path / "cache")
    with pytest.raises(subprocess.TimeoutExpired):
        forkserver.run([str(EXECUTABLE), "lint"], cwd=root, env=env, stdin=b"", timeout=5)
    with pytest.raises(ProcessLookupError):
        os.kill(int((root / "pid").read_text()), 0)
