from __future__ import annotations

from textwrap import dedent

import pytest

from opschema_cli.migrate.codemods.docstrings import drop_docstring_parameter, rename_docstring_parameter
from opschema_cli.migrate.codemods.rewrite import Rewrite
from tests.migrate.codemods.rounds import check, rewritten


def drop(rewrite: Rewrite) -> None:
    drop_docstring_parameter(rewrite, rewrite.tree.function("f"), "x")


def function(docstring: str) -> str:
    lines = dedent(docstring).strip("\n").split("\n")
    return "\n".join(["def f():", *(f"    {line}" if line else "" for line in lines), "    return 1", ""])


GOOGLE = '''
    """Head.

    Args:
        a: One,
            in two lines: x.

        x (int): Two,
            in two lines.

            And a paragraph.
        b: Three; x: no entry.

    Returns:
        x: not an argument.
    """
    '''
GOOGLE_LAST = '''
    """Head.

    Args:
        a: One.
        x: Two,
            in two lines.
    """
    '''
GOOGLE_ONLY = '''
    """Head.

    Args:
        x: Two.

    Returns:
        One.
    """
    '''
NUMPY = '''
    """Head.

    Parameters
    ----------
    a : int
        One.
    x : int, optional
        Two.

        And a paragraph.
    b, c : int
        Three.

    Returns
    -------
    x : int
    """
    '''
NUMPY_SHARED = '''
    """Head.

    Parameters
    ----------
    a, x, b : int
        One.
    """
    '''
REST = '''
    """Head.

    :param a: One, :param x: no entry.
    :param int x: Two,
        in two lines.
    :type x: int
    :returns: x
    """
    '''


@pytest.mark.parametrize(
    ("docstring", "gone"),
    [
        (GOOGLE, "        x (int): Two,\n            in two lines.\n\n            And a paragraph.\n"),
        (GOOGLE_LAST, "        x: Two,\n            in two lines.\n"),
        (GOOGLE_ONLY, "    Args:\n        x: Two.\n\n"),
        (NUMPY, "    x : int, optional\n        Two.\n\n        And a paragraph.\n"),
        (NUMPY_SHARED, ", x"),
        (REST, "    :param int x: Two,\n        in two lines.\n    :type x: int\n"),
        ('"""x: Args: x"""', ""),
        ('"""Args:\n    x: One."""', ""),
        ('"""Head.\n\nArgs:\n    a: One.\n    x: Two."""', "\n    x: Two."),
    ],
)
def test_dropping(docstring: str, gone: str) -> None:
    assert gone in docstring
    assert rewritten(function(docstring), drop) == function(docstring.replace(gone, ""))


def test_the_first_line_and_other_functions_are_left() -> None:
    text = 'def g():\n    """G.\n\n    Args:\n        x: One.\n    """\n\n\ndef f():\n    return """\n    x: One\n    """\n'
    assert rewritten(text, drop) == text


def test_line_ends_stay() -> None:
    entry = "        x: Two,\n            in two lines.\n"
    text, left = function(GOOGLE_LAST), function(GOOGLE_LAST.replace(entry, ""))
    assert rewritten(text.replace("\n", "\r\n"), drop) == left.replace("\n", "\r\n")


def test_renaming() -> None:
    check(
        '''
        def f():
            """Head x.

            Args:
                x: Of x.
                *x: no.
            """
        ''',
        lambda rewrite: rename_docstring_parameter(rewrite, rewrite.tree.function("f"), "x", "y"),
        '''
        def f():
            """Head x.

            Args:
                y: Of x.
                *y: no.
            """
        ''',
    )
