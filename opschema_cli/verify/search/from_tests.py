"""Sample calls of operators from the repository's own tests: the calls that tests make, and the arguments that they pass to
opcheck.

Tests are interpreted, not run. A call is taken if all of it is known: shapes, dtypes and plain values. Parameters of a test have
the first and the last of the values that ``pytest.mark.parametrize`` lists for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from opschema_cli.evaluation.dialect import Dialect
from opschema_cli.evaluation.execution.dialect import Call as Executed
from opschema_cli.evaluation.execution.executor import Executor
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.outcomes import Returned
from opschema_cli.evaluation.execution.values import (
    Environment,
    Names,
    Native,
    Object,
    Opaque,
)
from opschema_cli.evaluation.tensors.dialect import TORCH
from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.evaluation.values import ClassValue
from opschema_cli.operators.model import Operator
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.modules import Modules
from opschema_cli.source.program import Program
from opschema_cli.source.python import Expr
from opschema_cli.verify.model import Call
from opschema_cli.verify.search.samples import Samples

_MOST_STEPS = 1_000_000
"""Steps of the interpreter, some five seconds."""
_IS_TEST = re.compile(r"(^|/)(test_[^/]*|[^/]*_test|tests?/.*|conftest)\.py$")
_DEFINING = frozenset(f"torch.library.{name}" for name in ("custom_op", "triton_op", "impl", "register_kernel"))
_FIXTURE = Opaque("an argument of a test")
_DEVICE = "cpu"


def samples_from_tests(project: Project, operators: Sequence[Operator]) -> dict[str, dict[str, Call]]:
    """The sample calls of operators, by their names and then by labels."""
    kernels = _kernels(project, operators)
    namespaces = {item.name.partition("::")[0] for item in operators}
    symbols = {name.rpartition(".")[2] for name in kernels}
    words = [f"ops.{namespace}." for namespace in namespaces] + [word for word in symbols if len(word) > 2]
    paths = [path for path in project.workspace.files if path.endswith(".py")]
    tests = [path for path in paths if _IS_TEST.search(path)]
    if not words or not tests:
        return {}
    bodies = Bodies(Program(project.workspace.files, project.python, paths), tests)
    evaluator = TreeEvaluator(bodies, (Dialect(transparent=_DEFINING),))
    samples = Samples(operators, kernels, evaluator.qualified_name)
    executor = Executor(evaluator, (samples.dialect, TORCH))
    for body in _tests(bodies, words, operators):
        samples.test = body.function.name if body.function is not None else ""
        for arguments in _parametrized(executor, body):
            _interpret(executor, body, arguments)
        if executor.steps > _MOST_STEPS or samples.complete:
            break
    return {name: found for name, found in samples.found.items() if found}


def _tests(bodies: Bodies, words: Sequence[str], operators: Sequence[Operator]) -> list[Body]:
    """The tests of files that use operators: first those that name one themselves."""
    bases = {item.name.partition("::")[2].partition(".")[0] for item in operators}
    near = re.compile(rf"\b(opcheck|{'|'.join(map(re.escape, sorted(bases)))})\b")

    def is_far(body: Body) -> bool:
        assert body.function is not None
        span = body.function.outer
        return near.search(body.file.source.text, span.start, span.end) is None

    found = [body for body in bodies.holding(*words) if body.function is not None and body.function.name[:4] == "test"]
    return sorted(found, key=is_far)


def _kernels(project: Project, operators: Sequence[Operator]) -> dict[str, str]:
    """The operators by the full names of their kernels' functions; a function of several has none."""
    modules = Modules(project.workspace.files)
    found: dict[str, set[str]] = {}
    for operator in operators:
        for item in operator.implementations:
            if item.role == "kernel" and item.symbol and item.place is not None and item.place.path.endswith(".py"):
                found.setdefault(f"{modules.module_name(item.place.path)}.{item.symbol}", set()).add(operator.name)
    return {name: next(iter(names)) for name, names in found.items() if len(names) == 1}


# Tests


def _interpret(executor: Executor, body: Body, arguments: Mapping[str, object]) -> None:
    """Interpret a test with these arguments; others are not known."""
    params = [item for item in body.params if item.kind in ("normal", "keyword") and item.default is None]
    if body.owner is not None:
        params = params[1:]
    words = {item.name: arguments.get(item.name, _DEVICE if item.name == "device" else _FIXTURE) for item in params}
    words |= {name: value for name, value in arguments.items() if any(item.name == name for item in body.params)}
    if body.owner is None:
        executor.call(body, words)
        return
    made = executor.construct(ClassValue(body.owner))
    if isinstance(made, Returned) and isinstance(made.value, Object):
        executor.method(made.value, body.function.name if body.function is not None else "", words)


def _parametrized(executor: Executor, body: Body) -> Iterator[dict[str, object]]:
    """The arguments of a test by its decorators: all first values, then all last ones, if there are any."""
    known = [found for decorator in _decorators(body) if (found := _values(executor, body, decorator)) is not None]
    first: dict[str, object] = {}
    last: dict[str, object] = {}
    for names, rows in known:
        first |= _row(names, rows[0])
        last |= _row(names, rows[-1])
    yield first
    if any(len(rows) > 1 for _, rows in known):
        yield last


def _decorators(body: Body) -> list[Expr]:
    found = list(body.function.decorators) if body.function is not None else []
    found += body.owner.cls.decorators if body.owner is not None else ()
    return [item for item in found if item.kind == "call" and (item.callee or "").endswith("parametrize")]


def _values(executor: Executor, body: Body, decorator: Expr) -> tuple[list[str], list[object]] | None:
    """Return the names that a decorator sets and their values, or none if these are not known."""
    module = executor.evaluator.bodies.module(body.file)
    scope = Environment(module, {}, Names(), frame=executor.evaluator.frames.module(body.file))

    def evaluated(call: Executed) -> object:
        assert isinstance(call.machine, Machine)
        return tuple(call.machine.evaluate(scope, item) for item in decorator.items[1:3])

    outcome = executor.call(Native("parametrize", evaluated)) if len(decorator.items) > 2 else None
    if not isinstance(outcome, Returned):
        return None
    names, rows = cast("tuple[object, object]", outcome.value)
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",") if name.strip()]
    if not isinstance(names, list | tuple) or not isinstance(rows, list | tuple) or not rows:
        return None
    return [str(name) for name in names], list(rows)


def _row(names: Sequence[str], row: object) -> dict[str, object]:
    if len(names) == 1:
        return {names[0]: row}
    return dict(zip(names, row, strict=False)) if isinstance(row, list | tuple) else {}
