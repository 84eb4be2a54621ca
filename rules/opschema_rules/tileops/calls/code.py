"""Executes the code of op classes: an executor for the classes of each file, and results of earlier runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.code_values import CodeValues, Group
from opschema_cli.evaluation.execution.dialect import Call, ExecutionDialect
from opschema_cli.evaluation.execution.executor import Executor
from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.lint.diagnostic import NotUnderstood
from opschema_cli.regular_files import content_digest
from opschema_rules.tileops.calls.dialect import evaluator, executor
from opschema_rules.tileops.calls.manifest_value import ManifestValue
from opschema_rules.tileops.model import Manifest, OpImplementation


class Agreement(msgspec.Struct, array_like=True):
    """The result of executing a method that never differs from the manifest: what was ``checked``, and what could not be
    followed. While it is stored, the ``doubts`` are unresolved parts at the entry, whose place may change.
    """

    checked: list[str]
    unresolved: list[NotUnderstood]
    doubts: list[str] = msgspec.field(default_factory=list)


class Code:
    """The classes of one file, which are executed together; an agreement is kept while all files that it rests on are the same."""

    def __init__(self, manifest: Manifest, agreements: Group[Agreement]) -> None:
        self._manifest = manifest
        self._agreements = agreements

    @cached_property
    def executor(self) -> Executor:
        """The executor of these classes."""
        return self.executor_with(())

    def executor_with(self, dialects: Sequence[ExecutionDialect]) -> Executor:
        """An executor of these classes that knows further dialects, and takes the objects that other ones have made."""
        return executor(self._evaluator, self._load_manifest, dialects)

    @cached_property
    def _evaluator(self) -> TreeEvaluator:
        return evaluator(self._agreements.program)

    def _load_manifest(self, call: Call) -> object:
        agreements, paths = self._agreements, [file.path for file in self._manifest.files]
        return ManifestValue(_data(self._manifest), agreements.reads_value, lambda: agreements.reads(paths))

    def traced(self, op: OpImplementation) -> OpImplementation:
        """Return the op in the modules that record which files are read."""
        self._agreements.program.load(op.ref.file.path)
        return OpImplementation(op.entry, op.ref, self._agreements.program)

    def known(self, op: OpImplementation, method: str) -> Agreement | None:
        """Return the agreement of a method from an earlier run; ``method`` may be followed by further dependencies."""
        found = self._agreements.get(_key(op, method))
        if found is None:
            return None
        at_entry = [NotUnderstood(op.place, reason) for reason in found.doubts]
        return Agreement(found.checked, [*found.unresolved, *at_entry])

    def keep(self, op: OpImplementation, method: str, found: Agreement) -> None:
        """Keep an agreement for later runs; not where something could not be followed at another place of the manifest."""
        doubts = [item.reason for item in found.unresolved if item.place == op.place]
        others = [item for item in found.unresolved if item.place != op.place]
        if all(item.place.path != op.entry.file.path for item in others):
            self._agreements.put(_key(op, method), Agreement(found.checked, others, doubts))


def _key(op: OpImplementation, method: str) -> str:
    """The key of an agreement, which holds when the entry moves in its file."""
    return content_digest(f"{method} {op.entry.meaning} {op.ref.cls.start}".encode("utf-8", "surrogatepass"))


def code_of(op: OpImplementation) -> Code:
    """The code of the file in which an op's class is defined."""
    manifest, path = op.entry.manifest, op.ref.file.path
    codes = _codes(manifest)
    if path not in codes:
        codes[path] = Code(manifest, _agreements(manifest).group(path))
    return codes[path]


@cached_on_argument
def _codes(manifest: Manifest) -> dict[str, Code]:
    return {}


@cached_on_argument
def _agreements(manifest: Manifest) -> CodeValues[Agreement]:
    return CodeValues(manifest.project, manifest.program, "tileops agreements", Agreement, _entry_states(manifest))


def _entry_states(manifest: Manifest) -> Callable[[str], str]:
    """Return a function that identifies the content of the entry with a name; empty if there is none. Few are requested."""
    entries = {entry.name: entry for entry in manifest.entries}
    return lambda name: (
        content_digest(repr(entries[name].data).encode("utf-8", "surrogatepass")) if name in entries else ""
    )


@cached_on_argument
def _data(manifest: Manifest) -> dict[str, object]:
    return {entry.name: entry.data for entry in manifest.entries}
