"""The files for CI: what they run is run here, step by step."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "name" in step}


class Runner:
    """Runs steps of the action with its inputs, as GitHub does. Actions of others do nothing; with a token that may only read,
    the one that uploads to code scanning fails.
    """

    def __init__(self, folder: Path, *, token: str = "may-write", **inputs: str) -> None:
        self.folder = folder
        self.workspace: Path | None = None
        self.uploaded: list[str] = []
        given = {name: str(item["default"]) for name, item in ACTION["inputs"].items()}
        self.known = {
            "runner.temp": str(folder),
            "steps.lint.outputs.exit-code": "",
            "github.token": token,
            "github.repository": "me/kit",
            "github.event.pull_request.number": "7",
            **{f"inputs.{name}": inputs.get(name.replace("-", "_"), value) for name, value in given.items()},
        }
        tool = folder / "opschema-venv/bin/opschema"
        tool.parent.mkdir(parents=True)
        tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m opschema_cli "$@"\n')
        tool.chmod(0o755)
        gh = folder / "bin/gh"
        gh.parent.mkdir()
        gh.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT / "tests/fake_gh.py"} {folder / "comments.json"} "$@"\n')
        gh.chmod(0o755)

    def filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: self.known.get(found[1], ""), text)

    def run(self, name: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run a step. What it reports is known to later ones."""
        step, output = STEPS[name], self.folder / "output"
        output.write_text("")
        given = {key: self.filled(value) for key, value in step["env"].items()}
        files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md")}
        files["GITHUB_WORKSPACE"] = str(self.workspace or folder)
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'rules'}", **self._path(), **files, **given},
            capture_output=True,
            text=True,
            timeout=120,
        )
        for line in output.read_text().splitlines():
            key, _, value = line.partition("=")
            self.known[f"steps.{step.get('id')}.outputs.{key}"] = value
        return done

    def job(self, workspace: Path) -> tuple[int, str]:
        """Run all steps in their order, as a runner does: the exit code of the job, and its log."""
        code, log = 0, ""
        self.workspace = workspace
        for step in ACTION["runs"]["steps"]:
            if step.get("name") == "Install opschema" or not self.applies(step, code):
                continue
            if "run" not in step:
                code = code or self._foreign(step)
                continue
            folder = workspace / self.filled(step.get("working-directory", "."))
            done = self.run(step["name"], folder)
            log += done.stdout + done.stderr
            code = code or done.returncode
        return code, log

    def _foreign(self, step: dict[str, Any]) -> int:
        """The exit code of an action of others."""
        failed = False
        if "upload-sarif" in step["uses"]:
            failed = self.known["github.token"] != "may-write"
            self.uploaded += [] if failed else [self.filled(step["with"]["sarif_file"])]
        self.known[f"steps.{step.get('id')}.outcome"] = "failure" if failed else "success"
        return int(failed and not step.get("continue-on-error", False))

    def _path(self) -> dict[str, str]:
        return {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}

    def applies(self, step: dict[str, Any], code: int) -> bool:
        terms = step.get("if", "success()").split(" && ")
        return (not code or "always()" in terms) and all(map(self._holds, terms))

    def _holds(self, term: str) -> bool:
        if term in ("always()", "success()"):
            return True  # seen to
        found = re.fullmatch(r"([\w.-]+) (==|!=) '(.*)'", term)
        assert found is not None, term
        return (self.known.get(found[1], "") == found[3]) == (found[2] == "==")

    @property
    def comments(self) -> list[str]:
        """The comments on the pull request."""
        store = self.folder / "comments.json"
        return [item["body"] for item in json.loads(store.read_text())] if store.exists() else []

    @property
    def summary(self) -> str:
        """The summary of the job."""
        return (self.folder / "summary.md").read_text()


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


ANNOTATION = re.compile(r"::(error|warning|notice) file=([^,]+),line=\d+(,[a-zA-Z]+=[^,:\n]*)*::[^\n]+")


