"""What people and programs are shown of a verification."""

from __future__ import annotations

import io
import json as standard_json
from pathlib import Path

import pytest

from opschema_cli.reporters.text import open_console
from opschema_cli.reporters.verification import html, json, text
from opschema_cli.verify.model import CellResult, Figures, Finding
from opschema_cli.verify.results import Header, Results, Version

FIGURES = Figures(side="after", output="y", worst=1e-4, ulps=0.5, kappa=1.5, at=(1, 2), histogram=(50, 0, 4, 30))
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


def test_the_page_shows_histograms_and_escapes_what_ops_print(tmp_path: Path) -> None:
    page = html.write_pages(results(*CELLS), tmp_path / "report", 2.0).read_text(encoding="utf-8")
    assert page.count("<rect") == 4
    assert "SoftmaxFwdOp[&lt;b&gt;-float16-odd-s0]" in page
    assert "<b>" not in page
    assert "after is wrong, before was right" in page
    assert "<code>HEAD~1</code> (commit <code>5e1f00d5</code>). After: <code>.</code>." in page
    assert "AlibiFwdOp (was AlibiOp)" in page
