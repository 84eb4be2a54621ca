"""Verdicts on the shapes of fakes and kernels; one without a finding is kept while the files that it rests on are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.code_values import CodeValues, Group
from opschema_cli.regular_files import content_digest
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Bodies, Body
from opschema_rules.torchlib.model import Tree

if TYPE_CHECKING:
    from opschema_cli.evaluation.execution.executor import Executor
    from opschema_rules.torchlib.shape_runs import Finding
    from opschema_rules.torchlib.tilelang import TileLang


class Agreement(msgspec.Struct, array_like=True):
    """A comparison without a finding: how many inputs both functions take, and the reason if nothing is known."""

    taken: int
    reason: str


class ComparedShapes:
    """The verdicts of one tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        program = tree.evaluator.program
        self._agreements = CodeValues(tree.project, program, "torchlib shapes", Agreement)
        self._executors: dict[str, tuple[Executor, TileLang]] = {}

    def verdict(self, schema: OperatorSchema, fake: Body, kernel: Body) -> Agreement | Finding:
        """The verdict on a fake and a kernel of an operator."""
        group = self._agreements.group(fake.file.path)
        key = content_digest(f"{schema} {_place(fake)} {_place(kernel)}".encode("utf-8", "surrogatepass"))
        known = group.get(key)
        if known is not None:
            return known
        found = self._compared(group, schema, fake, kernel)
        if isinstance(found, Agreement):
            group.put(key, found)
        return found

    def _compared(
        self, group: Group[Agreement], schema: OperatorSchema, fake: Body, kernel: Body
    ) -> Agreement | Finding:
        # Not at the top: most runs compare nothing, and the interpreter takes time to import.
        from opschema_rules.torchlib.shape_runs import Comparison

        executor, tilelang = self._executor(fake.file.path, group)
        fake, kernel = (_again(executor.evaluator.bodies, body) for body in (fake, kernel))
        found = Comparison(executor, schema, fake, kernel, tilelang).verdict()
        return found.finding or Agreement(found.taken, found.reason)

    def _executor(self, path: str, group: Group[Agreement]) -> tuple[Executor, TileLang]:
        """The executor for the fakes of one file, whose program records what is read."""
        from opschema_cli.evaluation.execution.executor import Executor
        from opschema_cli.evaluation.tensors.dialect import TORCH
        from opschema_rules.torchlib.tilelang import TileLang

        if path not in self._executors:
            bodies = Bodies(group.program, self._tree.bodies.paths)
            tilelang = TileLang()
            self._executors[path] = Executor(self._tree.evaluator.anew(bodies), (TORCH, tilelang.dialect)), tilelang
        return self._executors[path]


@cached_on_argument
def compared_shapes(tree: Tree) -> ComparedShapes:
    """The verdicts of a tree."""
    return ComparedShapes(tree)


def _again(bodies: Bodies, body: Body) -> Body:
    """The same function among other bodies."""
    bodies.program.load(body.file.path)
    found = bodies.defined(body.file, body.definition) if body.definition is not None else None
    return found or bodies.module(body.file)


def _place(body: Body) -> str:
    start = body.definition.start if body.definition is not None else 0
    return f"{body.file.path} {start}"