@pytest.fixture
def pull_request(tmp_path: Path, drifted: Path) -> Path:
    """The checkout of a pull request: its merge commit, and the branch of the base as a remote one."""
    base = drifted.parent / "base"
    shutil.copytree(ROOT / "fixtures/atenkit", base)
    git(base, "init", "-q", "-b", "main")
    git(base, "add", "-A")
    git(base, "commit", "-qm", "base")
    checkout = tmp_path / "checkout"
    git(tmp_path, "clone", "-q", str(base), str(checkout))
    git(checkout, "checkout", "-q", "-b", "pull")
    shutil.copytree(drifted, checkout, dirs_exist_ok=True)
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "pull")
    git(checkout, "checkout", "-q", "--detach", "origin/main")
    git(checkout, "merge", "-q", "--no-ff", "-m", "merge", "pull")
    return checkout


def test_a_pull_request_with_findings(tmp_path: Path, pull_request: Path) -> None:
    runner = Runner(tmp_path / "runner", sarif_file="found.sarif", diff_against="origin/main")
    code, log = runner.job(pull_request)
    assert code == 1
    annotations = [line for line in log.splitlines() if line.startswith("::")]
    assert annotations
    for line in annotations:
        found = ANNOTATION.fullmatch(line)
        assert found, line
        assert (pull_request / found[2]).is_file()
    schema = json.loads((ROOT / "tests/reporters/sarif-schema-2.1.0.json").read_text())
    sarif = json.loads((pull_request / "found.sarif").read_text())
    jsonschema.validate(sarif, schema)
    assert sarif["runs"][0]["results"]
    assert (tmp_path / "runner/summary.md").read_text().startswith("#")


def test_a_pull_request_without_findings_and_one_whose_findings_are_accepted(
    tmp_path: Path, pull_request: Path
) -> None:
    baseline = [sys.executable, "-m", "opschema_cli", "baseline"]
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'rules'}"}
    subprocess.run(baseline, cwd=pull_request, env=environ, check=True, capture_output=True)
    code, log = Runner(tmp_path / "accepted").job(pull_request)
    assert (code, "::error" in log) == (0, False), log
    git(pull_request, "stash", "-uq")
    git(pull_request, "checkout", "-q", "origin/main")
    code, log = Runner(tmp_path / "clean").job(pull_request)
    assert (code, "::error" in log) == (0, False), log


def test_inputs_of_several_lines_and_a_folder_of_the_repository(tmp_path: Path, pull_request: Path) -> None:
    (pull_request / "part").mkdir()
    for item in pull_request.iterdir():
        if item.name not in (".git", "part"):
            item.rename(pull_request / "part" / item.name)
    runner = Runner(tmp_path / "runner", working_directory="part", args="--select\nATN701\n", paths="backend\n")
    code, log = runner.job(pull_request)
    assert code == 1, log
    places = set(re.findall(r"(?m)^::.*?file=([^,]+)", log))
    assert places
    assert all(place.startswith("part/backend/") for place in places), (
        "GitHub takes paths from the root of the repository"
    )


COMMENT = "Comment on the pull request"
EVERYTHING = {"upload_sarif": "true", "diff_against": "origin/main", "comment": "true"}


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_findings_are_uploaded_and_one_comment_is_kept_up_to_date(tmp_path: Path, pull_request: Path) -> None:
    runner = Runner(tmp_path / "runner", **EVERYTHING)
    other = {"id": 1, "body": "a comment of others", "user": {"type": "Bot"}}
    (tmp_path / "runner/comments.json").write_text(json.dumps([other]))
    code, log = runner.job(pull_request)
    assert (code, "::notice title=opschema" in log) == (1, False)
    assert runner.run(COMMENT, pull_request).returncode == 0
    first, comment = runner.comments
    assert first == other["body"]
    assert comment.startswith("<!-- opschema diff -->\n#")
    sarif = json.loads(Path(runner.uploaded[-1]).read_text())
    assert sarif["runs"][0]["results"]
    assert "ATN701" not in runner.summary, "code scanning has the findings"


def test_the_token_of_a_fork_does_not_change_the_result(tmp_path: Path, pull_request: Path) -> None:
    """It may only read: neither the upload nor the comment is allowed."""
    runner = Runner(tmp_path / "runner", token="may-read", **EVERYTHING)
    code, log = runner.job(pull_request)
    assert code == 1, "there are findings"
    assert (runner.uploaded, runner.comments) == ([], [])
    assert re.search(r"(?m)^::error file=backend/.*ATN701", log)
    assert log.count("::notice title=opschema") == 2
    assert "HTTP 403" in log, "the log has the reason"
    findings, _, changes = runner.summary.partition("\n````\n")[2].partition("\n````\n")
    assert "ATN701" in findings
    assert changes.startswith("#")


