"""`opschema stats` in a repository with three commits, which are linted without being checked out."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.command import Opschema


def git(root: Path, *arguments: str, day: int = 1) -> None:
    name = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b.c",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b.c",
    }
    environment = {**os.environ, **name, "GIT_COMMITTER_DATE": f"2026-01-0{day}T00:00:00Z"}
    subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, env=environment)


@pytest.fixture
def repository(root: Path) -> Path:
    """The toy workspace, which has two findings; before, it had three, and first one. A commit outside of it changes nothing."""
    git(root, "init", "-q", "-b", "main")
    loud = "add: {doc: LOUD, dtype: f8}\n"
    for day, text in enumerate(("add: {doc: LOUD}\n", f"{loud}sub: {{doc: LOUD}}\n", loud), 1):
        (root / "a.toy.yaml").write_text(text)
        git(root, "add", "-A")
        git(root, "commit", "-qm", "change", day=day)
    git(root, "commit", "-qm", "nothing", "--allow-empty", day=4)
    return root


def test_the_history_of_findings(opschema: Opschema, repository: Path) -> None:
    (repository / "sub/b.toy.yaml").write_text("mul: {doc: NEW}\n")
    done = opschema("stats", "--history", "5", "--output-format", "json")
    assert (done.code, done.err) == (0, "opschema: files here changed in only 3 commits\n")
    data = json.loads(done.out)
    assert data["tree"]["rules"] == {"TOY102": 2, "TOY103": 1}
    assert [(item["date"], item["rules"]) for item in data["history"]] == [
        ("2026-01-01", {"TOY102": 1}),
        ("2026-01-02", {"TOY102": 2, "TOY103": 1}),
        ("2026-01-03", {"TOY102": 1, "TOY103": 1}),
    ]
    assert opschema("stats", "--history", "5", "--output-format", "json").out == done.out, "from the cache"
    some = json.loads(opschema("stats", "sub", "--history", "2", "--since", "HEAD~3", "--output-format", "json").out)
    assert some["tree"]["files"] == {"sub/b.toy.yaml": 1}
    assert [(item["date"], item["files"]) for item in some["history"]] == [("2026-01-02", {}), ("2026-01-03", {})]


def test_what_cannot_be_counted_is_refused(opschema: Opschema, root: Path) -> None:
    assert opschema("stats").out.startswith("2 findings: 1 error, 1 warning, 0 infos\n")
    assert "gone: no such file or folder" in opschema("stats", "sub", "gone").err
    assert "--since goes with --history N" in opschema("stats", "--since", "HEAD").err
    done = opschema("stats", "--history", "2")
    assert (done.code, done.err) == (2, f"opschema: {root} is in no git repository, so it has no history\n")


def test_nothing_to_lint_is_told(opschema: Opschema, root: Path) -> None:
    assert opschema("stats").err == ""
    for path in (root / "a.toy.yaml", root / "sub/b.toy.yaml"):
        path.unlink()
    done = opschema("stats")
    assert (done.code, done.out.splitlines()[0]) == (0, "0 findings: 0 errors, 0 warnings, 0 infos")
    assert done.err == f"opschema: nothing to lint in {root}; `opschema init` lists what it looks for\n"
