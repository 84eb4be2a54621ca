"""Executed code gives what Python gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opschema_cli.evaluation.execution.outcomes import Raised, Returned
from tests.evaluation.executing import executor_of, named

SNIPPETS = dict(
    part.split("\n", 1)
    for part in (Path(__file__).parent / "snippets.txt").read_text(encoding="utf-8").split("#### ")[1:]
)


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_snippet_gives_what_python_gives(name: str) -> None:
    text = SNIPPETS[name]
    names: dict[str, object] = {"__name__": "a"}
    exec(compile(text, "a.py", "exec", dont_inherit=True), names)
    function = names["f"]
    assert callable(function)
    executor = executor_of(text)
    outcome = executor.call(named(executor, "f"))
    expected = _outcome(function)
    if isinstance(expected, BaseException):
        assert isinstance(outcome, Raised), outcome
        assert outcome.exception == type(expected).__name__
        assert outcome.message in (None, str(expected), *expected.args[:1])
    else:
        assert outcome == Returned(expected)
        assert repr(outcome) == repr(Returned(expected))


def _outcome(function: Callable[[], object]) -> object:
    """The result, or the exception, of running a function."""
    try:
        return function()
    except Exception as error:
        return error
