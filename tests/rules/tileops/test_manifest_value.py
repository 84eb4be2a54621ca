"""The manifest that executed code reads: like a dictionary, and it records which entries were looked up."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.evaluation.execution.dialect import Call, ExecutionDialect
from opschema_cli.evaluation.execution.executor import Executor
from opschema_cli.evaluation.execution.outcomes import Outcome, Raised, Returned
from opschema_cli.evaluation.execution.values import Opaque
from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.program import Program
from opschema_cli.workspace import Workspace
from opschema_rules.tileops.calls import manifest_value
from opschema_rules.tileops.calls.manifest_value import ManifestValue

ENTRIES: dict[str, object] = {"A": {"dtype": "float16"}, "B": {"dtype": "float32"}}


@pytest.mark.parametrize(
    ("expression", "read"),
    [
        ("load()['A']['dtype']", ["A"]),
        ("load().get('A')['dtype'], load().get('C'), load().get('C', 1)", ["A", "C"]),
        ("load()['C']", ["C"]),
        ("'A' in load(), 'C' in load(), 'B' not in load()", ["A", "C", "B"]),
        ("len(load()), bool(load())", None),
        ("sorted(load().items())[0][0], list(load().keys())", None),
        ("load().get(1), load().get('A', *[2])", None),
    ],
)
def test_code_sees_a_dictionary(tmp_path: Path, expression: str, read: list[str] | None) -> None:
    outcome, looked_up = executed(tmp_path, expression)
    try:
        expected = eval(expression, {"load": lambda: ENTRIES})
    except KeyError:
        assert isinstance(outcome, Raised)
        assert outcome.exception == "KeyError"
    else:
        assert isinstance(outcome, Returned), outcome
        assert outcome.value == expected
    assert ("*" in looked_up) if read is None else (list(dict.fromkeys(looked_up)) == read)


@pytest.mark.parametrize(
    "expression",
    [
        "[name for name in load()]",
        "dict(load())",
        "{**load()}",
        "load() == {}",
        "isinstance(load(), dict)",
        "str(load())",
    ],
)
def test_what_takes_all_entries_at_once_is_not_known(tmp_path: Path, expression: str) -> None:
    outcome, _ = executed(tmp_path, expression)
    known = isinstance(outcome, Returned) and not isinstance(outcome.value, Opaque)
    assert not known, outcome
    assert not isinstance(outcome, Raised), "else it would be reported"


def executed(folder: Path, expression: str) -> tuple[Outcome, list[str]]:
    """The outcome of an expression, and the entries that were looked up; `*` are all."""
    text = f"def load():\n    return 0\n\n\ndef result():\n    return {expression}\n"
    project = Project(Workspace(folder, {"m.py": text}))
    program = Program(project.workspace.files, project.python, ["m.py"])
    looked_up: list[str] = []
    value = ManifestValue(ENTRIES, looked_up.append, lambda: looked_up.append("*"))

    def load(call: Call) -> object:
        return value

    dialect = ExecutionDialect(
        functions=lambda name: load if name.rpartition(".")[2] == "load" else None,
        attribute=manifest_value.attribute,
        operator=manifest_value.operator,
        reads_own=True,
    )
    evaluator = TreeEvaluator(Bodies(program, program.package_files))
    file = program.load("m.py")
    assert file is not None
    body = evaluator.bodies.defined(file, file.functions["result"][-1])
    return Executor(evaluator, (dialect,)).call(body), looked_up
