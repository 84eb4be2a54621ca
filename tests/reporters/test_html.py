"""The report as a page: its structure, that nothing of the tree becomes markup, and its script in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
from msgspec.structs import replace

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place, Related
from opschema_cli.reporters import Report, load_writer
from opschema_cli.source.text import Edit, Span
from tests.reporters.conftest import FILES
from tests.reporters.pages import Page, contrast, in_browser

Make = Callable[..., Report]
BIDI = "\u202e\u2066\u200f"


def written(report: Report) -> Page:
    return Page(load_writer("html")(report))


def test_both_sides_and_the_fix(make_report: Make, differs: Diagnostic, status: Diagnostic) -> None:
    page = written(make_report(differs, status))
    assert page.texts("p", "headline error") == ["Found 1 error and 1 warning in 1 file"]
    assert page.texts("mark", "primary") == ["1e-5", '"100%, done"']
    assert page.texts("mark", "other") == ["1e-6"]
    assert page.texts("tr", "note other") == ["the default that runs"]
    assert page.texts("caption") == ["ops/norm.yaml:3:33", "ops/norm.py:2:37", "ops/norm.yaml:3", "ops/norm.yaml:4:11"]
    assert page.texts("tr", "removed") == ["3-     eps: {type: float, default: 1e-5}"]
    assert page.texts("tr", "added") == ["+     eps: {type: float, default: 1e-6}"]
    assert "https://example.org/rules/SIG110.md" in [attrs["href"] for attrs in page.attributes("a")]


def test_the_page_loads_nothing_and_has_a_name_for_each_control(make_report: Make, differs: Diagnostic) -> None:
    page = written(make_report(differs, differs))
    assert not [name for name, attrs, _ in page.elements if name in ("link", "img", "iframe") or "src" in attrs]
    assert "url(" not in "".join(page.texts("style"))
    assert page.attributes("meta")[-1]["content"].startswith("default-src 'none'; style-src 'sha256-")  # type: ignore[union-attr]
    labels = "".join(page.texts("label") + page.texts("label", "theme")).split()
    assert len(page.attributes("select")) + len(page.attributes("input")) == len(page.attributes("label")) == 7, labels
    ids = [attrs["id"] for _, attrs, _ in page.elements if "id" in attrs]
    assert len(ids) == len({*ids})
    assert page.attributes("form")[0].keys() >= {"hidden"}, "without a script it does nothing"


def test_the_same_findings_give_the_same_bytes(make_report: Make, differs: Diagnostic) -> None:
    write = load_writer("html")
    assert write(make_report(differs, seconds=0.1)) == write(make_report(differs, seconds=9.9))


def test_nothing_of_the_tree_becomes_markup(make_report: Make, differs: Diagnostic) -> None:
    """Every text that a tree decides has tags, quotes, the end of a script, and characters that reorder a line."""
    evil = f"</script></style><img src=x onerror=alert(1)>\"'><!--&lt;`<b>`{BIDI}\x1b[2J\udc80{{policy}}"
    source = f"{evil} = 1\n"
    place = Place(evil, Span(0, len(evil)))
    hostile = Diagnostic(
        evil,
        place,
        (Related(place, evil), Related(Place(evil + "2", Span(0, 1)), evil)),
        Fix(evil, (FileEdit(evil, Edit(Span(0, 3), evil)),), "unsafe", evil),
        (evil,),
        "SIG110",
        evil,
    )
    report = replace(make_report(hostile, files={evil: source}), root=Path("/</title><script>"))
    rule = replace(report.rules["SIG110"], summary=evil, uri="javascript:alert(1)", pack=evil)
    report = replace(report, rules={"SIG110": rule})
    text = load_writer("html")(report)
    page, tame = Page(text), written(make_report(differs))
    assert {name for name, _, _ in page.elements} <= {name for name, _, _ in tame.elements} | {"b", "del", "ins"}
    known = {key for _, attrs, _ in tame.elements for key in attrs}
    assert {key for _, attrs, _ in page.elements for key in attrs} <= known
    assert not set(text) & {*BIDI, "\x1b", "\udc80"}
    shown = "\\u202e\\u2066\\u200f\\x1b[2J\\udc80{policy}"
    assert shown in page.texts("mark", "primary")[0]
    assert shown in page.texts("h3")[0]
    assert not [attrs for attrs in page.attributes("a") if not (attrs["href"] or "").startswith("#f-")]


def test_a_long_line_is_cut_around_each_place(make_report: Make) -> None:
    text = f"first{'x' * 20_000}second\n"
    there = Related(Place("f", Span(20_005, 20_011)), "there")
    page = written(
        make_report(Diagnostic("m", Place("f", Span(0, 5)), (there,), code="A1", name="n"), files={"f": text})
    )
    assert (page.texts("mark", "primary"), page.texts("mark", "other")) == (["first"], ["second"])
    assert max(map(len, page.texts("code"))) < 500


@pytest.mark.parametrize(("start", "shown"), [(0, "+ new\n1  a"), (2, "1  a\n+ new"), (4, "2  b\n+ new")])
def test_an_insertion_is_shown_beside_a_line_of_the_file(start: int, shown: str, make_report: Make) -> None:
    fix = Fix("add it", (FileEdit("f", Edit(Span(start, start), "new\n")),))
    page = written(make_report(Diagnostic("m", Place("f", Span(0, 1)), fix=fix, code="A1"), files={"f": "a\nb\n"}))
    rows = [row for row in page.texts("tr") + page.texts("tr", "added") if row.startswith(("+", "1  ", "2  "))]
    assert sorted(rows) == sorted(shown.splitlines())


def test_every_text_has_contrast_in_both_themes() -> None:
    style = files("opschema_cli.reporters.html").joinpath("base.css").read_text(encoding="utf-8")
    found = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", style)
    grounds = {"ground", "raised"}
    pairs = [(name, ground) for name, *_ in found for ground in grounds if "ground" not in name and name != "raised"]
    pairs += [(name, f"{name}-ground") for name in ("error", "warning", "info", "good", "other")]
    pairs += [("text", name) for name, *_ in found if name.endswith("-ground")]
    for theme in (1, 2):
        colors = {item[0]: item[theme] for item in found}
        for name, ground in pairs:
            assert name == "line" or contrast(colors[name], colors[ground]) >= 4.5, (theme, name, ground)


def test_the_script_filters_and_sorts(
    make_report: Make, differs: Diagnostic, status: Diagnostic, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    page.write_text(load_writer("html")(make_report(differs, status, replace(status, name="other"))), encoding="utf-8")
    shown = in_browser(page, "severity=warning&text=STATUS&sort=rule", tmp_path)
    assert shown.texts("output") == ["2 of 3 shown"]
    assert [(attrs["data-rule"], "hidden" in attrs) for attrs in shown.attributes("article")] == [
        ("MAN101 other", False),
        ("MAN101 status", False),
        ("SIG110 default-differs", True),
    ]
    assert "hidden" not in shown.attributes("form")[0]
    assert FILES["ops/norm.py"].splitlines()[1] in "".join(shown.texts("code"))
