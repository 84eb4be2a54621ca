"""Load the ops that a tree makes with ``magi_register_custom_op``."""

from __future__ import annotations

from collections.abc import Iterable

from opschema_cli.evaluation.annotations import Annotations
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.lint.loaded import Entry, Loaded
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.program import Program
from opschema_rules.magi.calls import Calls
from opschema_rules.magi.classes import Classes
from opschema_rules.magi.dataclasses import Dataclasses
from opschema_rules.magi.defaults import Defaults
from opschema_rules.magi.detection import MARK, MagiOptions, holding
from opschema_rules.magi.dialect import MAGI
from opschema_rules.magi.lowering import Lowerer
from opschema_rules.magi.model import MagiOp, MagiTree
from opschema_rules.magi.registrations import Registrations
from opschema_rules.magi.version import find_contract


def load_tree(project: Project, options: MagiOptions) -> MagiTree:
    """Load all ops of the workspace, and the code that reads them."""
    paths = list(holding(project, [MARK]))
    project.load_python(paths)
    wrappers = _wrappers(project, paths)
    if wrappers:
        paths = sorted({*paths, *holding(project, wrappers)})
        project.load_python(paths)
    evaluator = TreeEvaluator(Bodies(Program(project.workspace.files, project.python, paths), paths), (MAGI,))
    bodies = evaluator.bodies
    registrations = Registrations(evaluator)
    calls, contract = Calls(project, bodies), find_contract(project, options.magi)
    tree = MagiTree(project, evaluator, registrations, _lowerer(evaluator), calls, contract)
    for file in bodies.files:
        for body in bodies.of(file):
            for found in registrations.within(body):
                if found.called:
                    tree.ops.append(MagiOp(tree, found))
                else:
                    tree.bare.append(found)
    for op in tree.ops:
        calls.expect(op.registration, op.names)
    return tree


def _lowerer(evaluator: Evaluator) -> Lowerer:
    bodies = evaluator.bodies
    annotations, classes = Annotations(bodies), Classes(evaluator)
    return Lowerer(
        bodies, annotations, classes, Dataclasses(bodies, classes, annotations), Defaults(evaluator, classes)
    )


def _wrappers(project: Project, paths: Iterable[str]) -> set[str]:
    """Return the other names under which files pass the decorator on: functions that return its result, and aliases."""
    found: set[str] = set()
    for file in filter(None, map(project.python, paths)):
        found.update(item.name for item in file.body.imports if item.attr == MARK and not item.guarded)
        for function in file.body.functions:
            if any(MARK in part.callee for item in function.body.returns for part in item.walk()):
                found.add(function.name)
        for assign in file.body.assigns:
            if (
                assign.value is not None
                and any(MARK in part.text for part in assign.value.walk())
                and "." not in assign.target
            ):
                found.add(assign.target)
    return found - {MARK}


def load(project: Project, options: MagiOptions) -> Loaded:
    """The tree and each of its ops as subjects."""
    tree = load_tree(project, options)
    loaded = Loaded([tree, *tree.ops], len(tree.ops))
    for op in tree.ops:
        function = op.body.function
        if function is not None:
            loaded.entries.append(Entry(op.body.file.path, function.span, function.outer, op.title))
    loaded.files = sorted({op.body.file.path for op in tree.ops})
    return loaded
