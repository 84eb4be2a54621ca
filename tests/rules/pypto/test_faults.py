"""A fault of each kind in the fixture."""

from __future__ import annotations

from pathlib import Path

from tests.rules.pypto.faults import missed, read_tree

ORCHKIT = Path(__file__).parents[3] / "fixtures" / "orchkit"


def test_a_fault_of_each_kind_is_reported() -> None:
    assert missed(read_tree(ORCHKIT), 1) == []
