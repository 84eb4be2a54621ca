"""The lists of a backend's YAML sorted, each comment with its item."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.migration import OptionError
from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.aten.migrations.list_order import nearest_order, place_in
from opschema_rules.aten.pack import PACK

YAML = "backend.yaml"
HEAD = "backend: XLA\ncpp_namespace: a\n"


def sort(text: str, *options: str) -> Migrated:
    return migrate_files(PACK, "sort-lists", {YAML: HEAD + text}, options)


def test_items_go_with_their_comments() -> None:
    done = sort("""\
supported:  # by hand
  # All that is lowered.
  - cos
  # Slow.
  - add.Tensor  # fast
  - abs
""")
    assert (
        done.files[YAML]
        == HEAD
        + """\
supported:  # by hand
  # All that is lowered.
  - abs
  # Slow.
  - add.Tensor  # fast
  - cos
"""
    )
    assert done.sites() == [f"{YAML}:3: sort `supported`"]
    assert done.notes() == []


def test_a_comment_that_moves_is_noted() -> None:
    done = sort("supported:\n  - b\n  - c\n  # Slow.\n  - a\n")
    assert done.files[YAML] == HEAD + "supported:\n  # Slow.\n  - a\n  - b\n  - c\n"
    assert done.notes() == [f"{YAML}:5: the comment above `a` went with it"]


def test_no_operator_passes_a_comment_that_heads_others() -> None:
    text = """\
supported:
  - b
  - a
  # Note: the ones below are composite.
  - d
  - c
  # - cosh
  - f
  - e

  - h
  - g
"""
    assert (
        sort(text).files[YAML]
        == HEAD
        + """\
supported:
  - a
  - b
  # Note: the ones below are composite.
  - c
  - d
  # - cosh
  - e
  - f

  - g
  - h
"""
    )


def test_blank_lines_between_all_items_stay_between_them() -> None:
    done = sort("supported:\n  - c\n\n  - mul.out:\n      structured: true\n\n  - a\nsymint: [z, a]\n")
    assert (
        done.files[YAML]
        == HEAD + "supported:\n  - a\n\n  - c\n\n  - mul.out:\n      structured: true\nsymint: [z, a]\n"
    )
    assert done.notes() == [f"{YAML}:10: sort `symint` by hand: it is not a list with an item on each line"]


def test_each_list_keeps_to_its_order() -> None:
    text = "full_codegen:\n  - clamp\n  - _conj_copy\n  - cosh\n  - cos\nsupported:\n  - _b\n  - a\n  - d\n  - c\n"
    assert sort(text).files[YAML] == HEAD + (
        "full_codegen:\n  - clamp\n  - _conj_copy\n  - cos\n  - cosh\nsupported:\n  - _b\n  - a\n  - c\n  - d\n"
    )


def test_one_list_in_the_order_that_is_asked_for() -> None:
    text = "full_codegen:\n  - b\n  - _a\nsupported:\n  - d\n  - _c\n  - _b\n"
    done = sort(text, "section=supported", "order=letters")
    assert done.files[YAML] == HEAD + "full_codegen:\n  - b\n  - _a\nsupported:\n  - _b\n  - _c\n  - d\n"


@pytest.mark.parametrize(
    "text", ["supported:\n  - a\n  - b\n", "supported: []\n", "supported:\n", "supported:\n  - 1\n  - a\n"]
)
def test_what_is_in_order_is_no_site(text: str) -> None:
    done = sort(text)
    assert (done.files[YAML], done.sites(), done.notes()) == (HEAD + text, [], [])


def test_a_list_that_is_not_there_is_refused() -> None:
    with pytest.raises(OptionError, match="-o section=suported: there is no such list; did you mean `supported`"):
        sort("supported:\n  - a\n", "section=suported")


def test_the_order_of_a_list_is_told_by_most_of_its_names() -> None:
    assert nearest_order([["_b", "a", "c"]]) == "ascii"
    assert nearest_order([["a", "_b", "c", "aa"]]) == "letters"
    assert nearest_order([[], ["a"]]) == "ascii"


def test_a_new_name_goes_to_its_place_in_a_list_that_is_mostly_sorted() -> None:
    assert place_in(["acos", "acosh", "abs", "all", "any"], "add", "ascii") == 2
    assert place_in(["b", "c"], "a", "ascii") == 0
    assert place_in(["b", "b", "c"], "b", "ascii") == 2
    assert place_in(["d", "c", "b", "a"], "b", "ascii") == 4
    assert place_in([], "b", "ascii") == 0
