"""Caps of a report: so many findings of one rule in one file, so many characters of a message."""

from __future__ import annotations

import json
from pathlib import Path

from opschema_cli.lint.diagnostic import Diagnostic, Fix, Place, Related, Severity
from opschema_cli.lint.limits import MAX_SHOWN, MAX_TEXT, shown_findings, within_limits
from opschema_cli.source.text import Span
from tests.command import Opschema
from tests.toypack import SUFFIX

PLUGIN = Path(__file__).parents[1] / "toypack.py"


def finding(at: int, code: str = "TOY101", path: str = "a", severity: Severity = Severity.ERROR) -> Diagnostic:
    return Diagnostic("no doc", Place(path, Span(at, at)), code=code, name="missing-doc", severity=severity)


def test_the_first_findings_of_a_rule_in_a_file_are_shown_and_one_says_how_many_more_there_are() -> None:
    many = [finding(at) for at in range(MAX_SHOWN + 7)]
    found, hidden = shown_findings(many)
    assert found[:-1] == many[:MAX_SHOWN]
    assert (hidden, found[-1].code, found[-1].severity) == (7, "OPS106", Severity.INFO)
    assert found[-1].message == "7 more findings of TOY101 (missing-doc) in this file are not shown"
    assert found[-1].place == many[MAX_SHOWN].place


def test_the_worst_come_first() -> None:
    many = [finding(at, severity=Severity.INFO) for at in range(MAX_SHOWN)]
    found, hidden = shown_findings([*many, finding(MAX_SHOWN)])
    assert found[-1] == finding(MAX_SHOWN)
    assert hidden == 1


def test_other_rules_and_other_files_have_room_of_their_own() -> None:
    many = [finding(at, code, path) for at in range(MAX_SHOWN) for code in ("TOY101", "TOY102") for path in "ab"]
    assert shown_findings(many) == (many, 0)


def test_a_long_message_keeps_its_beginning_and_end() -> None:
    long = "x" * 10_000_000
    item = Diagnostic(
        f"`{long}` is not a name", Place("a", Span(0, 1)), (Related(Place("a", Span(0, 1)), long),), Fix(long, ())
    )
    clipped = within_limits(item)
    assert len(clipped.message) == MAX_TEXT
    assert clipped.message.startswith("`xxx")
    assert clipped.message.endswith("xxx` is not a name")
    assert clipped.fix is not None
    assert {len(clipped.related[0].message), len(clipped.fix.title)} == {MAX_TEXT}
    assert within_limits(clipped) is clipped


def test_the_report_counts_what_it_does_not_show(tmp_path: Path) -> None:
    (tmp_path / "toypack.py").write_text(PLUGIN.read_text())
    (tmp_path / "opschema.toml").write_text('plugins = ["toypack.py"]\n')
    (tmp_path / f"many{SUFFIX}").write_text("".join(f"op{number}: {{}}\n" for number in range(1005)))
    opschema = Opschema(tmp_path, tmp_path / "cache")
    report = json.loads(opschema("lint", "--output-format", "json").out)
    assert (report["summary"]["errors"], report["summary"]["not_shown"]) == (1005, 5)
    assert len(report["diagnostics"]) == MAX_SHOWN + 1
    assert "Found 1005 errors in 1 file" in (text := opschema("lint").out)
    assert "5 not shown" in text
    assert opschema("baseline").code == 0
    assert opschema("lint").out.startswith("All clean"), "the baseline holds all findings"
