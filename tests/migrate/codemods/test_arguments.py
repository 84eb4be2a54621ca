from __future__ import annotations

import libcst as cst
import pytest

from opschema_cli.migrate.codemods.arguments import add_keyword, to_list
from opschema_cli.migrate.codemods.rewrite import Rewrite
from tests.migrate.codemods.rounds import refused, rewritten


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()", "f(x=1)"),
        ("f(a)", "f(a, x=1)"),
        ("f(a,)", "f(a, x=1,)"),
        ("f((a))", "f((a), x=1)"),
        ("f(*a)", "f(*a, x=1)"),
        ("f(\n    a,\n)", "f(\n    a,\n    x=1,\n)"),
        ("f(\n    a\n)", "f(\n    a,\n    x=1\n)"),
        ("f(\n    a,  # why\n)", "f(\n    a,  # why\n    x=1,\n)"),
        ("f(\n    a  # why\n)", "f(\n    a,  # why\n    x=1\n)"),
        ("f(\n    a,\n    # end\n)", "f(\n    a,\n    x=1,\n    # end\n)"),
        ("f(a,\n  b)", "f(a,\n  b,\n  x=1)"),
        ("f(a, **kw)", None),
        ("f(x=2)", None),
        ("f(i for i in a)", None),
        ("f((i for i in a))", "f((i for i in a), x=1)"),
    ],
)
def test_adding_a_keyword(before: str, after: str | None) -> None:
    def mark(rewrite: Rewrite) -> None:
        add_keyword(rewrite, rewrite.tree.calls("f")[0], "x", "1")

    if after is None:
        assert refused(before + "\n", mark)
    else:
        assert rewritten(before + "\n", mark) == after + "\n"


def test_two_keywords_of_one_round() -> None:
    def mark(rewrite: Rewrite) -> None:
        for name in ("x", "y"):
            add_keyword(rewrite, rewrite.tree.calls("f")[0], name, "1")

    assert rewritten("f()\n", mark) == "f(x=1, y=1)\n"
    assert rewritten("f(a)\n", mark) == "f(a, x=1, y=1)\n"
    assert rewritten("f(\n    a,\n)\n", mark) == "f(\n    a,\n    x=1,\n    y=1,\n)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("v = (1, 2)", "v = [1, 2]"),
        ("v = (1,)", "v = [1]"),
        ("v = ()", "v = []"),
        ("v = 1, 2", "v = [1, 2]"),
        ("v = (  # two\n    1,\n    2,\n)", "v = [  # two\n    1,\n    2,\n]"),
        ("v = (\n    1,\n)", "v = [\n    1,\n]"),
        ("v = ((1, 2))", "v = ([1, 2])"),
        ("v = (*a, 1)", "v = [*a, 1]"),
    ],
)
def test_a_tuple_as_a_list(before: str, after: str) -> None:
    def mark(rewrite: Rewrite) -> None:
        to_list(rewrite, next(node for node in rewrite.tree.nodes if isinstance(node, cst.Tuple)))

    assert rewritten(before + "\n", mark) == after + "\n"
