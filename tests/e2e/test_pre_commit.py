"""A real pre-commit on a repository made here: as a local hook, and installed from this project."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import EXECUTABLE, TOYPACK

PROJECT = Path(__file__).parents[2]

CONFIG = f"""\
repos:
  - repo: local
    hooks:
      - id: opschema
        name: opschema lint
        entry: {EXECUTABLE} lint
        language: system
        files: \\.(py|yaml|yml)$
        pass_filenames: false
        require_serial: true
      - id: opschema-fix
        name: opschema lint --fix
        entry: {EXECUTABLE} lint --fix
        language: system
        pass_filenames: false
        stages: [manual]
"""


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    shutil.copy(TOYPACK, folder / "toypack.py")
    (folder / "opschema.toml").write_text('plugins = ["toypack.py"]\npacks = ["toy"]\n')
    (folder / "a.toy.yaml").write_text("add: {doc: x, dtype: f8}\n")
    (folder / ".pre-commit-config.yaml").write_text(CONFIG)
    git(folder, "init")
    git(folder, "add", ".")
    return folder


def pre_commit(repository: Path, *args: str | Path, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("pre_commit", reason="pre-commit is not installed")
    home = repository.parent
    environment = {**os.environ, "PRE_COMMIT_HOME": str(home / "pre-commit"), "OPSCHEMA_CACHE_DIR": str(home / "cache")}
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", *args],
        cwd=repository, env=environment, capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip


def test_the_hook_fails_on_findings_and_passes_without(repository: Path) -> None:
    run = pre_commit(repository, "run", "--all-files")
    assert run.returncode == 1
    assert "a.toy.yaml:1:22" in run.stdout
    assert "TOY103" in run.stdout
    (repository / "a.toy.yaml").write_text("add: {doc: x, dtype: f16}\n")
    git(repository, "add", ".")
    run = pre_commit(repository, "run")
    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    assert "Passed" in run.stdout


def test_the_fixing_hook_changes_the_file_so_that_the_commit_stops(repository: Path) -> None:
    (repository / "a.toy.yaml").write_text("add: {doc: LOUD, dtype: f16}\n")
    git(repository, "add", ".")
    run = pre_commit(repository, "run", "--all-files", "--hook-stage", "manual", "opschema-fix")
    assert run.returncode == 1
    assert "files were modified by this hook" in run.stdout
    assert (repository / "a.toy.yaml").read_text() == "add: {doc: loud, dtype: f16}\n"


def test_a_commit_is_stopped(repository: Path) -> None:
    pre_commit(repository, "install")
    run = subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-m", "first"],
        cwd=repository, capture_output=True, text=True,
        env={**os.environ, "PRE_COMMIT_HOME": str(repository.parent / "pre-commit")},
    )  # fmt: skip
    assert run.returncode == 1
    assert "TOY103" in run.stdout + run.stderr


def _can_install(folder: Path) -> bool:
    """Whether pip finds what the hook needs: it installs this project with its dependencies, and their build tools."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check", "-d", folder]
    return subprocess.run([*pip, "hatchling", "msgspec"], capture_output=True, timeout=60).returncode == 0


@pytest.mark.skipif(not (PROJECT / ".git").exists(), reason="pre-commit installs from a git repository")
def test_the_hooks_of_this_project_install_and_run(repository: Path, tmp_path: Path) -> None:
    if not _can_install(tmp_path / "probe"):
        pytest.skip("pip reaches no package registry here, so pre-commit cannot install the hook")
    clone = tmp_path / "opschema"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", PROJECT, clone], check=True)
    run = pre_commit(repository, "try-repo", clone, "opschema", "--all-files", "--verbose", timeout=300)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "TOY103" in run.stdout
