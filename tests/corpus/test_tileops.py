"""TileOPs itself, at the commits that mended by hand what opschema finds."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.corpus import CARRIER_FIX, FIXES, HEAD, HISTORY
from opschema_cli.lint.diagnostic import Diagnostic, Place, Severity
from opschema_cli.testing import Linted

Lint = Callable[..., Linted]


def errors(linted: Linted) -> list[str]:
    return [
        f"{item.code} {item.place.path}:{linted.position(item.place).line} {item.message}"
        for item in linted.diagnostics
        if item.severity is Severity.ERROR
    ]


NEAR = 12
"""Lines between a finding and the change that mends it: both lie in one entry, or in one signature."""


def changed_lines(before: Path, after: Path) -> list[int]:
    """The lines of ``before`` that the other version changes; all of them if the file is gone."""
    old = before.read_text().splitlines()
    if not after.is_file():
        return list(range(1, len(old) + 1))
    matcher = difflib.SequenceMatcher(None, old, after.read_text().splitlines(), autojunk=False)
    changes = [(start, end) for tag, start, end, _, _ in matcher.get_opcodes() if tag != "equal"]
    return [line + 1 for start, end in changes for line in range(start, max(end, start + 1))]


def is_mended(linted: Linted, item: Diagnostic, before: Path, after: Path) -> bool:
    """Whether the commit changed the finding's place, or another side of it."""
    places: list[Place] = [item.place, *(other.place for other in item.related)]
    return any(
        abs(linted.position(place).line - line) <= NEAR
        for place in places
        if (before / place.path).is_file()
        for line in changed_lines(before / place.path, after / place.path)
    )


def error_items(linted: Linted) -> list[Diagnostic]:
    return [item for item in linted.diagnostics if item.severity is Severity.ERROR]


@pytest.mark.parametrize("commit", FIXES)
def test_a_fault_is_found_where_its_fix_changes_the_tree_and_nowhere_after_it(
    commit: str, lint: Lint, corpus: Path
) -> None:
    code = FIXES[commit]
    before = lint(f"tileops-{commit}-parent", code, latest=True)
    after = lint(f"tileops-{commit}", code, latest=True)
    left = {(item.message, item.ops) for item in error_items(after)}
    mended = [item for item in error_items(before) if (item.message, item.ops) not in left]
    assert mended
    for item in mended:
        assert is_mended(before, item, corpus / f"tileops-{commit}-parent", corpus / f"tileops-{commit}"), item


def test_the_carriers_are_found_before_the_commit_that_dropped_them(lint: Lint) -> None:
    found = lint(f"tileops-{CARRIER_FIX}-parent", "CAR").diagnostics
    paths = {item.place.path for item in found}
    assert "tileops/manifest/elementwise_generative.yaml" in paths
    assert {"tileops/ops/elementwise/alibi.py", "tileops/ops/elementwise/sinusoidal.py"} <= paths
    assert "tileops/ops/elementwise/_base.py" in paths
    assert "scripts/validate_manifest.py" in paths


@pytest.mark.parametrize("commit", [CARRIER_FIX, HEAD])
def test_no_carrier_is_found_after_it(commit: str, lint: Lint) -> None:
    assert not lint(f"tileops-{commit}", "CAR").diagnostics


@pytest.mark.parametrize("commit", sorted({*HISTORY, HEAD}))
def test_every_error_across_the_history_is_one_that_was_judged_true(commit: str, lint: Lint) -> None:
    judged = Path(__file__).with_name("judged").joinpath(f"{commit}.txt")
    known = set(judged.read_text().splitlines()) if judged.is_file() else set()
    assert sorted(set(errors(lint(f"tileops-{commit}"))) - known) == []
