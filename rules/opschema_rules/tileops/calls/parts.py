"""The ops of a manifest whose code is executed, and their executions as parts of a run that several processes can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from opschema_cli.lint.rule import Part
from opschema_rules.tileops.model import Implementations, OpImplementation


def judged_ops(ops: Implementations, feature: str) -> Iterator[OpImplementation]:
    """Yield the implemented ops, each entry once; none if the tree's specification does not know the ``feature``."""
    for op in ops.ops if ops.manifest.spec.knows(feature) else ():
        if op.entry.implemented and not ops.manifest.repeats(op.entry):
            yield op


def parts_of(
    feature: str, outcome: Callable[[OpImplementation], object]
) -> Callable[[Implementations], Iterator[Part]]:
    """The parts of a rule that computes an outcome of each op."""
    return lambda ops: (part(op, outcome) for op in judged_ops(ops, feature))


def part(op: OpImplementation, outcome: Callable[[OpImplementation], object]) -> Part:
    """The part of computing an outcome of an op; the ops of one file share the modules that they load."""
    return Part(op.ref.file.path, partial(outcome, op))
