"""Execution of functions in modules that a test writes out."""

from __future__ import annotations

from collections.abc import Mapping

from opschema_cli.evaluation.execution.dialect import ExecutionDialect
from opschema_cli.evaluation.execution.executor import Executor
from opschema_cli.evaluation.execution.outcomes import Outcome
from opschema_cli.evaluation.values import Value
from tests.evaluation.evaluating import evaluator_of


def executor_of(texts: str | Mapping[str, str], *dialects: ExecutionDialect) -> Executor:
    """An executor for a module, or for a tree of modules."""
    return Executor(evaluator_of({"a.py": texts} if isinstance(texts, str) else texts), dialects)


def named(executor: Executor, name: str, path: str = "a.py") -> Value:
    """The function or class of that name."""
    evaluator = executor.evaluator
    file = evaluator.program.load(path)
    assert file is not None
    assert not file.facts.error
    (value,) = evaluator.lookup(evaluator.frames.module(file), name)
    return value


def outcome_of(text: str, *positional: object, name: str = "f", dialects: tuple[ExecutionDialect, ...] = ()) -> Outcome:
    """The outcome of calling a function of a module."""
    executor = executor_of(text, *dialects)
    return executor.call(named(executor, name), positional=positional)
