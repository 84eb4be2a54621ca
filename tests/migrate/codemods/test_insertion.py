"""An element that is written into a list between commas; dropping it restores the text."""

from __future__ import annotations

import ast

import libcst as cst
import pytest

from opschema_cli.migrate.codemods.insertion import insert_element
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.source.python_tree import PythonTree


def call_of(tree: PythonTree) -> cst.Call:
    return tree.calls("f")[0]


@pytest.mark.parametrize(
    ("before", "index", "after"),
    [
        ("f()", 0, "f(x)"),
        ("f(a)", 0, "f(x, a)"),
        ("f(a)", 1, "f(a, x)"),
        ("f(a,)", 1, "f(a, x,)"),
        ("f(a,b)", 1, "f(a,x, b)"),
        ("f((a), *b, c=(1))", 1, "f((a), x, *b, c=(1))"),
        ("f(\n    a,\n)", 0, "f(\n    x,\n    a,\n)"),
        ("f(\n    a,\n)", 1, "f(\n    a,\n    x,\n)"),
        ("f(\n    a\n)", 1, "f(\n    a,\n    x\n)"),
        ("f(\n    a  # one\n)", 1, "f(\n    a,  # one\n    x\n)"),
        ("f(\n    a,  # one\n    # of b\n    b,\n)", 1, "f(\n    a,  # one\n    x,\n    # of b\n    b,\n)"),
        ("f(\n    # of a\n    a,\n)", 0, "f(\n    x,\n    # of a\n    a,\n)"),
        ("f(\n    a, b\n)", 2, "f(\n    a, b, x\n)"),
        ("f(\n    a, b,  # both\n)", 2, "f(\n    a, b, x,  # both\n)"),
        ("f(\n    a, b,\n    c)", 2, "f(\n    a, b,\n    x,\n    c)"),
        ("f(\n    a,\n    b)", 2, "f(\n    a,\n    b, x)"),
        ("f(a,\n  b)", 1, "f(a,\n  x,\n  b)"),
        ("f(a, \\\n  b)", 1, "f(a, \\\n  x, b)"),
        ("f(\n\ta,\n\n\tb,\n)", 1, "f(\n\ta,\n\n\tx,\n\tb,\n)"),
        ("f(\r\n  a,\r\n)", 1, "f(\r\n  a,\r\n  x,\r\n)"),
        ("f(\n    g(\n        1\n    ),\n)", 1, "f(\n    g(\n        1\n    ),\n    x,\n)"),
    ],
)
def test_an_argument_and_back(before: str, index: int, after: str) -> None:
    rewrite = Rewrite(PythonTree.parse(before + "\n"))
    call = call_of(rewrite.tree)
    insert_element(rewrite, call.args, index, "x", rewrite.tree.span(call).end - 1)
    text = rewrite.text()
    ast.parse(text)
    assert text == after + "\n"
    back = Rewrite(PythonTree.parse(text))
    back.drop(call_of(back.tree).args, index)
    assert back.text() == before + "\n"
