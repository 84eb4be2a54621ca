from __future__ import annotations

import pytest

from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.migrate.codemods.signatures import (
    add_parameter,
    rename_parameter,
    set_default,
)
from tests.migrate.codemods.rounds import Mark, check, refused, rewritten


def held(signature: str, mark: Mark, expected: str | None) -> None:
    text = f"def f{signature}:\n    return 1\n"
    if expected is None:
        assert refused(text, mark)
    else:
        assert rewritten(text, mark) == f"def f{expected}:\n    return 1\n"


@pytest.mark.parametrize(
    ("signature", "code", "after", "keyword_only", "expected"),
    [
        ("()", "a", None, False, "(a)"),
        ("(self)", "a: int", None, False, "(self, a: int)"),
        ("(self, b=1)", "a: int", "self", False, "(self, a: int, b=1)"),
        ("(self, b=1)", "a", None, False, None),
        ("(self, b)", "a=1", "self", False, None),
        ("(self, b)", "a=1", None, False, "(self, b, a=1)"),
        ("(self, b,)", "a=1", None, False, "(self, b, a=1,)"),
        ("(self, *, b)", "a", None, False, "(self, a, *, b)"),
        ("(self, *args, **kw)", "a", None, False, "(self, a, *args, **kw)"),
        ("(self)", "a=1", None, True, "(self, *, a=1)"),
        ("()", "a=1", None, True, "(*, a=1)"),
        ("(**kw)", "a=1", None, True, "(*, a=1, **kw)"),
        ("(self, *args)", "a=1", None, True, "(self, *args, a=1)"),
        ("(self, *, b, c)", "a", "b", True, "(self, *, b, a, c)"),
        ("(self, *, b)", "a", None, True, "(self, *, b, a)"),
        ("(self, a)", "a", None, False, None),
        ("(self, b)", "a", "c", False, None),
        ("(\n    self,\n    b: int,\n)", "a=1", None, False, "(\n    self,\n    b: int,\n    a=1,\n)"),
        ("(\n    self,\n    b: int\n)", "a=1", None, False, "(\n    self,\n    b: int,\n    a=1\n)"),
        ("(\n    self,\n    b: int,  # b\n)", "a", "self", False, "(\n    self,\n    a,\n    b: int,  # b\n)"),
        ("(\n    self,\n    *,\n    b: int,\n)", "a", None, False, "(\n    self,\n    a,\n    *,\n    b: int,\n)"),
    ],
)
def test_adding(signature: str, code: str, after: str | None, keyword_only: bool, expected: str | None) -> None:
    def mark(rewrite: Rewrite) -> None:
        add_parameter(rewrite, rewrite.tree.function("f"), code, after, keyword_only)

    held(signature, mark, expected)


def test_adding_several() -> None:
    def mark(rewrite: Rewrite) -> None:
        for code, keyword_only in (("a", False), ("b=1", False), ("d=3", True)):
            add_parameter(rewrite, rewrite.tree.function("f"), code, None, keyword_only)

    held("(self, *, c)", mark, "(self, a, b=1, *, c, d=3)")


def test_two_that_each_need_a_star() -> None:
    def mark(rewrite: Rewrite) -> None:
        with rewrite.all_or_nothing():
            for code in ("a", "b"):
                add_parameter(rewrite, rewrite.tree.function("f"), code, None, True)

    held("(self)", mark, None)


@pytest.mark.parametrize(
    ("signature", "default", "expected"),
    [
        ("(a, b)", "1", "(a, b=1)"),
        ("(a, b: int)", "1", "(a, b: int = 1)"),
        ("(a, b: int = 2, c=3)", "1", "(a, b: int = 1, c=3)"),
        ("(a, b=(2))", "1", "(a, b=1)"),
        ("(a, b: int = 2)", None, "(a, b: int)"),
        ("(a, b=2, *, c)", None, "(a, b, *, c)"),
        ("(a=1, b=2)", None, None),
        ("(a, b, c)", "1", None),
        ("(a, *, b, c)", "1", "(a, *, b=1, c)"),
        ("(a=1, *, b=1)", None, "(a=1, *, b)"),
        ("(a, *b)", "1", None),
        ("(a)", "1", None),
    ],
)
def test_defaults(signature: str, default: str | None, expected: str | None) -> None:
    held(signature, lambda rewrite: set_default(rewrite, rewrite.tree.function("f"), "b", default), expected)


def rename(rewrite: Rewrite) -> None:
    rename_parameter(rewrite, rewrite.tree.function("f"), "x", "input")


def test_renaming_with_uses_and_docstring() -> None:
    check(
        '''
        def f(x: Tensor, *, y=x):
            """Apply x.

            Args:
                x: Of x.
            """
            return [x for _ in y], x.x, f(x=x)
        ''',
        rename,
        '''
        def f(input: Tensor, *, y=x):
            """Apply x.

            Args:
                input: Of x.
            """
            return [input for _ in y], input.x, f(x=input)
        ''',
    )


@pytest.mark.parametrize(
    "text", ["def f(x, input):\n    pass\n", "def f(x):\n    return input()\n", "def f(y):\n    pass\n"]
)
def test_a_taken_name(text: str) -> None:
    assert refused(text, rename)
