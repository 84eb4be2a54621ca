"""Executed code gives what Python gives; a snippet with ``?`` before its name may also be unresolved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opschema_cli.evaluation.execution.outcomes import Raised, Returned, Unresolved
from opschema_cli.evaluation.execution.values import Opaque
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
    if name.startswith("?") and _is_open(outcome, expected):
        return
    if isinstance(expected, BaseException):
        assert isinstance(outcome, Raised), outcome
        assert outcome.exception == type(expected).__name__
        assert outcome.message in (None, str(expected), *expected.args[:1])
    else:
        assert outcome == Returned(expected)
        assert repr(outcome) == repr(Returned(expected))


def _is_open(outcome: object, expected: object) -> bool:
    """Whether an outcome is unresolved, or a tuple whose parts are as expected or not known."""
    if not isinstance(outcome, Returned) or not isinstance(outcome.value, tuple) or not isinstance(expected, tuple):
        return isinstance(outcome, Unresolved)
    return all(isinstance(one, Opaque) or one == two for one, two in zip(outcome.value, expected, strict=True))


def _outcome(function: Callable[[], object]) -> object:
    """The result, or the exception, of running a function."""
    try:
        return function()
    except Exception as error:
        return error
