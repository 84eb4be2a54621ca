"""Dispatch keys of C++, those of ``c10/core/DispatchKey.h`` in torch 2.4 to 2.15."""

from __future__ import annotations

import re
from functools import lru_cache

from opschema_cli.project import Project
from opschema_cli.readings import Reading

HEADER = "c10/core/DispatchKey.h"
_ENUMERATOR = re.compile(rb"(?m)^[ \t]*(\w+)[ \t]*(?:=[^,\n]*)?(?:,|/[/*]|\r?$)")
_LISTED = re.compile(rb"(?m)^[ \t]*_\([ \t]*(\w+)[ \t]*,[ \t]*(\w*)[ \t]*\)")
_COMPONENT = b"extra"
"""The word beside each backend in the header's list of backends. Its list of functionalities has the prefix of their keys there."""

BACKENDS = (
    *("CPU", "CUDA", "HIP", "XLA", "MPS", "IPU", "XPU", "HPU", "VE", "Lazy", "MTIA", "MAIA"),
    *("PrivateUse1", "PrivateUse2", "PrivateUse3", "Meta"),
)
_FUNCTIONALITIES = ("", "Quantized", "Sparse", "SparseCsr", "NestedTensor", "Autograd")

DISPATCH_KEYS = frozenset(
    {
        *(f"{prefix}{backend}" for prefix in _FUNCTIONALITIES for backend in BACKENDS),
        *("Autocast", "AutocastCPU", "AutocastCUDA", "AutocastHPU", "AutocastIPU", "AutocastMAIA", "AutocastMPS", "AutocastMTIA"),
        *("AutocastPrivateUse1", "AutocastXLA", "AutocastXPU", "Autograd", "AutogradFunctionality", "AutogradNestedTensor"),
        *("AutogradOther", "ADInplaceOrView", "BackendSelect", "Batched", "BatchedNestedTensor", "CatchAll", "Conjugate"),
        *("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd"),
        *("CompositeImplicitAutogradNestedTensor", "CustomRNGKeyId", "DeferredInit", "Dense", "FPGA", "Fake", "Functionalize"),
        *("FuncTorchBatched", "FuncTorchBatchedDecomposition", "FuncTorchDynamicLayerBackMode", "FuncTorchGradWrapper"),
        *("FuncTorchDynamicLayerFrontMode", "FuncTorchVmapMode", "MAIA", "Metal", "MkldnnCPU", "Named", "Negative", "NestedTensor"),
        *("PreDispatch", "Python", "PythonDispatcher", "PythonTLSSnapshot", "Quantized", "Sparse", "SparseCsr"),
        *("TESTING_ONLY_GenericMode", "TESTING_ONLY_GenericWrapper", "Tracer", "Undefined", "VmapMode", "Vulkan", "ZeroTensor"),
        *("DefaultBackend", "CPUTensorId", "CUDATensorId", "PrivateUse1_PreAutograd"),
        *("PrivateUse2_PreAutograd", "PrivateUse3_PreAutograd"),
    }
)  # fmt: skip


_MOST = 20
"""Maximum number of prefixes; PyTorch has six."""


def _enumerators(data: bytes) -> list[str]:
    listed = _LISTED.findall(data)
    backends = {name for name, beside in listed if beside == _COMPONENT}
    prefixes = {beside for _, beside in listed if beside != _COMPONENT}
    names = {*_ENUMERATOR.findall(data), *(prefix + name for name in backends for prefix in sorted(prefixes)[:_MOST])}
    return sorted(name.decode("ascii", "replace") for name in names)


_ENUMERATORS = Reading("torchlib dispatch keys of a header", _enumerators, list[str])


@lru_cache(maxsize=2)
def keys_of_tree(project: Project) -> frozenset[str]:
    """The names in the tree's own ``c10/core/DispatchKey.h``, if it is a PyTorch: those of its release, and a vendor's own."""
    paths = [path for path in project.workspace.files if path == HEADER or path.endswith(f"/{HEADER}")]
    return frozenset(name for _, names in project.scan(_ENUMERATORS, paths) for name in names)
