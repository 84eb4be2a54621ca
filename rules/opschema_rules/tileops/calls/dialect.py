"""Meaning of names of the tree's own package for the code of op classes, where it is interpreted without installed backends."""

from __future__ import annotations

from collections.abc import Callable

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call, ExecutionDialect, ExternalFunction
from opschema_cli.evaluation.execution.executor import Executor
from opschema_cli.evaluation.execution.values import Object, Opaque
from opschema_cli.evaluation.tensors.dialect import TORCH
from opschema_rules.tileops.model import Manifest


def _own_functions(manifest: Manifest) -> Callable[[str], ExternalFunction | None]:
    """Functions of the package that only keep books, or read what is known: the manifest."""
    entries = {entry.name: entry.data for entry in manifest.entries}
    known: dict[str, ExternalFunction] = {"dispatch_kernel": _dispatch_kernel, "load_manifest": lambda call: entries}
    return lambda name: known.get(name.rpartition(".")[2])


def _dispatch_kernel(call: Call) -> object:
    """What every constructor calls to choose kernels: no shape depends on it, and it reads the modules of all kernels."""
    this = call.positional[0] if call.positional else None
    if not isinstance(this, Object):
        return NOT_KNOWN
    this.attributes["kernel_map"] = call.opaque("the kernels of an op")
    this.attributes["_overridden_keys"] = frozenset()
    this.attributes["_instance_key"] = this.cls.ref.name
    return None


@cached_on_argument
def executor_of(manifest: Manifest) -> Executor:
    """The executor of a manifest's package."""
    own = ExecutionDialect(functions=_own_functions(manifest), reads_own=True)
    return Executor(manifest.evaluator, (TORCH, own))


UNDECLARED = Opaque("an argument that the manifest does not declare")
"""Argument for a parameter of a constructor that the manifest says nothing of."""
