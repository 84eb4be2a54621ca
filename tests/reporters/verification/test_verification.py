"""The output of a verification, for people and programs."""

from __future__ import annotations

import io
import json as standard_json
from pathlib import Path

import msgspec
import pytest

from opschema_cli.reporters.text import open_console
from opschema_cli.reporters.verification import html, json, text
from opschema_cli.verify.model import CellResult, Figures, Finding, Verdict
from opschema_cli.verify.results import Header, Results, Version
from tests.reporters.pages import Page

FIGURES = Figures(
    side="after", output="y", worst=1e-4, ulps=0.5, kappa=1.5, share=0.25, at=(1, 2), histogram=(50, 0, 4, 30)
)
CELLS = [
    CellResult(
        id="NormFwdOp[a-float16-row-s0]", op="NormFwdOp", verdict="unchanged", device="cpu-sim", figures=(FIGURES,)
    ),
    CellResult(
        id="SoftmaxFwdOp[<b>-float16-odd-s0]",
        op="SoftmaxFwdOp",
        verdict="regression",
        device="cpu-sim",
        reason="after is wrong, before was right",
        findings=(Finding(check="poison", side="after", message="3 elements of `y` \x1b[31mwere never written"),),
    ),
    CellResult(
        id="AlibiFwdOp[c-s0]", op="AlibiFwdOp", verdict="not-checked", device="cpu-sim", reason="it has no recipe"
    ),
    CellResult(
        id="AlibiFwdOp[d-s0]", op="AlibiFwdOp", verdict="not-checked", device="cpu-sim", reason="it has no recipe"
    ),
]


def results(*cells: CellResult, lost: int = 0) -> Results:
    names = (*(cell.id for cell in cells), *(f"lost-{number}" for number in range(lost)))
    header = Header(
        run="k",
        shard=1,
        shards=1,
        total=len(names),
        before=Version(name="HEAD~1", commit="5e1f00d5"),
        after=Version(name="."),
        device="cpu-sim",
        cells=names,
        renamed={"AlibiFwdOp": "AlibiOp"},
    )
    return Results(header, {cell.id: cell for cell in cells})


