"""Counts of findings in each format, for a tree and three commits."""

from __future__ import annotations

import json

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.reporters.statistics import Revision, Row, Statistics, load_writer
from opschema_cli.reporters.statistics.text import spark
from tests.reporters.pages import Page

DAY = 86_400


def row(path: str, code: str, count: int, severity: Severity = Severity.ERROR) -> Row:
    return Row(path, code, f"name-{code}", "kit", severity, count)


NOW = [row("a.py", "A1", 2), row("b.py", "A1", 1), row("b.py", "B2", 4, Severity.WARNING)]
PAST = [
    Revision("1" * 40, 0, [row("a.py", "C3", 7)]),
    Revision("2" * 40, DAY, [row("a.py", "C3", 3), row("b.py", "B2", 4, Severity.WARNING)]),
    Revision("3" * 40, 2 * DAY, [row("b.py", "B2", 4, Severity.WARNING)]),
]
STATISTICS = Statistics("kit", NOW, PAST)


def test_text() -> None:
    assert (
        load_writer("text")(STATISTICS)
        == """\
7 findings: 3 errors, 4 warnings, 0 infos

findings  rule
       4  B2 name-B2
       3  A1 name-A1

findings  pack
       7  kit

findings  file
       5  b.py
       2  a.py

commit      date          errors  warnings     infos
1111111111  1970-01-01         7         0         0  █
2222222222  1970-01-02         3         4         0  █
3333333333  1970-01-03         0         4         0  ▅

   first       now  rule
       0         4  ▁███  B2 name-B2
       0         3  ▁▁▁█  A1 name-A1
       7         0  █▄▁▁  C3 name-C3
"""
    )


def test_json() -> None:
    data = json.loads(load_writer("json")(STATISTICS))
    assert data["tree"] == {
        "errors": 3,
        "warnings": 4,
        "infos": 0,
        "rules": {"B2": 4, "A1": 3},
        "packs": {"kit": 7},
        "files": {"b.py": 5, "a.py": 2},
    }
    assert [(item["date"], item["errors"]) for item in data["history"]] == [
        ("1970-01-01", 7),
        ("1970-01-02", 3),
        ("1970-01-03", 0),
    ]


def test_the_page_has_a_bar_for_each_severity_of_a_commit() -> None:
    page = Page(load_writer("html")(STATISTICS))
    bars = [(attrs["class"], attrs["y"], attrs["height"]) for attrs in page.attributes("rect")]
    assert bars == [
        ("error", "0.0", "160.0"),
        ("error", "91.4", "68.6"),
        ("warning", "0.0", "91.4"),
        ("warning", "68.6", "91.4"),
    ]
    assert page.texts("h2") == ["History", "By rule", "By pack", "By file"]
    assert page.attributes("polyline")[0]["points"] == "3,17.0 11,3.0 19,3.0 27,3.0"
    assert page.texts("tr")[-2:] == ["b.py5", "a.py2"]


@pytest.mark.parametrize("name", ["text", "html"])
def test_a_hostile_path_is_shown_not_obeyed(name: str) -> None:
    written = load_writer(name)(Statistics("</title>", [row("</th><script>\x1b\u202e.py", "A1", 1)]))
    assert "\\x1b\\u202e.py" in written
    assert not {"\x1b", "\u202e"} & set(written)
    assert name == "text" or written.count("<script>") == 1


def test_without_findings() -> None:
    assert load_writer("text")(Statistics("kit", [])) == "0 findings: 0 errors, 0 warnings, 0 infos\n"
    assert spark([0, 0]) == "▁▁"
