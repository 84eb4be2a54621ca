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
    """Runs steps of the action with its inputs, as GitHub does."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.folder = folder
        self.workspace: Path | None = None
        given = {name: str(item["default"]) for name, item in ACTION["inputs"].items()}
        self.known = {
            "runner.temp": str(folder),
            "steps.lint.outputs.exit-code": "",
            **{f"inputs.{name}": inputs.get(name.replace("-", "_"), value) for name, value in given.items()},
        }
        tool = folder / "opschema-venv/bin/opschema"
        tool.parent.mkdir(parents=True)
        tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m opschema_cli "$@"\n')
        tool.chmod(0o755)

    def filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: self.known[found[1]], text)

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
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'rules'}", **files, **given},
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
            if "run" not in step or step["name"] == "Install opschema" or not self._applies(step, code):
                continue
            folder = workspace / self.filled(step.get("working-directory", "."))
            done = self.run(step["name"], folder)
            log += done.stdout + done.stderr
            code = code or done.returncode
        return code, log

    def _applies(self, step: dict[str, Any], code: int) -> bool:
        condition = step.get("if", "success()")
        if found := re.fullmatch(r"(inputs\.[\w-]+) != ''", condition):
            return not code and self.known[found[1]] != ""
        return {"always()": True, "success()": not code}[condition]


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


def test_a_fork_needs_no_token() -> None:
    text = (ROOT / "action.yml").read_text()
    assert not re.search(r"(?i)token|secrets", text)


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
    runner.known |= {"runner.os": "Linux", "github.run_id": "1", "steps.diff.outputs.changes": ""}
    texts = re.findall(r"\$\{\{ .*? \}\}", (ROOT / "action.yml").read_text())
    assert [text for text in texts if "${{" in runner.filled(text)] == []


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
