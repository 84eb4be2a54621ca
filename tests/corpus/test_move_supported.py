"""`move-supported` on commits of pytorch/xla that moved operators by hand: the same data, and no line but theirs.

``aten/xla-moves/REV/before`` and ``after`` hold the backend's YAML at the commit's parent and at the commit.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from opschema_cli.testing import migrate_files
from opschema_rules.aten.pack import PACK

KERNELS, MARKS = ("full_codegen", "supported", "autograd"), ("symint", "ir_gen")
LISTS = (*KERNELS, *MARKS)

Lists = Mapping[str, Sequence[str]]

BESIDES = {
    "11602fc62f": {"-": {"relu_"}},
    "1f8a7ee160": {"-": {"bitwise_and.Scalar", "bitwise_or.Scalar", "bitwise_xor.Scalar"}},
    "6bfcd242b2": {"-": {"addcdiv_"}},
    "76df13008a": {"-": {"elu_"}},
    "93ed11ba0f": {"+": {"addcdiv_"}},
    "9c01c3ca14": {"-": {"addcdiv_"}},
    "c4e2622ab4": {"-": {"tril_", "triu_"}},
}
"""What a commit added to lists or took out of them besides, which is not a move."""

IN_PLACE = 52
"""In how many of the 67 commits each operator is put where the person put it; the lists are sorted but for a few."""


class Move(NamedTuple):
    """An operator that a commit moved; ``source`` is empty for one that got a mark, and the mark for one that lost it."""

    name: str
    source: str
    goal: str


class Replay(NamedTuple):
    """The lists of the commit, what the migration made of those of its parent, and the lines that it changed."""

    human: Lists
    ours: Lists
    moved: Sequence[Move]
    lines: Counter[str]


@pytest.fixture
def moves(corpus: Path) -> list[Path]:
    folder = corpus / "aten/xla-moves"
    if not folder.is_dir():
        pytest.skip("aten/xla-moves is not below OPSCHEMA_CORPUS")
    return sorted(folder.iterdir())


def lists_of(text: str) -> dict[str, list[str]]:
    data = yaml.safe_load(text)
    return {name: list(data.get(name) or []) for name in LISTS}


def moves_of(before: Lists, after: Lists) -> Iterator[Move]:
    """Each operator that left one list for another, and each that got or lost a mark."""
    listed = {name for names in before.values() for name in names}
    for goal in LISTS:
        for name in (item for item in after[goal] if item not in before[goal] and item in listed):
            left = [item for item in KERNELS if name in before[item] and name not in after[item]]
            yield from (Move(name, source, goal) for source in ([""] if goal in MARKS else left))
    for mark in MARKS:
        for name in (item for item in before[mark] if item not in after[mark]):
            yield from (Move(name, mark, goal) for goal in KERNELS if name in after[goal])


def replay(folder: Path) -> Replay:
    root = folder / "before"
    files = {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*.yaml")}
    ((path, text),) = files.items()
    (human,) = (lists_of(item.read_text()) for item in folder.glob("after/**/*.yaml"))
    moved = list(moves_of(lists_of(text), human))
    for source, goal in dict.fromkeys((move.source, move.goal) for move in moved):
        ops = [move.name for move in moved if move[1:] == (source, goal)]
        told = [f"ops={','.join(ops)}", f"to={goal}", *([f"from={source}"] if source else [])]
        files = migrate_files(PACK, "move-supported", files, told).files
    changed = difflib.unified_diff(text.splitlines(), files[path].splitlines(), lineterm="", n=0)
    lines = Counter(line for line in changed if not line.startswith(("---", "+++", "@@")))
    return Replay(human, lists_of(files[path]), moved, lines)


def asked_for(moved: Sequence[Move], lines: Counter[str]) -> Counter[str]:
    """The lines that the moves are, and the keys of lists that were not there."""
    found = Counter(line for line in lines if line in {f"+{name}:" for name in LISTS})
    for name, source, _ in moved:
        found[f"+  - {name}"] += source not in MARKS
        found[f"-  - {name}"] += bool(source)
    return +found


def items_of(lists: Lists) -> set[tuple[str, str]]:
    return {(section, name) for section, names in lists.items() for name in names}


def test_the_same_data_and_no_other_line(moves: list[Path]) -> None:
    in_place = 0
    for folder in moves:
        done = replay(folder)
        besides = BESIDES.get(folder.name, {})
        assert {name for _, name in items_of(done.human) - items_of(done.ours)} == besides.get("+", set()), folder.name
        assert {name for _, name in items_of(done.ours) - items_of(done.human)} == besides.get("-", set()), folder.name
        assert done.lines == asked_for(done.moved, done.lines), folder.name
        extra = set().union(*besides.values())
        in_place += _without(done.human, extra) == _without(done.ours, extra)
    assert (len(moves), sum(folder.name not in BESIDES for folder in moves), in_place) == (67, 60, IN_PLACE)


def _without(lists: Lists, names: set[str]) -> Lists:
    return {section: [name for name in found if name not in names] for section, found in lists.items()}