def test_a_fork_without_findings_succeeds(tmp_path: Path, pull_request: Path) -> None:
    git(pull_request, "checkout", "-q", "origin/main")
    runner = Runner(tmp_path / "runner", token="may-read", **EVERYTHING)
    code, log = runner.job(pull_request)
    assert (code, "::error" in log) == (0, False), log


def test_nothing_is_posted_outside_of_pull_requests_and_unless_asked_for(tmp_path: Path) -> None:
    made = {"steps.diff.outputs.changes": "changes.md"}
    asked, pushed, silent = (Runner(tmp_path / name) for name in ("asked", "pushed", "silent"))
    asked.known |= {"inputs.comment": "true", **made}
    pushed.known |= {"inputs.comment": "true", **made, "github.event.pull_request.number": ""}
    silent.known |= made
    assert [runner.applies(STEPS[COMMENT], 1) for runner in (asked, pushed, silent)] == [True, False, False]


def test_only_the_comment_has_the_token() -> None:
    holders = [name for name, step in STEPS.items() if re.search(r"(?i)token|secrets", json.dumps(step))]
    assert holders == [COMMENT]


def test_a_base_that_was_not_fetched_is_said(tmp_path: Path, pull_request: Path) -> None:
    runner = Runner(tmp_path / "runner", diff_against="origin/elsewhere")
    code, log = runner.job(pull_request)
    assert code == 2
    assert "origin/elsewhere" in log
    assert "cat:" not in log


@pytest.fixture
def drifted(tmp_path: Path) -> Path:
    """A repository with findings."""
    folder = tmp_path / "tree"
    shutil.copytree(ROOT / "fixtures/atenkit_broken", folder)
    return folder


def test_the_action_annotates_findings_and_fails_at_its_end(tmp_path: Path, drifted: Path) -> None:
    runner = Runner(tmp_path, sarif_file="found.sarif", paths="backend")
    linted = runner.run("Lint", drifted)
    assert linted.returncode == 0, linted.stderr
    assert "ATN701" in linted.stdout.partition("::error")[0]
    assert re.search(r"(?m)^::error file=backend/.*ATN701", linted.stdout)
    assert '"version": "2.1.0"' in (drifted / "found.sarif").read_text()
    assert runner.run("Report the result", drifted).returncode == 1


def test_the_action_compares_operators(tmp_path: Path, drifted: Path) -> None:
    git(drifted, "init", "-q", "-b", "main")
    git(drifted, "add", "-A")
    git(drifted, "commit", "-qm", "one")
    runner = Runner(tmp_path, diff_against="main")
    assert runner.run("Compare the operators", drifted).returncode == 0
    assert (tmp_path / "summary.md").read_text().startswith("#")


def test_every_expression_of_the_action_has_a_value(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    outputs = {"steps.diff.outputs.changes", "steps.lint.outputs.sarif"}
    known = runner.known.keys() | {"runner.os", "github.run_id"} | outputs
    assert set(re.findall(r"\$\{\{ (.*?) \}\}", (ROOT / "action.yml").read_text())) <= known


def test_the_gitlab_job_writes_what_it_declares() -> None:
    job = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text())["opschema"]
    report = job["artifacts"]["reports"]["codequality"]
    assert any(f"--output-format gitlab --output-file {report}" in line for line in job["script"])
    assert job["variables"]["OPSCHEMA_CACHE_DIR"].endswith(job["cache"]["paths"][0])


def test_the_image_copies_what_the_build_needs() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {"opschema_cli", "rules", "pyproject.toml", "README.md", "LICENSE"} <= kept
    assert all((ROOT / name).exists() for name in kept)


def test_gitlab_gets_paths_from_the_root_of_the_project(tmp_path: Path, drifted: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "opschema_cli",
        "lint",
        "--select",
        "ATN701",
        "--output-format",
        "gitlab",
        "--no-cache",
    ]
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'rules'}"}
    for project, prefix in ((drifted, "backend/"), (drifted.parent, "tree/backend/"), (tmp_path / "other", "backend/")):
        run = subprocess.run(command, cwd=drifted, env={**environ, "CI_PROJECT_DIR": str(project)}, capture_output=True)
        paths = [item["location"]["path"] for item in json.loads(run.stdout)]
        assert paths
        assert all(path.startswith(prefix) for path in paths)
