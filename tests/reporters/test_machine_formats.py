"""Each format, whole, for one error with two sides, an op and a fix, and one warning."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from opschema_cli.lint.crashes import NOWHERE
from opschema_cli.lint.diagnostic import Diagnostic, Place, Severity
from opschema_cli.reporters import FORMATS, MACHINE_FORMATS, Report, load_writer
from opschema_cli.reporters.text import write
from opschema_cli.source.text import Span

Make = Callable[..., Report]


@pytest.fixture
def report(make_report: Make, differs: Diagnostic, status: Diagnostic) -> Report:
    return make_report(differs, status, suppressed=1, baselined=4)


def test_concise(report: Report) -> None:
    assert (
        load_writer("concise")(report)
        == """\
ops/norm.yaml:3:33: error SIG110 [default-differs] `eps` defaults to `1e-5` in the manifest and to `1e-6` in \
`__init__()`. Give both the same default (ops: RMSNorm)
ops/norm.yaml:4:11: warning MAN101 [status] status `100%, done` is not known: use `implemented`
Found 1 error and 1 warning in 1 file (178 ops, 22 files read in 0.31 s); 1 fixable with --fix; \
1 suppressed, 4 baselined.
"""
    )


def test_json(report: Report) -> None:
    assert (
        load_writer("json")(report)
        == """\
{
  "version": 1,
  "diagnostics": [
    {
      "code": "SIG110",
      "name": "default-differs",
      "severity": "error",
      "message": "`eps` defaults to `1e-5` in the manifest and to `1e-6` in `__init__()`. \
Give both the same default",
      "path": "ops/norm.yaml",
      "line": 3,
      "column": 33,
      "end_line": 3,
      "end_column": 37,
      "ops": [
        "RMSNorm"
      ],
      "related": [
        {
          "path": "ops/norm.py",
          "line": 2,
          "column": 37,
          "message": "the default that runs"
        }
      ],
      "fix": {
        "safety": "safe",
        "title": "set the manifest's default to `1e-6`"
      }
    },
    {
      "code": "MAN101",
      "name": "status",
      "severity": "warning",
      "message": "status `100%, done` is not known: use `implemented`",
      "path": "ops/norm.yaml",
      "line": 4,
      "column": 11,
      "end_line": 4,
      "end_column": 23,
      "ops": [],
      "related": [],
      "fix": null
    }
  ],
  "summary": {
    "errors": 1,
    "warnings": 1,
    "infos": 0,
    "suppressed": 1,
    "baselined": 4,
    "ops": 178,
    "files": 22,
    "unresolved": 0,
    "ops_partly_known": 0,
    "nothing_to_lint": false,
    "not_shown": 0
  },
  "unresolved": [],
  "not_checked": [],
  "not_read": []
}
"""
    )


def test_github(report: Report) -> None:
    assert (
        load_writer("github")(report)
        == """\
::error file=ops/norm.yaml,line=3,col=33,endLine=3,endColumn=37,title=SIG110 default-differs::`eps` defaults \
to `1e-5` in the manifest and to `1e-6` in `__init__()`. Give both the same default%0Aops/norm.py:2:37: the \
default that runs%0Aops: RMSNorm%0Ahelp: set the manifest's default to `1e-6`
::warning file=ops/norm.yaml,line=4,col=11,endLine=4,endColumn=23,title=MAN101 status::status `100%25, done` \
is not known: use `implemented`
"""
    )


def test_github_escapes_properties(make_report: Make) -> None:
    odd = Diagnostic("100% done\nnext", Place("a,b:c%.py", Span(0, 1)), code="A1", name="n", severity=Severity.INFO)
    assert load_writer("github")(make_report(odd, files={"a,b:c%.py": "x"})) == (
        "::notice file=a%2Cb%3Ac%25.py,line=1,col=1,endLine=1,endColumn=2,title=A1 n::100%25 done\\nnext\n"
    )


def test_github_leaves_columns_out_over_several_lines(make_report: Make) -> None:
    long = Diagnostic("m", Place("a.py", Span(1, 4)), code="A1", name="n")
    assert load_writer("github")(make_report(long, files={"a.py": "ab\ncd\n"})) == (
        "::error file=a.py,line=1,endLine=2,title=A1 n::m\n"
    )


def test_gitlab(report: Report) -> None:
    first, second = json.loads(load_writer("gitlab")(report))
    assert first == {
        "description": "SIG110 default-differs: `eps` defaults to `1e-5` in the manifest and to `1e-6` in "
        "`__init__()`. Give both the same default",
        "check_name": "SIG110",
        "fingerprint": "738113695e76b28c54bd5f15d7859e49",
        "severity": "major",
        "location": {
            "path": "ops/norm.yaml",
            "positions": {"begin": {"line": 3, "column": 33}, "end": {"line": 3, "column": 37}},
        },
    }
    assert second["severity"] == "minor"


def test_junit(report: Report) -> None:
    assert (
        load_writer("junit")(report)
        == """\
