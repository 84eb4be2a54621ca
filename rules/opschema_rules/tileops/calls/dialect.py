"""Meaning of names of the tree's own package for the code of op classes, where it is interpreted without installed backends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call, ExecutionDialect, ExternalFunction
from opschema_cli.evaluation.execution.executor import Executor
from opschema_cli.evaluation.execution.outcomes import Outcome, Raised
from opschema_cli.evaluation.execution.values import Device, Object, Opaque, TensorValue
from opschema_cli.evaluation.tensors.dialect import TORCH
from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.program import Program
from opschema_rules.tileops.calls import manifest_value


def _own_functions(program: Program, load_manifest: ExternalFunction) -> Callable[[str], ExternalFunction | None]:
    """Return the functions of the package that only do bookkeeping, or read known data: the manifest."""
    known: dict[str, ExternalFunction] = {
        _DISPATCH: lambda call: _dispatch_kernel(program, call),
        "get_or_build_kernel": lambda call: call.opaque("a kernel"),
        "load_manifest": load_manifest,
    }
    return lambda name: known.get(name.rpartition(".")[2])


_DISPATCH = "dispatch_kernel"


def _dispatch_kernel(program: Program, call: Call) -> object:
    """The method with which every constructor chooses kernels: no shape depends on it, and it reads the modules of all kernels.

    What else its class writes to objects it may write.
    """
    this = call.positional[0] if call.positional else None
    if not isinstance(this, Object):
        return NOT_KNOWN
    this.attributes["kernel_map"] = call.opaque("the kernels of an op")
    this.attributes["_overridden_keys"] = frozenset()
    this.attributes["_instance_key"] = this.cls.ref.name
    for owner in program.lineage(this.cls.ref):
        if program.own_member(owner, _DISPATCH) is not None:
            # What a hook writes, it writes to classes, when these are made.
            methods = [item for item in owner.cls.body.functions if item.name != "__init_subclass__"]
            for name in sorted(set[str]().union(*(item.sets for item in methods))):
                this.attributes.setdefault(name, call.opaque(f"`{name}`, which `{_DISPATCH}()` may write"))
    return None


def evaluator(program: Program) -> TreeEvaluator:
    """An evaluator for the modules of a program, which executors share."""
    return TreeEvaluator(Bodies(program, program.package_files))


def executor(
    evaluator: TreeEvaluator, load_manifest: ExternalFunction, others: Sequence[ExecutionDialect] = ()
) -> Executor:
    """An executor for the modules of an evaluator's program; ``others`` are further dialects."""
    own = ExecutionDialect(
        functions=_own_functions(evaluator.program, load_manifest),
        attribute=manifest_value.attribute,
        operator=manifest_value.operator,
        reads_own=True,
    )
    return Executor(evaluator, (TORCH, own, *others))


UNDECLARED = Opaque("an argument that the manifest does not declare")
"""Argument for a parameter of a constructor that the manifest says nothing of."""

CALLED_ON = Device()
"""The device of all tensors that an op is called with, unless it rejects them; see :func:`called_on_devices`."""


def called_on_devices(run: Callable[[dict[str, object]], Outcome], tensors: dict[str, object]) -> Outcome:
    """The outcome of a call with tensors on one device. If that raises, the outcome with each on a device that may be another one:
    an op may demand that some of its inputs are on the host.
    """
    outcome = run(tensors)
    if not isinstance(outcome, Raised) or sum(isinstance(item, TensorValue) for item in tensors.values()) < 2:
        return outcome
    return run({name: _elsewhere(item) if isinstance(item, TensorValue) else item for name, item in tensors.items()})


def _elsewhere(tensor: TensorValue) -> TensorValue:
    return TensorValue(tensor.shape, tensor.dtype, Device())
