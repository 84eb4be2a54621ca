"""The files for CI: what they run is run here, step by step."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "name" in step}


class Runner:
    """Runs steps of the action with its inputs, as GitHub does."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.folder = folder
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
    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words], cwd=drifted, check=True, capture_output=True
        )

    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "one")
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