def shown(found: Results, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.StringIO()
    text.write(found, open_console(stream), 2.0)
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_the_report_tells_device_verdicts_reasons_and_both_sides(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    told = shown(results(*CELLS), width, monkeypatch)
    table = [line for line in told.splitlines() if "FwdOp" in line][:3]
    assert all("cpu-sim" in line for line in table)
    assert "AlibiFwdOp (was AlibiOp)" in table[2]
    assert "regression  SoftmaxFwdOp[<b>-float16-odd-s0]  cpu-sim" in told
    assert "after: poison: 3 elements of `y` \\x1b[31mwere never written" in told
    assert "not checked  2 cells of AlibiFwdOp: it has no recipe" in told
    assert "Failed: 4 cells of 3 ops on cpu-sim: 1 unchanged, 1 regression, 2 not checked" in told.replace("\n", " ")
    assert all(len(line) <= width for line in told.splitlines() if "[" not in line and "not checked" not in line)


def cell(op: str, name: str, verdict: Verdict, reason: str) -> CellResult:
    figures = (FIGURES,) if verdict == "within-tolerance" else ()
    return CellResult(id=f"{op}[{name}]", op=op, verdict=verdict, device="cpu-sim", reason=reason, figures=figures)


def test_every_op_is_shown_and_what_is_said_twice_once(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [cell("AFwdOp", f"r{number}", "regression", "it raises") for number in range(20)]
    wrong += [cell("BFwdOp", f"r{number}", "regression", f"off by {number}") for number in range(5)]
    wrong += [cell("CFwdOp", "r", "regression", "it raises")]
    lines = shown(results(*wrong), 120, monkeypatch).splitlines()
    assert [line for line in lines if line.startswith(("regression", "..."))] == [
        "regression  AFwdOp[r0] and 19 more cells  cpu-sim",
        *(f"regression  BFwdOp[r{number}]  cpu-sim" for number in range(3)),
        "... and 2 more cells of BFwdOp: regression",
        "regression  CFwdOp[r]  cpu-sim",
    ]
    assert sum(line.strip() == "it raises" for line in lines) == 2


@pytest.mark.parametrize(("count", "last"), [(6, "line 5"), (8, "... and 2 more")])
def test_a_long_reason_is_cut(monkeypatch: pytest.MonkeyPatch, count: int, last: str) -> None:
    reason = "\n".join(f"line {number}" for number in range(count))
    lines = shown(results(cell("AFwdOp", "r", "crashed", reason)), 120, monkeypatch).splitlines()
    assert [line.strip() for line in lines if line.startswith("    ")][-1] == last


def test_ops_with_other_bits_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [cell("AFwdOp", f"r{number}", "within-tolerance", "bits differ, both are right") for number in range(3)]
    told = shown(results(*cells), 120, monkeypatch)
    says = "within tolerance  3 cells of AFwdOp: bits differ, both are right; at most 0.5 ulp, 25 % of the tolerance"
    assert says in told


def test_notes_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = results(CELLS[0])
    found.header = msgspec.structs.replace(found.header, notes=("AFwdOp: 2 <rows> are gone",))
    assert "note  AFwdOp: 2 <rows> are gone" in shown(found, 120, monkeypatch)
    assert standard_json.loads(json.render(found, 2.0))["notes"] == ["AFwdOp: 2 <rows> are gone"]
    page = html.write_pages(found, tmp_path / "report", 2.0).read_text(encoding="utf-8")
    assert "AFwdOp: 2 &lt;rows&gt; are gone" in page


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (results(CELLS[0]), "Passed"),
        (results(CELLS[2]), "Nothing was checked"),
        (results(CELLS[0], lost=1), "Failed"),
        (results(CELLS[0], CELLS[1]), "Failed"),
    ],
)
def test_nothing_that_did_not_run_is_called_passed(found: Results, word: str) -> None:
    assert text.summary(found, 1.0).startswith(word)


def test_json_has_every_cell_and_the_sum() -> None:
    data = standard_json.loads(json.render(results(*CELLS, lost=1), 2.0))
    assert data["summary"]["regression"] == 1
    assert data["summary"]["cells"] == 5
    assert data["missing"] == ["lost-0"]
    assert [cell["id"] for cell in data["cells"]] == [cell.id for cell in CELLS]
    assert data["cells"][1]["findings"][0]["check"] == "poison"
    assert data["before"] == {"name": "HEAD~1", "commit": "5e1f00d5"}
    assert data["after"] == {"name": "."}
    assert data["renamed"] == {"AlibiFwdOp": "AlibiOp"}


def page_of(found: Results, *earlier: Results) -> Page:
    return Page(html.render(found, 2.0, earlier))


def test_the_page_shows_the_verdict_then_what_failed() -> None:
    page = page_of(results(CELLS[0], CELLS[2], CELLS[1], lost=1))
    assert page.texts("span", "badge failed") == ["Failed"]
    assert page.texts("li") == ["lost-0"]
    sections = [attrs["id"] for attrs in page.attributes("section") if "id" in attrs]
    assert sections == ["SoftmaxFwdOp", "AlibiFwdOp", "NormFwdOp"]
    assert [text.split()[0] for text in page.texts("h2")] == ["Without", *sections]
    assert page.texts("dd")[2] == ("Cells: wrong where it was not before, or it cannot be run any more. Fails the run.")


def test_the_page_escapes_what_ops_print() -> None:
    written = html.render(results(*CELLS), 2.0)
    assert "SoftmaxFwdOp[&lt;b&gt;-float16-odd-s0]" in written
    assert "<b>" not in written
    assert "after is wrong, before was right" in written
    assert "\\x1b[31mwere never written" in written
    assert "<code>HEAD~1</code> (commit <code>5e1f00d5</code>). After: <code>.</code>." in written
    assert "AlibiFwdOp (was AlibiOp)" in written


def test_one_histogram_has_the_errors_before_and_after() -> None:
    before = msgspec.structs.replace(FIGURES, side="before", histogram=(0, 1, 4, 30))
    page = page_of(results(msgspec.structs.replace(CELLS[0], figures=(before, FIGURES))))
    [picture] = page.attributes("svg")
    assert picture["aria-label"] == "Errors of NormFwdOp, before and after"
    sides = [(attrs["class"], attrs["x"], attrs["height"]) for attrs in page.attributes("rect")]
    high, mid, low = "90.0", "36.8", "15.9"
    assert sides == [
        ("after", "2", high),
        ("after", "54", mid),
        ("after", "80", "78.6"),
        ("before", "28", low),
        ("before", "54", mid),
        ("before", "80", "78.6"),
    ]
    assert page.texts("title")[1:3] == ["after: 50 below 1e-12", "after: 4 with an error of 1e-11"]


def test_the_trend_of_an_op_over_runs() -> None:
    """An op that was renamed, one run in which it was not measured, and one with an infinite error."""

    def run(name: str, op: str, *shares: float) -> Results:
        figures = tuple(msgspec.structs.replace(FIGURES, share=share) for share in shares)
        found = results(msgspec.structs.replace(CELLS[0], op=op, figures=figures))
        found.header = msgspec.structs.replace(found.header, after=Version(name=name))
        return found

    runs = [run("v1", "AlibiOp", 0.25), run("v2", "AlibiFwdOp"), run("v3", "AlibiFwdOp", float("inf"))]
    page = page_of(run("v4", "AlibiFwdOp", 0.1, 0.5), *runs)
    assert page.texts("title")[-3:] == ["v1: 25 %", "v3: inf %", "v4: 50 %"]
    assert [(attrs["cx"], attrs["cy"]) for attrs in page.attributes("circle")] == [
        ("8", "37.8"),
        ("64", "8.0"),
        ("92", "26.3"),
    ]
    assert "25 to 50" in page.texts("td")
    assert not page_of(runs[0]).attributes("circle"), "one run is no trend"
