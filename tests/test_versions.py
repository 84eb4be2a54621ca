"""The contents of a bug report: the versions, and a failure report without any part of the linted tree."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from opschema_cli import __version__, main
from opschema_cli.errors import EXIT_INTERNAL

SECRET = "the_secret_of_the_tree"
RAISING = """
from pathlib import Path
import msgspec
from opschema_cli.api import Loaded, Pack, rule

class Subject(msgspec.Struct):
    name: str

@rule("OUR101", "our-rule")
def broken(subject: Subject):
    \"\"\"Fail.\"\"\"
    raise KeyError(subject.name)

PACK = Pack("ours", "ours", lambda project, options: True, lambda project, options: Loaded([Subject("SECRET")], 1), (broken,))
"""


def test_the_version_alone_and_with_what_it_runs_with(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"opschema, version {__version__}\n"
    assert main.run(["--version", "--verbose"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"opschema, version {__version__}"
    assert any(re.match(r"libcst: \d", line) for line in lines)
    assert {"pack tileops: built in", "pack torchlib: built in"} <= set(lines)


def failed(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """The report of a run that fails in a folder of its own."""
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert main.run(list(arguments)) == EXIT_INTERNAL
    [report] = folder.glob("opschema-report-*.txt")
    return report.read_text()


def test_a_failure_of_the_program_leaves_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(**options: object) -> None:
        raise ValueError(SECRET) from KeyError(SECRET)

    command = click.Command("lint", callback=fails)
    monkeypatch.setattr(main._Lazy, "get_command", lambda *_: command)
    report = failed(tmp_path, monkeypatch, "lint")
    assert f"opschema, version {__version__}" in report
    assert re.search(r"ValueError\n(?:  .+\n)*  .*test_versions\.py:\d+ in fails\nKeyError", report)
    assert SECRET not in report
    assert "is in " + str(tmp_path) in capsys.readouterr().err


def test_a_rule_that_fails_leaves_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("OPSCHEMA_ALLOW_PLUGINS", "all")
    root = tmp_path / "root"
    root.mkdir()
    (root / "ours.py").write_text(RAISING.replace("SECRET", SECRET))
    (root / "opschema.toml").write_text('plugins = ["ours.py"]\n')
    monkeypatch.chdir(root)
    report = failed(tmp_path, monkeypatch, "lint")
    assert re.search(r"KeyError\n(?:  .+\n)*  .*ours\.py:\d+ in broken", report)
    assert SECRET not in report