<?xml version='1.0' encoding='us-ascii'?>
<testsuites name="opschema" tests="2" failures="2" errors="0" time="0.310">
  <testsuite name="opschema" tests="2" failures="2" errors="0" time="0.310" skipped="0">
    <testcase classname="ops/norm.yaml" name="SIG110 default-differs 3:33" \
file="ops/norm.yaml" line="3" time="0">
      <failure type="error" message="`eps` defaults to `1e-5` in the manifest and to `1e-6` in `__init__()`. \
Give both the same default">ops/norm.yaml:3:33: `eps` defaults to `1e-5` in the manifest and to `1e-6` in \
`__init__()`. Give both the same default
ops/norm.py:2:37: the default that runs
ops: RMSNorm</failure>
    </testcase>
    <testcase classname="ops/norm.yaml" name="MAN101 status 4:11" file="ops/norm.yaml" line="4" time="0">
      <failure type="warning" message="status `100%, done` is not known: use `implemented`">\
ops/norm.yaml:4:11: status `100%, done` is not known: use `implemented`</failure>
    </testcase>
  </testsuite>
</testsuites>
"""
    )


def test_junit_passes_when_clean(make_report: Make) -> None:
    assert (
        load_writer("junit")(make_report())
        == """\
<?xml version='1.0' encoding='us-ascii'?>
<testsuites name="opschema" tests="1" failures="0" errors="0" time="0.310">
  <testsuite name="opschema" tests="1" failures="0" errors="0" time="0.310" skipped="0">
    <testcase classname="opschema" name="lint" time="0.310" />
  </testsuite>
</testsuites>
"""
    )


def test_clean_reports(make_report: Make) -> None:
    written = {name: load_writer(name)(make_report()) for name in ("concise", "github", "gitlab")}
    assert written == {"concise": "All clean: 178 ops in 22 files, 0.31 s.\n", "github": "", "gitlab": "[]\n"}


def test_junit_is_xml_for_any_text(make_report: Make) -> None:
    anything = "".join(map(chr, [*range(0x20), 0x7F, 0x85, 0xD800, 0xFFFE, 0x1F600])) + "<&>\"']]>"
    hostile = Diagnostic(anything, Place(anything, Span(0, 1)), ops=(anything,), code="A1", name=anything)
    failure = ElementTree.fromstring(load_writer("junit")(make_report(hostile))).find(".//failure")
    assert failure is not None
    assert "\\x00\\x01" in failure.attrib["message"]
    assert "\U0001f600<&>\"']]>" in failure.attrib["message"]


def test_a_finding_without_a_file_names_none(make_report: Make) -> None:
    crash = Diagnostic("the pack `kit` failed", NOWHERE, code="OPS900", name="rule-crashed", severity=Severity.ERROR)
    report = make_report(crash)
    concise, github, gitlab, junit, sarif = (
        load_writer(name)(report) for name in ("concise", "github", "gitlab", "junit", "sarif")
    )
    assert concise.splitlines()[0] == "opschema: error OPS900 [rule-crashed] the pack `kit` failed"
    assert github == "::error title=OPS900 rule-crashed::the pack `kit` failed\n"
    assert json.loads(gitlab)[0]["location"]["path"] == "."
    case = ElementTree.fromstring(junit).find(".//testcase")
    assert case is not None
    assert case.attrib == {"classname": "opschema", "name": "OPS900 rule-crashed", "time": "0"}
    assert case[0].text == "the pack `kit` failed"
    assert json.loads(sarif)["runs"][0]["results"][0]["locations"] == []
    stream = io.StringIO()
    write(report, stream)
    assert stream.getvalue().startswith("error OPS900 rule-crashed\n  the pack `kit` failed\n\nFound 1 error (")


@pytest.mark.parametrize("name", MACHINE_FORMATS)
def test_an_unreadable_file_is_reported_at_its_head(name: str, make_report: Make) -> None:
    gone = Diagnostic("cannot be read", Place("gone.py", Span(7, 9)), code="OPS901", name="unreadable")
    assert "gone.py" in load_writer(name)(make_report(gone))


@pytest.mark.parametrize("name", ["json", "sarif", "gitlab", "junit"])
def test_written_in_ascii(name: str, make_report: Make) -> None:
    """So that no stream's encoding, and no broken file name, can make the output fail."""
    odd = Diagnostic("„ü“ 字", Place("a\udc80/字.py", Span(0, 1)), code="A1", name="n")
    assert load_writer(name)(make_report(odd)).isascii()


@pytest.mark.parametrize("name", ["concise", "github"])
def test_control_characters_are_shown_not_sent(name: str, make_report: Make) -> None:
    hostile = Diagnostic(
        "\x1b]0;title\x07\r\n::error::forged", Place("\x1b[2J\u202e.py", Span(0, 1)), code="A1", name="n\x9b"
    )
    written = load_writer(name)(make_report(hostile))
    assert written.replace("\n", "").isprintable()
    assert "\\x1b]0;title\\x07\\r\\n::error::forged" in written
    assert not any(line.startswith("::error::forged") for line in written.splitlines())


def test_formats_by_name() -> None:
    assert FORMATS == ("text", "concise", "json", "sarif", "github", "gitlab", "junit", "html")
    with pytest.raises(KeyError):
        load_writer("text")
