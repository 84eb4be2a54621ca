"""Evaluation of names in modules that a test writes out."""

from __future__ import annotations

from collections.abc import Mapping

from opschema_cli.evaluation.dialect import Dialect
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.evaluation.values import Values
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.program import Program
from opschema_cli.source.python import PythonFile
from opschema_cli.source.python_facts import collect
from opschema_cli.source.text import Source


def evaluator_of(texts: Mapping[str, str], *dialects: Dialect) -> Evaluator:
    """An evaluator of a tree of modules."""
    files = {path: PythonFile(Source(path, text, "utf-8", path), collect(text)) for path, text in texts.items()}
    return TreeEvaluator(Bodies(Program(files, files.get, files), files), dialects)


def values_of(text: str, *dialects: Dialect, name: str = "found") -> Values:
    """Values that a name has when the module has run."""
    evaluator = evaluator_of({"a.py": text}, *dialects)
    file = evaluator.program.load("a.py")
    assert file is not None
    assert not file.facts.error
    return evaluator.lookup(evaluator.frames.module(file), name)
