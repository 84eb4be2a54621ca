"""What each format says where there was nothing to lint, and of declarations that no pack reads."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from opschema_cli.lint.diagnostic import Diagnostic, Unread
from opschema_cli.reporters import Report, load_writer
from opschema_cli.reporters.screen import Screen
from opschema_cli.reporters.text import write as write_text

Make = Callable[..., Report]

SEEN = [
    Unread("YAML files of ExecuTorch", 16, 16, "kernels/functions.yaml"),
    Unread("rows that name aten operators", 290, 1, "ops/__init__.py"),
]
NAMED = (
    "seen and not read: 16 YAML files of ExecuTorch (kernels/functions.yaml and 15 more files), "
    "290 rows that name aten operators (ops/__init__.py)"
)


@pytest.fixture
def nothing(make_report: Make) -> Report:
    return make_report(unread=SEEN, nothing=True, ops=0)


@pytest.fixture
def partly(make_report: Make) -> Report:
    return make_report(unread=SEEN)


def test_text_and_concise_say_that_there_is_nothing_to_lint(nothing: Report) -> None:
    stream = io.StringIO()
    write_text(nothing, stream, Screen(400, "utf-8"))
    said = f"Nothing to lint: opschema reads no operator here, 0.31 s; {NAMED}.\n"
    assert stream.getvalue().replace("\n", " ").split() == said.split()
    assert load_writer("concise")(nothing) == said


def test_a_clean_report_names_what_was_not_read(partly: Report, make_report: Make) -> None:
    assert load_writer("concise")(partly) == f"All clean: 178 ops in 22 files, 0.31 s; {NAMED}.\n"
    assert "not read" not in load_writer("concise")(make_report())


def test_json_has_a_field_for_each(nothing: Report, partly: Report) -> None:
    document = json.loads(load_writer("json")(nothing))
    assert document["summary"]["nothing_to_lint"] is True
    assert document["not_read"] == [
        {"what": "YAML files of ExecuTorch", "count": 16, "files": 16, "example": "kernels/functions.yaml"},
        {"what": "rows that name aten operators", "count": 290, "files": 1, "example": "ops/__init__.py"},
    ]
    assert json.loads(load_writer("json")(partly))["summary"]["nothing_to_lint"] is False


def test_sarif_notifies(nothing: Report, partly: Report, make_report: Make) -> None:
    (invocation,) = json.loads(load_writer("sarif")(nothing))["runs"][0]["invocations"]
    assert invocation == {
        "executionSuccessful": True,
        "toolExecutionNotifications": [
            {
                "level": "warning",
                "message": {"text": f"Nothing to lint: opschema reads no operator here; {NAMED}."},
            }
        ],
    }
    (invocation,) = json.loads(load_writer("sarif")(partly))["runs"][0]["invocations"]
    assert invocation["toolExecutionNotifications"][0]["level"] == "note"
    assert "invocations" not in json.loads(load_writer("sarif")(make_report()))["runs"][0]


def test_github_annotates_the_run(nothing: Report, partly: Report) -> None:
    said = f"Nothing to lint: opschema reads no operator here; {NAMED}."
    assert load_writer("github")(nothing) == f"::warning title=opschema::{said}\n"
    assert load_writer("github")(partly) == f"::notice title=opschema::S{NAMED[1:]}.\n"


def test_gitlab_has_an_entry_only_where_nothing_was_linted(nothing: Report, partly: Report) -> None:
    (entry,) = json.loads(load_writer("gitlab")(nothing))
    assert (entry["check_name"], entry["severity"], entry["location"]["path"]) == ("nothing-to-lint", "info", ".")
    assert entry["description"].startswith("Nothing to lint: ")
    assert json.loads(load_writer("gitlab")(partly)) == []


def test_junit_skips_the_case(nothing: Report, partly: Report) -> None:
    suite = ElementTree.fromstring(load_writer("junit")(nothing))[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("1", "0", "1")
    skipped = suite.find("testcase/skipped")
    assert skipped is not None
    assert (skipped.get("message") or "").startswith("Nothing to lint: ")
    suite = ElementTree.fromstring(load_writer("junit")(partly))[0]
    assert (suite.get("skipped"), suite.findtext("system-out")) == ("0", f"S{NAMED[1:]}.")


def test_a_report_with_findings_is_not_called_empty(make_report: Make, differs: Diagnostic) -> None:
    concise = load_writer("concise")(make_report(differs, unread=SEEN))
    assert concise.splitlines()[-1] == (
        f"Found 1 error in 1 file (178 ops, 22 files read in 0.31 s); 1 fixable with --fix; {NAMED}."
    )
