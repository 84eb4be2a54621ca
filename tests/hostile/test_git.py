"""Pipes in the place of files that git reads: git waits for them without end, and opschema does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opschema_cli import git_answer
from opschema_cli.errors import OpschemaError
from opschema_cli.git import uncommitted
from opschema_cli.workspace import Workspace
from tests.command import Opschema

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows that git sleeps")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "kit").mkdir(parents=True)
    (root / "ops.yaml").write_text("a: 1\n")
    (root / "kit" / "kept.yaml").write_text("a: 1\n")
    (root / "kit" / "dropped.yaml").write_text("a: 1\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def pipe_as_gitignore(root: Path) -> str:
    os.mkfifo(root / ".gitignore")
    return ".gitignore"


def pipe_as_include(root: Path) -> str:
    os.mkfifo(root / "extra")
    with (root / ".git" / "config").open("a") as stream:
        stream.write(f"[include]\n\tpath = {root / 'extra'}\n")
    return ".git/config"


@pytest.mark.parametrize("make", [pipe_as_gitignore, pipe_as_include])
def test_files_are_listed_without_git(tree: Path, monkeypatch: pytest.MonkeyPatch, make: object) -> None:
    monkeypatch.setattr(git_answer, "ASLEEP", 0.5)
    assert callable(make)
    named = make(tree)
    (tree / "kit" / ".gitignore").write_text("dropped.yaml\n")
    workspace = Workspace(tree)
    started = time.monotonic()
    assert workspace.files == ("kit/.gitignore", "kit/kept.yaml", "ops.yaml")
    assert time.monotonic() - started < 30
    assert workspace.unlisted == named
    with pytest.raises(OpschemaError, match="does not answer"):
        uncommitted(tree, ())


def test_the_report_says_so(tree: Path, tmp_path: Path) -> None:
    pipe_as_gitignore(tree)
    found = json.loads(Opschema(tree, tmp_path / "cache")("lint", "--output-format", "json").out)["diagnostics"]
    assert [(item["code"], item["path"]) for item in found] == [("OPS107", ".gitignore")]


def test_a_process_that_works_is_waited_for() -> None:
    code = "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass\nprint('done')"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert git_answer.answer_of(process) == (b"done\n", None)
