"""How edits of one round come together."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite, merge
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Edit, EditConflictError, Span, apply_edits

TEXT = "abcdef  ij"


def edit(start: int, end: int, text: str = "") -> Edit:
    return Edit(Span(start, end), text)


@pytest.mark.parametrize(
    ("edits", "result"),
    [
        ([edit(0, 2), edit(0, 2)], "cdef  ij"),
        ([edit(0, 3), edit(2, 5)], "f  ij"),
        ([edit(0, 3), edit(3, 5)], "f  ij"),
        ([edit(0, 5), edit(1, 2, "x"), edit(3, 3, "y")], "f  ij"),
        ([edit(1, 3), edit(1, 1, "x")], "axdef  ij"),
        ([edit(1, 3), edit(3, 3, "x")], "axdef  ij"),
        ([edit(1, 3), edit(3, 4, "x")], "axef  ij"),
        ([edit(1, 3, "y"), edit(1, 1, "x")], "axydef  ij"),
        ([edit(4, 9, "x"), edit(6, 8)], "abcdxj"),
    ],
)
def test_edits_that_go_together(edits: list[Edit], result: str) -> None:
    assert apply_edits(TEXT, merge(TEXT, edits)) == result
    assert apply_edits(TEXT, merge(TEXT, reversed(edits))) == result


def test_insertions_at_one_place_follow_each_other() -> None:
    edits = [edit(1, 1, "y"), edit(1, 1, "x"), edit(1, 3), edit(1, 1, "y")]
    assert apply_edits(TEXT, merge(TEXT, edits)) == "ayxdef  ij"


@pytest.mark.parametrize(
    "edits",
    [
        [edit(0, 3, "x"), edit(2, 5, "y")],
        [edit(0, 3, "x"), edit(2, 5)],
        [edit(0, 3), edit(2, 5, "y")],
        [edit(0, 5, "x"), edit(1, 2)],
        [edit(0, 5, "x"), edit(1, 1, "y")],
        [edit(0, 2, "x"), edit(0, 2, "y")],
    ],
)
def test_edits_that_overlap(edits: list[Edit]) -> None:
    with pytest.raises(EditConflictError):
        merge(TEXT, edits)
    with pytest.raises(EditConflictError):
        merge(TEXT, reversed(edits))


def test_a_refusal_takes_back_what_was_marked_with_it() -> None:
    rewrite = Rewrite(PythonTree.parse("a = 1\nb = 2\n"))
    rewrite.remove(rewrite.tree.statement(rewrite.tree.names("a")[0]))

    def mark() -> None:
        with rewrite.all_or_nothing():
            rewrite.remove(rewrite.tree.statement(rewrite.tree.names("b")[0]))
            rewrite.replace(Span(0, 1), "x")
            raise Refused([Problem(0, "no")])

    with pytest.raises(Refused):
        mark()
    assert rewrite.text() == "b = 2\n"
    assert rewrite.is_gone(rewrite.tree.names("a")[0])
    assert not rewrite.is_gone(rewrite.tree.names("b")[0])
