"""The baseline: what it holds, what wakes a finding up, and what becomes of entries that are fixed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.baseline import apply_baseline, pruned, read_baseline, render_baseline, stale_findings
from opschema_cli.source.text import Source
from opschema_cli.testing import lint_files
from tests.toypack import PACK

Held = Callable[[str], tuple[list[str], int, list[str]]]


@pytest.fixture
def held(tmp_path: Path) -> Held:
    """Lint a text against the baseline of the first text that was given."""

    def held(text: str) -> tuple[list[str], int, list[str]]:
        linted = lint_files([PACK], {"a.toy.yaml": text})
        path = tmp_path / "baseline.json"
        if not path.exists():
            path.write_text(render_baseline(linted.diagnostics, linted.project.source))
        kept, count, stale = apply_baseline(linted.diagnostics, read_baseline(path), linted.project.source)
        return [item.code for item in kept], count, [entry.code for entry in stale]

    return held


def test_what_is_in_it_is_not_reported(held: Held) -> None:
    text = "add: {dtype: f8}\nmul: {doc: LOUD}\n"
    assert held(text) == ([], 3, [])
    assert held(text) == ([], 3, [])


def test_edits_elsewhere_and_white_space_wake_nothing_up(held: Held) -> None:
    held("add:\n  dtype: f8\n  doc: LOUD\n")
    assert held("# A header.\n\nnew: {doc: x}\nadd:\n    dtype:   f8\n    doc: LOUD\n") == ([], 2, [])


def test_an_edit_of_the_line_itself_does(held: Held) -> None:
    held("add:\n  dtype: f8\n  doc: LOUD\n")
    assert held("add:\n  dtype: f9\n  doc: LOUD\n") == (["TOY103"], 1, ["TOY103"])


def test_so_many_of_one_kind_and_no_more(held: Held) -> None:
    entry = "  dtype: f8\n  doc: x\n"
    two = f"a:\n{entry}b:\n{entry}"
    assert held(two) == ([], 2, [])
    assert held(f"{two}c:\n{entry}") == (["TOY103"], 2, [])
    assert held(f"a:\n{entry}") == ([], 1, ["TOY103"])


def test_another_file_or_rule_is_new(held: Held) -> None:
    held("add: {doc: x, dtype: f8}\n")
    assert held("add: {dtype: f8}\n") == (["TOY101", "TOY103"], 0, ["TOY103"])


def test_the_file_has_a_line_for_each_kind_sorted_and_ends_with_a_line_end() -> None:
    files = {"b.toy.yaml": "add: {}\n", "a.toy.yaml": "b:\n  doc: x\n  dtype: f8\nc:\n  doc: LOUD\n  dtype: f8\n"}
    linted = lint_files([PACK], files)
    text = render_baseline(linted.diagnostics, linted.project.source)
    lines = text.splitlines()
    assert (lines[0], lines[-1], text[-1]) == ('{"version": 1, "findings": [', "]}", "\n")
    entries = [json.loads(line.rstrip(",")) for line in lines[1:-1]]
    assert [(entry["path"], entry["code"], entry["count"]) for entry in entries] == [
        ("a.toy.yaml", "TOY102", 1),
        ("a.toy.yaml", "TOY103", 2),
        ("b.toy.yaml", "TOY101", 1),
    ]
    assert json.loads(text)["version"] == 1


def test_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(render_baseline([], lambda path: None))
    assert read_baseline(tmp_path / "b.json").findings == []


def test_a_stale_entry_is_found_at_its_line(held: Held, tmp_path: Path) -> None:
    held("add: {dtype: f8}\nmul: {doc: LOUD}\n")
    text = (tmp_path / "baseline.json").read_text()
    linted = lint_files([PACK], {"a.toy.yaml": "add: {dtype: f8}\nmul: {doc: quiet}\n"})
    _, _, stale = apply_baseline(linted.diagnostics, read_baseline(tmp_path / "baseline.json"), linted.project.source)
    [finding] = stale_findings(stale, "baseline.json", text)
    assert finding.code == "SUP003"
    assert finding.message == "TOY102 in a.toy.yaml is fixed; update the baseline with `opschema baseline`"
    line = Source("baseline.json", text).line_text(Source("", text).position(finding.place.span.start).line)
    assert json.loads(line.rstrip(","))["code"] == "TOY102"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not a baseline"),
        (b"[]", "not a baseline"),
        (b"\xff\xfe", "not a baseline"),
        (b'{"version": 1, "findings": [{"code": 3}]}', "not a baseline"),
        (b'{"version": 1, "findings": ' + b"[" * 100_000, "not a baseline"),
        (b'{"version": 1, "findings": [], "x": ' + b"[" * 100_000, "not a baseline"),
        (b'{"version": 2, "findings": []}', "baseline version 2 is not known; `opschema baseline` writes a new one"),
    ],
)
def test_what_is_no_baseline_says_so(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "b.json").write_bytes(content)
    with pytest.raises(OpschemaError, match=message):
        read_baseline(tmp_path / "b.json")


def test_a_missing_one_says_how_to_write_it(tmp_path: Path) -> None:
    with pytest.raises(OpschemaError, match="no baseline; `opschema baseline` writes one"):
        read_baseline(tmp_path / "b.json")


def test_entries_on_lines_that_are_removed_are_pruned(tmp_path: Path) -> None:
    text = "add: {doc: LOUD}\nmul: {doc: LOUD, dtype: f8}\n"
    linted = lint_files([PACK], {"a.toy.yaml": text, "b.toy.yaml": text})
    (tmp_path / "baseline.json").write_text(render_baseline(linted.diagnostics, linted.project.source))
    baseline = read_baseline(tmp_path / "baseline.json")
    kept = pruned(baseline, {"a.toy.yaml": "# moved down\n  mul:  {doc: LOUD, dtype: f8}\n", "b.toy.yaml": None})
    assert {entry.path for entry in kept} == {"a.toy.yaml"}
    assert len({entry.line for entry in kept}) == 1
    assert pruned(baseline, {"c.toy.yaml": "x"}) == baseline.findings
