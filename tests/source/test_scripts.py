"""Which files no process loads together."""

from __future__ import annotations

import pytest

from opschema_cli.source.scripts import are_apart


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ("examples/a/op.py", "examples/b/op.py", True),
        ("examples/a/op.py", "tests/op.py", True),
        ("examples/op.py", "examples/a/op.py", False),
        ("examples/a/op.py", "examples/a/other.py", False),
        ("kit/op.py", "examples/a/op.py", False),
        ("kit/a/op.py", "kit/b/op.py", False),
        ("latest/a/op.py", "latest/b/op.py", False),
    ],
)
def test_are_apart(first: str, second: str, apart: bool) -> None:
    assert are_apart(first, second) is apart
    assert are_apart(second, first) is apart
