from __future__ import annotations

import pytest

from opschema_cli.migrate.codemods.calls import drop_argument, rename_keyword
from opschema_cli.migrate.codemods.rewrite import Rewrite
from tests.migrate.codemods.rounds import refused, rewritten


@pytest.mark.parametrize(
    ("before", "position", "after"),
    [
        ("f(a, x=1)", None, "f(a)"),
        ("f(x=1)", None, "f()"),
        ("f(x=1, **kw)", None, "f(**kw)"),
        ("f(a, 1, b)", 1, "f(a, b)"),
        ("f(a, (1), b=2)", 1, "f(a, b=2)"),
        ("f(a, b=2)", 1, "f(a, b=2)"),
        ("f(a)", 1, "f(a)"),
        ("f(a, 1)", None, "f(a, 1)"),
        ("f(*a, x=1)", 1, "f(*a)"),
        ("f(*a)", 1, None),
        ("f(a, 1, *b)", 1, None),
        ("f(a, **kw)", 1, None),
        ("f(\n    a,\n    x=1,  # why\n    y=x,\n)", None, "f(\n    a,\n    y=x,\n)"),
        ("f(\n    a, x=1,\n    y=2,\n)", None, "f(\n    a,\n    y=2,\n)"),
        ("f(a,\n  x=1)", None, "f(a)"),
        ("f(\n    x=1,\n)", None, "f()"),
        ("f(\n    # own\n    x=1,  # why\n    # left\n)", None, "f(\n    # left\n)"),
        ("f(  # f\n    x=1,\n)", None, "f(  # f\n)"),
        ("f(a, x=g(x=1))", None, "f(a)"),
    ],
)
def test_dropping(before: str, position: int | None, after: str | None) -> None:
    def mark(rewrite: Rewrite) -> None:
        drop_argument(rewrite, rewrite.tree.calls("f")[0], "x", position)

    if after is None:
        assert refused(before + "\n", mark)
    else:
        assert rewritten(before + "\n", mark) == after + "\n"


def test_several_arguments_of_one_call() -> None:
    def mark(rewrite: Rewrite) -> None:
        for name in ("x", "z", "y"):
            drop_argument(rewrite, rewrite.tree.calls("f")[0], name)

    assert rewritten("f(a, x=1, y=2, z=3)\n", mark) == "f(a)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(a, x = g(x=1), z=x)", "f(a, y = g(x=1), z=x)"),
        ("f(x)", "f(x)"),
        ("f(x=1, **kw)", "f(y=1, **kw)"),
        ("f(x=1, y=2)", None),
        ("f(**kw)", None),
    ],
)
def test_renaming(before: str, after: str | None) -> None:
    def mark(rewrite: Rewrite) -> None:
        rename_keyword(rewrite, rewrite.tree.calls("f")[0], "x", "y")

    if after is None:
        assert refused(before + "\n", mark)
    else:
        assert rewritten(before + "\n", mark) == after + "\n"
