"""FlagGems at a pinned commit: findings that were judged, mistakes that are reported, and changes that are not.

``benchmarks.corpus`` does not unpack it; any checkout of that commit will do.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opschema_rules.torchlib.pack import PACK
from tests.corpus import flaggems_changes as flaggems
from tests.corpus.judging import findings
from tests.corpus.seeded import Change, Tree

COMMIT = "ed2508bc"

JUDGED = Path(__file__).with_name("judged") / f"flaggems-{COMMIT}.txt"
"""Findings that were read in the source and compared with torch's schemas; all are true."""

TOLERATED = 1
"""Mistakes that may be missed: an order of parameters is right for an older torch."""


@pytest.fixture(scope="module")
def root() -> Path:
    folder = Path(os.environ["OPSCHEMA_CORPUS"]) / f"flaggems-{COMMIT}"
    if not folder.is_dir():
        pytest.skip(f"{folder.name} is not below OPSCHEMA_CORPUS")
    return folder.resolve()


@pytest.fixture(scope="module")
def tree(root: Path) -> Tree:
    return Tree(root, PACK, [".py", ".cpp", ".h"])


def test_what_is_found_is_what_was_judged(root: Path) -> None:
    judged = JUDGED.read_text(encoding="utf-8").splitlines()
    assert [item for item in findings(PACK, root) if item.startswith(("REG117", "REG509", "REG510"))] == judged


def new(tree: Tree, changes: list[flaggems.Fault]) -> list[tuple[str, str, str]]:
    texts = flaggems.changed(tree.texts, changes)
    return tree.new([Change(path, text, 1) for path, text in texts.items()])


def test_mistakes(tree: Tree) -> None:
    table = flaggems.Tree(tree.texts)
    faults = list(flaggems.faults(table, flaggems.Chooser(table)))
    found = new(tree, faults)
    missed = [
        (item.kind, item.operators)
        for item in faults
        if not any(flaggems.names(message, name) for _, _, message in found for name in item.operators)
    ]
    assert len(faults) >= 40
    assert len(missed) <= TOLERATED, missed


def test_right_changes(tree: Tree) -> None:
    table = flaggems.Tree(tree.texts)
    changes = list(flaggems.harmless(table, flaggems.Chooser(table)))
    assert len(changes) >= 10
    assert new(tree, changes) == []
