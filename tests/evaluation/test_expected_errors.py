"""Code whose errors a test expects or something handles."""

from __future__ import annotations

import pytest

from opschema_cli.evaluation.expected_errors import expects_failure, is_handled
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import Program
from opschema_cli.source.python import PythonFile
from opschema_cli.source.python_facts import collect
from opschema_cli.source.text import Source

HEAD = """\
import unittest
from unittest import TestCase
from contextlib import nullcontext, suppress

import pytest
from pytest import mark, raises

def expect_error(check):
    def run(*args):
        with raises(ValueError):
            check(*args)
    return run

def timed(check):
    return check

def quietly(run):
    try:
        run()
    except TypeError:
        pass

def plainly(run):
    run()

"""


def at_call(text: str) -> tuple[Bodies, Body, int]:
    """The place of `op(` in a file with this text behind :data:`HEAD`."""
    file = PythonFile(Source("test_op.py", HEAD + text), collect(HEAD + text))
    bodies = Bodies(Program(["test_op.py"], lambda path: file), ["test_op.py"])
    at = file.source.text.index("op(")
    return bodies, bodies.at(file, at), at


EXPECTED = {
    "a block": "def test():\n    with raises(ValueError):\n        op(1)\n",
    "a block of several lines": "def test():\n    with (\n        pytest.raises(E),\n    ):\n        x = 1\n        op(1)\n",
    "a method of unittest": "class T(TestCase):\n    def test(self):\n        with self.assertRaises(E):\n            op(1)\n",
    "a function that is passed": "def test():\n    raises(ValueError, lambda: op(1))\n",
    "a method that is passed": "class T:\n    def test(self):\n        self.assertRaisesRegex(E, 'x', lambda: op(1))\n",
    "a lambda beside the block": "def test():\n    call = lambda: op(1)\n    with raises(E):\n        call()\n",
    "a context that is kept": "def test(bad):\n    kept = raises(E) if bad else nullcontext()\n    with kept:\n        op(1)\n",
    "a mark": "@pytest.mark.xfail\ndef test():\n    op(1)\n",
    "a mark with a reason": "@mark.xfail(reason='not yet')\ndef test():\n    op(1)\n",
    "a mark of a case": "@mark.parametrize('n', [1, pytest.param(2, marks=mark.xfail)])\ndef test(n):\n    op(n)\n",
    "a mark of unittest": "class T(unittest.TestCase):\n    @unittest.expectedFailure\n    def test(self):\n        op(1)\n",
    "a mark of the class": "@mark.xfail\nclass TestOp:\n    def test(self):\n        op(1)\n",
    "a mark of the module": "pytestmark = mark.xfail\n\ndef test():\n    op(1)\n",
    "a test that is skipped": "@mark.skip\ndef test():\n    op(1)\n",
    "a decorator of the tree": "@expect_error\ndef test():\n    op(1)\n",
    "a block of the module": "with raises(ValueError):\n    op(1)\n",
    "a function in such a block": "with raises(ValueError):\n    def call():\n        op(1)\n",
}

NOT_EXPECTED = {
    "beside the block": "def test():\n    op(1)\n    with raises(ValueError):\n        other(2)\n",
    "behind the block": "def test():\n    with raises(ValueError):\n        other(2)\n    op(1)\n",
    "another test": "def test_other():\n    with raises(ValueError):\n        other(2)\n\ndef test():\n    op(1)\n",
    "another block": "def test():\n    with nullcontext():\n        op(1)\n",
    "a skip with a condition": "@mark.skipif(not CUDA, reason='')\ndef test():\n    op(1)\n",
    "another decorator": "@timed\ndef test():\n    op(1)\n",
    "another mark": "@mark.parametrize('n', [1, 2])\ndef test(n):\n    op(n)\n",
    "behind the block of the module": "with raises(ValueError):\n    other(2)\nop(1)\n",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in EXPECTED.items()])
def test_an_error_is_expected(text: str) -> None:
    assert expects_failure(*at_call(text))


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in NOT_EXPECTED.items()])
def test_no_error_is_expected(text: str) -> None:
    assert not expects_failure(*at_call(text))


HANDLED = {
    "a try": "def run():\n    try:\n        op(1)\n    except TypeError:\n        pass\n",
    "any error": "def run():\n    try:\n        op(1)\n    except:\n        pass\n",
    "a context": "def run():\n    with suppress(TypeError):\n        op(1)\n",
    "a context of another name": "def run():\n    with ignore_errors():\n        op(1)\n",
    "a context that is passed": "def run(context):\n    with context:\n        op(1)\n",
    "a stack of contexts": "def run():\n    with ExitStack() as stack:\n        stack.enter_context(quiet())\n        op(1)\n",
    "a function with a handler": "def run():\n    quietly(lambda: op(1))\n",
}

NOT_HANDLED = {
    "nothing": "def run():\n    op(1)\n",
    "another error": "def run():\n    try:\n        op(1)\n    except ImportError:\n        pass\n",
    "the handler": "def run():\n    try:\n        other(1)\n    except TypeError:\n        op(1)\n",
    "another context": "def run():\n    with nullcontext():\n        op(1)\n",
    "a function without a handler": "def run():\n    plainly(lambda: op(1))\n",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in HANDLED.items()])
def test_errors_are_handled(text: str) -> None:
    assert is_handled(*at_call(text))


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in NOT_HANDLED.items()])
def test_errors_are_not_handled(text: str) -> None:
    assert not is_handled(*at_call(text))
