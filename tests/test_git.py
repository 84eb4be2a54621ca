"""Uncommitted changes, listed by git without running commands that the repository configures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.git import uncommitted


def git(root: Path, *arguments: str) -> None:
    identity = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(
        ["git", "-C", str(root), *arguments], check=True, capture_output=True, env={**os.environ, **identity}
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / "sub").mkdir(parents=True)
    for name in ("a.yaml", "b.yaml", "sub/c.yaml"):
        (root / name).write_text("x: 1\n")
    git(tmp_path, "init", "-q", str(root))
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


def test_a_clean_tree_has_nothing(repository: Path) -> None:
    assert uncommitted(repository, ["a.yaml"]) == []


def test_changed_staged_and_removed_files_count_wherever_they_are(repository: Path) -> None:
    (repository / "a.yaml").write_text("x: 2\n")
    (repository / "sub/c.yaml").unlink()
    (repository / "d é.yaml").write_text("")
    git(repository, "add", "d é.yaml")
    assert uncommitted(repository, []) == ["a.yaml", "d é.yaml", "sub/c.yaml"]


def test_files_that_git_does_not_know_count_if_they_are_touched(repository: Path) -> None:
    (repository / "new.yaml").write_text("")
    (repository / "other.yaml").write_text("")
    assert uncommitted(repository, ["new.yaml"]) == ["new.yaml"]


def test_a_workspace_below_the_top_names_its_own_files(repository: Path) -> None:
    (repository / "a.yaml").write_text("x: 2\n")
    (repository / "sub/c.yaml").write_text("x: 2\n")
    assert uncommitted(repository / "sub", []) == ["c.yaml"]


def test_outside_of_git_there_is_no_answer(tmp_path: Path) -> None:
    assert uncommitted(tmp_path, []) is None


def test_a_git_that_cannot_tell_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    with pytest.raises(OpschemaError, match="git cannot list the uncommitted changes here: fatal: "):
        uncommitted(tmp_path, [])


@pytest.mark.skipif(sys.platform == "win32", reason="the trap is a shell command")
def test_nothing_that_the_repository_names_is_run(repository: Path, tmp_path: Path) -> None:
    trap = f"touch {tmp_path}/trapped; cat"
    submodule = tmp_path / "inner"
    git(tmp_path, "init", "-q", str(submodule))
    git(submodule, "commit", "-q", "--allow-empty", "-m", "first")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(submodule), "inner")
    (repository / ".gitattributes").write_text("* filter=x\nb.yaml filter=Y.z\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "second")
    for folder in (repository, repository / "inner"):
        for key in (
            "filter.x.clean",
            "filter.x.smudge",
            "filter.x.process",
            "filter.Y.z.clean",
            "core.fsmonitor",
            "alias.status",
        ):
            git(folder, "config", key, f"!{trap}" if key.startswith("alias") else trap)
        git(folder, "config", "filter.Y.z.required", "true")
    hook = repository / ".git/hooks/post-index-change"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/trapped\n")
    hook.chmod(0o755)
    for name in ("a.yaml", "b.yaml"):  # of the same size, at another time: git must read them to know
        (repository / name).write_text("x: 2\n")
        os.utime(repository / name, (1, 1))
    (tmp_path / "trapped").unlink(missing_ok=True)
    assert uncommitted(repository, []) == ["a.yaml", "b.yaml"]
    assert not (tmp_path / "trapped").exists()
    git(repository, "-c", "core.fsmonitor=false", "-c", "filter.x.process=", "status")
    assert (tmp_path / "trapped").exists(), "the trap works"


def test_a_filter_whose_name_cannot_be_taken_away_is_refused(repository: Path) -> None:
    git(repository, "config", "filter.a=b.clean", "true")
    with pytest.raises(OpschemaError, match=r"without running the filter 'filter\.a=b\.clean'"):
        uncommitted(repository, [])
