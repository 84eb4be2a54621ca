"""One round of codemods over a text: what comes out, or why it was refused."""

from __future__ import annotations

import ast
from collections.abc import Callable
from textwrap import dedent

import pytest

from opschema_cli.migrate.codemods.rewrite import Refused, Rewrite
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Source

Mark = Callable[[Rewrite], None]


def rewritten(text: str, mark: Mark) -> str:
    """The text after the round, which must be Python."""
    rewrite = Rewrite(PythonTree.parse(text))
    mark(rewrite)
    result = rewrite.text()
    ast.parse(result)
    return result


def check(before: str, mark: Mark, after: str) -> None:
    """Hold a round over an indented example to what is expected; the expectation must be Python too."""
    ast.parse(dedent(after))
    assert rewritten(dedent(before), mark) == dedent(after)


def refused(text: str, mark: Mark) -> list[tuple[int, str]]:
    """Line and reason of each problem; the rewrite must be left as it was."""
    text = dedent(text)
    rewrite = Rewrite(PythonTree.parse(text))
    with pytest.raises(Refused) as caught:
        mark(rewrite)
    assert rewrite.edits() == []
    return [(Source("", text).position(problem.offset).line, problem.reason) for problem in caught.value.problems]
