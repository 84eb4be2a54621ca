"""The lines that two texts share: what is matched, that applying the rest gives the new text, and in how much time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opschema_cli.reporters.line_diff import LineMatcher
from opschema_cli.reporters.unified import unified_diff
from tests.scaling import Work, check_linear

LINES = st.lists(st.sampled_from(["", "a", "b", "c", "}", "d = 1", "e = 2"]), max_size=30)


@given(LINES, LINES)
def test_the_opcodes_turn_the_old_text_into_the_new_one(old: list[str], new: list[str]) -> None:
    made: list[str] = []
    at = (0, 0)
    for kind, i1, i2, j1, j2 in LineMatcher(old, new).get_opcodes():
        assert (i1, j1) == at, "nothing is left out"
        assert kind != "equal" or old[i1:i2] == new[j1:j2]
        made += old[i1:i2] if kind == "equal" else new[j1:j2]
        at = (i2, j2)
    assert at == (len(old), len(new))
    assert made == new


@given(LINES, st.data())
def test_a_text_with_lines_added_keeps_all_its_own(old: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(old)))
    new = [*old[:at], "new", *old[at:]]
    assert sum(block.size for block in LineMatcher(old, new).get_matching_blocks()) == len(old)


FIRST = ["def first(x):", "    if x:", "        return 1", "    return 0", "", ""]
SECOND = ["def second(y):", "    while y:", "        y -= 1", "    return y", "", ""]
ADDED = ["def added(x):", "    if x:", "        return 1", "    return 2", "", ""]


def test_a_function_put_between_two_others_is_one_block() -> None:
    new = [*FIRST, *ADDED, *SECOND]
    changes = [code for code in LineMatcher([*FIRST, *SECOND], new).get_opcodes() if code[0] != "equal"]
    assert [(kind, new[j1:j2]) for kind, _, _, j1, j2 in changes] == [("insert", ADDED)]


def test_functions_that_change_places_are_one_block_that_goes_and_one_that_comes() -> None:
    codes = LineMatcher([*FIRST, *SECOND], [*SECOND, *FIRST]).get_opcodes()
    assert sorted(kind for kind, *_ in codes if kind != "equal") == ["delete", "insert"]


def test_lines_that_are_nowhere_unique_are_matched_too() -> None:
    codes = LineMatcher(list("xaabbaaby"), list("paabbbaabbq")).get_opcodes()
    assert sum(i2 - i1 for kind, i1, i2, _, _ in codes if kind == "equal") >= 6


@given(LINES, LINES)
def test_git_applies_the_diff(tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str]) -> None:
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    if before == after or not before or not after:
        return
    folder = tmp_path_factory.mktemp("apply")
    (folder / "f").write_text(before)
    diff = "".join(f"{line}\n" for line in unified_diff("f", before, after))
    subprocess.run(["git", "apply", "-"], cwd=folder, input=diff.encode(), check=True, capture_output=True)
    assert Path(folder, "f").read_text() == after


def _work(size: int) -> Work:
    old = [f"line {number % (size // 2)}" for number in range(size)]
    new = [line for number, line in enumerate(old) if number % 5]
    return lambda: LineMatcher(old, new).get_opcodes()


def test_time_grows_with_the_length_of_the_texts() -> None:
    check_linear(_work, 5_000)
