"""FlyDSL and simpler with 60 mistakes each that a maintainer could make, and with changes that only look wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opschema_rules.flydsl.pack import PACK as FLYDSL
from opschema_rules.pypto.pack import PACK as PYPTO
from tests.corpus import flydsl_changes, pypto_changes, pypto_more_changes
from tests.corpus.seeded import Tree, chosen, outcomes

EACH = 4
"""Mistakes of a kind, each in a file of its own; some kinds have fewer places."""

RIGHT = 2
"""Right changes of a kind."""


@pytest.fixture(scope="module")
def flydsl() -> Tree:
    return tree("flydsl/11c4174d")


@pytest.fixture(scope="module")
def simpler() -> Tree:
    return tree("pypto/simpler-6ebaf7715")


def tree(name: str) -> Tree:
    root = Path(os.environ["OPSCHEMA_CORPUS"]) / name
    if not root.is_dir():
        pytest.skip(f"{name} is not below OPSCHEMA_CORPUS")
    pack, suffixes = (FLYDSL, [".py"]) if name.startswith("flydsl") else (PYPTO, [".py", ".cpp", ".h"])
    return Tree(root.resolve(), pack, suffixes)


def test_mistakes_in_flydsls_kernels(flydsl: Tree) -> None:
    changes = {kind: chosen(make, flydsl.texts, EACH) for kind, make in flydsl_changes.FAULTS.items()}
    found = outcomes(flydsl, [item for items in changes.values() for item in items], flydsl_changes.group)
    missed = [
        f"{kind}: {item.path}:{item.line}" for kind, items in changes.items() for item in items if not found[item]
    ]
    assert len(found) >= 60
    assert len(missed) <= 7, missed


def test_mistakes_in_simplers_programs(simpler: Tree) -> None:
    changes = {kind: chosen(make, simpler.texts, EACH) for kind, make in pypto_changes.FAULTS.items()}
    found = outcomes(simpler, [item for items in changes.values() for item in items], pypto_changes.group)
    missed = [
        f"{kind}: {item.path}:{item.line}" for kind, items in changes.items() for item in items if not found[item]
    ]
    assert len(found) >= 60
    assert len(missed) <= 6, missed


def test_more_mistakes_in_simplers_programs(simpler: Tree) -> None:
    changes = {kind: chosen(make, simpler.texts, EACH) for kind, make in pypto_more_changes.FAULTS.items()}
    found = outcomes(simpler, [item for items in changes.values() for item in items], pypto_changes.group)
    missed = [
        f"{kind}: {item.path}:{item.line}" for kind, items in changes.items() for item in items if not found[item]
    ]
    assert len(found) >= 56
    assert len(missed) <= 5, missed


def test_right_changes_of_flydsls_kernels(flydsl: Tree) -> None:
    changes = [item for make in flydsl_changes.RIGHT.values() for item in chosen(make, flydsl.texts, RIGHT)]
    found = outcomes(flydsl, changes, flydsl_changes.group)
    assert len(changes) >= 15
    assert {(item.path, item.line): new for item, new in found.items() if new} == {}


def test_right_changes_of_simplers_programs(simpler: Tree) -> None:
    kinds = {**pypto_changes.RIGHT, **pypto_more_changes.RIGHT}
    changes = [item for make in kinds.values() for item in chosen(make, simpler.texts, RIGHT)]
    found = outcomes(simpler, changes, pypto_changes.group)
    assert len(changes) >= 15
    assert {(item.path, item.line): new for item, new in found.items() if new} == {}
