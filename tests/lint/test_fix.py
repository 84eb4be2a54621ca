"""Fixes: applied until none is left, in all their files or in none, and never to the harm of a file."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import FileEdit, Fix
from opschema_cli.lint.fix import _take, fix_all
from opschema_cli.lint.runner import run
from opschema_cli.project import Project
from opschema_cli.source.text import Edit, Span
from opschema_cli.testing import _prepare, fix_files, lint_files
from tests.toypack import PACK


def fix(files: dict[str, str] | str, *, unsafe: bool = False) -> tuple[dict[str, str], list[str], list[str], int]:
    """The changed texts, the codes that are left, the files left alone, and how many findings were fixed."""
    given = {"a.toy.yaml": files} if isinstance(files, str) else files
    job, project = _prepare([PACK], given, [])
    fixed, outcome, _ = fix_all(
        job, project, run(job, project), lambda texts: Project(project.workspace.with_overlay(texts)), unsafe=unsafe
    )
    return fixed.texts, [item.code for item in outcome.diagnostics], fixed.unsettled, fixed.count


def test_every_safe_fix_is_applied_and_the_rest_is_left() -> None:
    texts, left, alone, count = fix("add: {doc: LOUD, dtype: f8}\nmul: {doc: SHOUT}\nbad: {}\n")
    assert texts == {"a.toy.yaml": "add: {doc: loud, dtype: f8}\nmul: {doc: shout}\nbad: {}\n"}
    assert (left, alone, count) == (["TOY103", "TOY101"], [], 2)


def test_unsafe_fixes_only_if_asked() -> None:
    assert fix("add: {doc: x, dtype: f8}\n")[0] == {}
    assert fix("add: {doc: x, dtype: f8}\n", unsafe=True)[0] == {"a.toy.yaml": "add: {doc: x, dtype: f16}\n"}


def test_nothing_to_fix() -> None:
    assert fix("add: {doc: x}\n") == ({}, [], [], 0)


def test_fixes_that_overlap_are_applied_one_a_round() -> None:
    texts, left, _, count = fix("add: {doc: x, word: start}\n")
    assert (texts, left, count) == ({"a.toy.yaml": "add: {doc: x, word: end}\n"}, [], 2)


def test_a_fix_changes_all_its_files() -> None:
    texts, left, _, count = fix({"a.toy.yaml": "add: {doc: x, twin: b.txt}\n", "b.txt": "x marks\n"})
    assert texts == {"a.toy.yaml": "add: {doc: x, twin: done}\n", "b.txt": "y marks\n"}
    assert (left, count) == ([], 1)


@pytest.mark.parametrize("key", ["flip: a", "grow: x", "breaks: now"])
def test_a_file_whose_fixes_do_not_settle_or_break_it_is_left_as_it_was(key: str) -> None:
    bad = f"add: {{doc: LOUD, {key}}}\n"
    texts, left, alone, count = fix({"a.toy.yaml": bad, "b.toy.yaml": "mul: {doc: SHOUT}\n"})
    assert texts == {"b.toy.yaml": "mul: {doc: shout}\n"}, "the other file's fixes are applied all the same"
    assert alone == ["a.toy.yaml"]
    assert "TOY102" in left
    assert count == 1


def test_a_fix_that_touches_a_file_left_alone_is_applied_in_no_file() -> None:
    files = {"a.toy.yaml": "add: {doc: x, twin: b.toy.yaml}\n", "b.toy.yaml": "mul: {doc: x, flip: a}\n"}
    texts, left, alone, _ = fix(files)
    assert texts == {}
    assert alone == ["b.toy.yaml"]
    assert {"TOY204", "TOY201"} <= set(left)


def test_a_file_that_did_not_parse_before_is_not_blamed_on_a_fix() -> None:
    files = {"a.toy.yaml": "add: {doc: x, twin: b.yaml}\n", "b.yaml": "x: [1\n"}
    assert fix(files)[0] == {"a.toy.yaml": "add: {doc: x, twin: done}\n", "b.yaml": "y: [1\n"}


def test_line_ends_are_kept() -> None:
    assert fix("add:\r\n  doc: LOUD\r\nmul:\n  doc: x\r")[0] == {
        "a.toy.yaml": "add:\r\n  doc: loud\r\nmul:\n  doc: x\r"
    }


def test_fixing_twice_changes_nothing_the_second_time() -> None:
    files = {"a.toy.yaml": "add: {doc: LOUD, word: start}  # opschema: ignore[TOY103]\n"}
    texts, _ = fix_files([PACK], files)
    assert texts == {"a.toy.yaml": "add: {doc: loud, word: end}\n"}
    assert fix_files([PACK], texts)[0] == {}


def test_a_thousand_fixes_of_one_file() -> None:
    text = "".join(f"op{number}: {{doc: LOUD}}\n" for number in range(1000))
    texts, left, _, count = fix(text)
    assert (texts["a.toy.yaml"].count("loud"), left, count) == (1000, [], 1000)


# Which edits go together


def taken(*edits: tuple[int, int, str]) -> list[bool]:
    """Whether each edit of `0123456789` is taken, one fix after the other."""
    project = lint_files([], {"f": "0123456789"}).project
    edits_by_path: dict[str, list[Edit]] = {}
    return [
        _take(project, Fix("t", (FileEdit("f", Edit(Span(start, end), text)),)), edits_by_path, set())
        for start, end, text in edits
    ]


def test_overlapping_edits_exclude_each_other_and_neighbours_do_not() -> None:
    assert taken((2, 5, "x"), (4, 6, "y")) == [True, False]
    assert taken((4, 6, "y"), (2, 5, "x")) == [True, False]
    assert taken((2, 9, "x"), (4, 6, "y")) == [True, False]
    assert taken((4, 6, "x"), (2, 9, "y")) == [True, False]
    assert taken((2, 4, "x"), (4, 6, "y"), (0, 2, "z")) == [True, True, True]


def test_two_insertions_at_one_place_exclude_each_other_for_their_order_is_unknown() -> None:
    assert taken((3, 3, "x"), (3, 3, "y"), (4, 4, "z")) == [True, False, True]
    assert taken((3, 3, "x"), (3, 5, "y")) == [True, False]


def test_the_same_edit_counts_once_for_both_fixes() -> None:
    assert taken((3, 3, "x"), (3, 3, "x"), (3, 5, "y")) == [True, True, False]


def test_a_fix_is_taken_whole_or_not_at_all() -> None:
    project = lint_files([], {"f": "0123456789"}).project
    edits: dict[str, list[Edit]] = {"f": [Edit(Span(4, 6), "x")]}
    two = Fix("t", (FileEdit("f", Edit(Span(0, 1), "a")), FileEdit("f", Edit(Span(5, 7), "b"))))
    assert not _take(project, two, edits, set())
    assert edits == {"f": [Edit(Span(4, 6), "x")]}
    missing = Fix("t", (FileEdit("f", Edit(Span(0, 1), "a")), FileEdit("gone", Edit(Span(0, 0), "b"))))
    assert not _take(project, missing, edits, set())
