"""The lines that are removed together with a statement, and those that stay."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.source.python_tree import PythonTree
from tests.migrate.codemods.rounds import check, rewritten


def remove(*names: str):  # type: ignore[no-untyped-def]
    """Take out the statements that bind or call these names."""

    def mark(rewrite: Rewrite) -> None:
        tree = rewrite.tree
        for name in names:
            rewrite.remove(*(tree.definitions(name) or map(tree.statement, tree.names(name)[:1])))

    return mark


def test_own_comments_go_and_those_of_others_stay() -> None:
    check(
        """
        # about a
        a = 1  # one
        # about b,
        # in two lines
        b = 2  # two
        # about c
        c = 3
        """,
        remove("b"),
        """
        # about a
        a = 1  # one
        # about c
        c = 3
        """,
    )


def test_a_comment_behind_a_blank_line_belongs_to_nobody() -> None:
    check(
        """
        a = 1

        # a note

        b = 2

        c = 3
        """,
        remove("b"),
        """
        a = 1

        # a note

        c = 3
        """,
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = 1\nb = 2\n\nc = 3\n", "a = 1\n\nc = 3\n"),
        ("a = 1\n\nb = 2\nc = 3\n", "a = 1\n\nc = 3\n"),
        ("a = 1\n\nb = 2\n\nc = 3\n", "a = 1\n\nc = 3\n"),
        ("a = 1\n\n\ndef b():\n    pass\n\n\nc = 3\n", "a = 1\n\n\nc = 3\n"),
        ("a = 1\nb = 2\n\n\ndef c():\n    pass\n", "a = 1\n\n\ndef c():\n    pass\n"),
        ("a = 1\n\nb = 2\n", "a = 1\n"),
        ("b = 2\n\na = 1\n", "a = 1\n"),
        ("a = 1\n\n\ndef b():\n    pass", "a = 1"),
        ("a = 1\r\nb = 2  # x\r\nc = 3\r\n", "a = 1\r\nc = 3\r\n"),
        ("if x:\r\n\tb = 2\r\n", "if x:\r\n\tpass\r\n"),
        ("b = 2\n", ""),
        ("b = 2", ""),
        ("\n\nb = 2", ""),
        ("# a note\n\nb = 2", "# a note"),
        ("b = \\\n    2\nc = 3\n", "c = 3\n"),
        ('b = """\n# not a comment\n\n"""\nc = 3\n', "c = 3\n"),
        ("#!/usr/bin/env python\nb = 2\nc = 3\n", "#!/usr/bin/env python\nc = 3\n"),
        ("a = 1\n# fmt: off\nb = 2\n# fmt: on\nc = 3\n", "a = 1\n# fmt: off\n# fmt: on\nc = 3\n"),
        ("a = 1\nb = 2  # type: int\n# noqa: X\nc = 3\n", "a = 1\n# noqa: X\nc = 3\n"),
    ],
)
def test_blank_lines_line_ends_and_the_final_newline(before: str, after: str) -> None:
    assert rewritten(before, remove("b")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = 1; b = 2; c = 3  # x\n", "a = 1; c = 3  # x\n"),
        ("b = 2; c = 3\n", "c = 3\n"),
        ("a = 1; b = 2\n", "a = 1\n"),
        ("a = 1; b = 2;\n", "a = 1;\n"),
        ("b = 2;\nc = 3\n", "c = 3\n"),
        ("if x: b = 2\n", "if x: pass\n"),
        ("if x: a = 1; b = 2  # x\n", "if x: a = 1  # x\n"),
        ("class A: b = 2\n", "class A: pass\n"),
    ],
)
def test_statements_that_share_a_line(before: str, after: str) -> None:
    assert rewritten(before, remove("b")) == after


def test_all_statements_of_a_line() -> None:
    assert rewritten("z = 0\n# own\na = 1; b = 2  # x\nc = 3\n", remove("a", "b")) == "z = 0\nc = 3\n"


def test_the_last_statements_of_a_line() -> None:
    assert rewritten("a = 1; b = 2; c = 3\n", remove("b", "c")) == "a = 1\n"


def test_an_empty_suite_gets_pass() -> None:
    check(
        """
        def f():
            # own
            a = 1  # x

            # own too
            b = 2
            # left alone

        c = 3
        """,
        remove("a", "b"),
        """
        def f():
            pass

            # left alone

        c = 3
        """,
    )


def test_a_docstring_is_enough_for_a_suite() -> None:
    check(
        '''
        class A:
            """Doc."""

            b = 2


        c = 3
        ''',
        remove("b"),
        '''
        class A:
            """Doc."""


        c = 3
        ''',
    )


def test_methods_with_decorators_and_comments_below_them() -> None:
    check(
        """
        class A:
            def a(self):
                return 1

            # own
            @property
            # between
            def b(self):
                return 2
                # below

                # below too

            # of c
            def c(self):
                return 3
        """,
        remove("A.b"),
        """
        class A:
            def a(self):
                return 1

            # of c
            def c(self):
                return 3
        """,
    )


def test_a_title_goes_with_the_statements_right_below_it() -> None:
    check(
        """
        # --- Unary ops ---
        a()

        # --- Generative ops (2 ops) ---
        b(1)
        b(2)

        # Clean up
        del x
        """,
        lambda rewrite: rewrite.remove(*map(rewrite.tree.statement, rewrite.tree.names("b"))),
        """
        # --- Unary ops ---
        a()

        # Clean up
        del x
        """,
    )


def test_a_title_stays_while_it_heads_something() -> None:
    check(
        """
        # --- Generative ops ---
        b(1)
        c(2)
        """,
        remove("b"),
        """
        # --- Generative ops ---
        c(2)
        """,
    )


BANNERS = """
    # ----------
    # Helpers
    # ----------


    def a():
        pass


    # ----------
    # Generative
    # ----------


    def b():
        pass


    # --- more ---
    def c():
        pass


    # ----------
    # Rest
    # ----------

    d = 1
    """


def test_a_banner_stays_while_a_later_definition_is_below_it() -> None:
    left = BANNERS.replace("    def b():\n        pass\n\n\n", "")
    check(BANNERS, remove("b"), left)


def test_a_banner_goes_with_the_last_definition_below_it() -> None:
    start, end = BANNERS.index("    # ----------\n    # Generative"), BANNERS.index("    # ----------\n    # Rest")
    check(BANNERS, remove("b", "c"), BANNERS[:start] + BANNERS[end:])


def test_the_order_of_removals_does_not_matter() -> None:
    text = "z = 0\n# t\na = 1\n\nb = 2\nc = 3\n\n\nd = 4\n"
    results = set()
    for names in (("a", "b", "c"), ("c", "b", "a"), ("b", "a", "c")):
        rewrite = Rewrite(PythonTree.parse(text))
        for name in names:
            remove(name)(rewrite)
        results.add(rewrite.text())
    assert results == {"z = 0\n\n\nd = 4\n"}
