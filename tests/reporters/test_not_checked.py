"""What a run could not look at, in every format: said of the run, not of a file."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from opschema_cli.lint.diagnostic import Diagnostic, NotChecked
from opschema_cli.reporters import Report, load_writer
from opschema_cli.reporters.screen import Screen
from opschema_cli.reporters.text import write

Make = Callable[..., Report]

MISSED = NotChecked(
    "C++ is not read, as `tree_sitter` cannot be imported",
    "install it: pip install opschema-cli",
    ("PTO101", "PTO102"),
    ("a.cpp", "b.cpp"),
    "tree_sitter",
    "OPS104",
    "not-checked",
)
SENTENCE = (
    "C++ is not read, as `tree_sitter` cannot be imported: 2 files were not read, and these rules did not run or saw less: "
    "PTO101, PTO102"
)


@pytest.fixture
def report(make_report: Make) -> Report:
    return make_report(not_checked=[MISSED])


def test_text(report: Report) -> None:
    stream = io.StringIO()
    write(report, stream, Screen(100, "utf-8"))
    assert stream.getvalue() == (
        """\
warning OPS104 not-checked
  C++ is not read, as `tree_sitter` cannot be imported: 2 files were not read, and these rules did
  not run or saw less: PTO101, PTO102
  help: install it: pip install opschema-cli

No findings, but not all was checked: 178 ops in 22 files, 0.31 s; 2 files not read.
"""
    )


def test_text_with_findings(make_report: Make, differs: Diagnostic) -> None:
    stream = io.StringIO()
    write(make_report(differs, not_checked=[MISSED]), stream, Screen(100, "utf-8"))
    last = " ".join(stream.getvalue().splitlines()[-2:]).strip()
    assert last.startswith("Found 1 error in 1 file")
    assert last.endswith("; 2 files not read.")


def test_concise(report: Report) -> None:
    first, last = load_writer("concise")(report).splitlines()
    assert first == f"opschema: warning OPS104 [not-checked] {SENTENCE} (install it: pip install opschema-cli)"
    assert last.startswith("No findings, but not all was checked")


def test_json(report: Report) -> None:
    assert json.loads(load_writer("json")(report))["not_checked"] == [
        {
            "code": "OPS104",
            "severity": "warning",
            "message": "C++ is not read, as `tree_sitter` cannot be imported",
            "hint": "install it: pip install opschema-cli",
            "rules": ["PTO101", "PTO102"],
            "files": ["a.cpp", "b.cpp"],
        }
    ]


def test_sarif(report: Report) -> None:
    (invocation,) = json.loads(load_writer("sarif")(report))["runs"][0]["invocations"]
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["descriptor"] == {"id": "OPS104", "name": "not-checked"}
    assert notification["level"] == "warning"
    assert notification["message"]["text"].startswith(SENTENCE)


def test_github(report: Report) -> None:
    assert load_writer("github")(report).startswith(f"::warning title=OPS104 not-checked::{SENTENCE}")


def test_gitlab(report: Report) -> None:
    (entry,) = json.loads(load_writer("gitlab")(report))
    assert entry["description"].startswith(f"OPS104 not-checked: {SENTENCE}")
    assert (entry["check_name"], entry["severity"], entry["location"]["path"]) == ("OPS104", "minor", ".")


def test_junit(report: Report) -> None:
    suite = ElementTree.fromstring(load_writer("junit")(report))[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("1", "0", "1")
    (case,) = suite
    assert case.get("name") == "OPS104 not-checked"
    assert (case[0].tag, case[0].get("message", "").startswith(SENTENCE)) == ("skipped", True)
