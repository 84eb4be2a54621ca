"""Temporary folders of runs, and those that killed runs have left."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from opschema_cli.verify.scratch import PREFIX, scratch_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="folders are locked on POSIX alone")

OTHER = """
from opschema_cli.verify.scratch import scratch_folder

with scratch_folder() as folder:
    (folder / "tensors").write_text("large")
    print(folder, flush=True)
    input()
"""


def test_a_killed_run_leaves_nothing_once_another_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / f"{PREFIX}foreign").mkdir()
    other = subprocess.Popen([sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    folder = Path(other.stdout.readline().strip())
    with scratch_folder() as mine:
        assert mine.is_dir()
        assert folder.is_dir(), "its process lives"
    assert not mine.exists()
    other.send_signal(signal.SIGKILL)
    other.communicate()
    assert folder.is_dir()
    with scratch_folder():
        assert not folder.exists()
    assert [path.name for path in tmp_path.iterdir()] == [f"{PREFIX}foreign"], "without a lock it is not ours"
