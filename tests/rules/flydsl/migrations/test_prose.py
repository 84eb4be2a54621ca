"""Removal of the text that mentions a name."""

from __future__ import annotations

import pytest

from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import apply_edits
from opschema_rules.flydsl.migrations.prose import trimmed, without


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Tests for the key and the ``mark`` API.", "Tests for the key."),
        ("Keys, shapes, and `mark()`.", "Keys, shapes."),
        ("The key of a tensor (no ``mark`` calls).", "The key of a tensor."),
        ("One. Use mark(dims=[0]) here. Two.", "One. Two."),
        ("Use mark first.  Then two.\nThree.", "Then two.\nThree."),
        ("One.\n\nUse\nmark. Or mark.\n\nTwo.", "One.\n\nTwo."),
        ("One, as e.g. mark does. Two.", "Two."),
        ("mark and remark.", ""),
    ],
)
def test_what_speaks_of_it_goes(before: str, after: str) -> None:
    assert without(before, "mark") == after


@pytest.mark.parametrize("text", ["Remarks.", "mark_layout, unmark, marks", ""])
def test_other_words_stay(text: str) -> None:
    assert without(text, "mark") is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n# One. Use mark.\ny = 2\n", "x = 1\n# One.\ny = 2\n"),
        ("x = 1\n\n# -----\n# mark: pins\n# -----\n\n\ny = 2\n", "x = 1\n\ny = 2\n"),
        ("x = 1  # mark it\n", "x = 1  # mark it\n"),
        ('x = """\n# mark\n"""\n', 'x = """\n# mark\n"""\n'),
        ('def f():\n    """mark"""\n', 'def f():\n    """mark"""\n'),
        ('def f():\n    """Pins. As mark does.\n    """\n', 'def f():\n    """Pins.\n    """\n'),
        ("    \n# Use\r\n# mark. Two\r\n# lines.\r\nx = 1\r\n", "    \n# Two\r\n# lines.\r\nx = 1\r\n"),
    ],
)
def test_comments_and_docstrings_are_trimmed(before: str, after: str) -> None:
    edits, places = trimmed(PythonTree.parse(before), "x.py", "mark")
    assert apply_edits(before, edits) == after
    assert len(places) == len(edits) == (before != after)
