"""The devices that the code of a function supports, as the dispatch key for which it is registered."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.source.cpp_text import closed_at
from opschema_rules.bindings.migrations.called_code import CalledCode

COMPOSITE, EVERY_DEVICE = "CompositeImplicitAutograd", "CompositeExplicitAutograd"

_MEMORY = re.compile(
    r"data_ptr|accessor|<<<|AT_DISPATCH|#pragma\s+omp|parallel_for|getCurrent\w*Stream|\w*(?:CUDA|HIP)\w*Guard|\bdata\s*<"
)
_CUDA = re.compile(
    r"<<<|\b(?:Optional)?(?:CUDA|HIP)\w*Guard\b|getCurrent(?:CUDA|HIP)Stream|\bcu(?:blas|dnn|sparse|solver|fft|rand)\w*\s*\("
    r"|\b(?:cuda|hip)[A-Z]\w*\s*\(|\bCHECK\w*(?:CUDA|GPU)\w*\s*\("
)
"""Code that runs only with CUDA, or with HIP, whose tensors torch calls CUDA tensors, too."""

_OTHERS = re.compile(
    r"(?<![A-Za-z])(?i:xpu|sycl|npu|mps|metal|musa|mlu|hpu|gcu|vulkan|opencl|privateuse|acl(?:rt|nn|_))"
    r"|(?<=[a-z])(?:XPU|NPU|MPS|MUSA|MLU|HPU|GCU)|(?<!CUDA)(?<!HIP)Stream\b"
)
"""What suggests a device other than the processor and a GPU of NVIDIA or AMD."""

_ASKS = re.compile(
    r"\bis_(?:cuda|cpu|hip|xpu|mps)\s*\(\s*\)|\bdevice_type\s*\(|\bdevice\(\)\s*\.\s*(?:type|is_\w+)\s*\(|\bk(?:CPU|CUDA|HIP|XPU|MPS)\b"
)
_CHECK = re.compile(r"\b(?:TORCH_(?:CHECK|INTERNAL_ASSERT)\w*|AT_(?:ASSERT|CHECK)\w*|CHECK\w*|assert)\s*\(")
_DEMANDS_CUDA = re.compile(r"\bis_cuda\s*\(\s*\)|==\s*(?:\w+::)*(?:kCUDA|DeviceType::CUDA|CUDA)\b")
_DEMANDS_OTHER = re.compile(r"\|\||!\s*\w|!=|\bis_(?:cpu|hip|xpu|mps)\b|\bkCPU\b")


def accesses_memory(called: CalledCode) -> bool:
    """Whether code accesses the memory of tensors, or runs on one kind of device: autograd and tracers cannot look into it."""
    return any(_MEMORY.search(text) or _needs_cuda(text) for texts in called.bodies for text in texts)


def supported_devices(called: CalledCode) -> str:
    """Return the dispatch key for code that accesses memory: that of one device only if all the code is known, and needs it."""
    needs = [[_needs_cuda(text) for text in texts] for texts in called.bodies]
    text = called.text
    if _ASKS.search(_without_checks(text)) or _OTHERS.search(text) or any(any(one) and not all(one) for one in needs):
        return EVERY_DEVICE
    if any(map(any, needs)):
        return "CUDA"
    return EVERY_DEVICE if called.lost else "CPU"


def _needs_cuda(text: str) -> bool:
    """Whether code only runs with CUDA, by what it calls or by a check."""
    return _CUDA.search(text) is not None or any(
        _DEMANDS_CUDA.search(check) and not _DEMANDS_OTHER.search(check) for check in _checks(text)
    )


def _checks(text: str) -> Iterator[str]:
    """Yield the conditions of the checks in code."""
    return (text[match.end() : closed_at(text, match.end())] for match in _CHECK.finditer(text))


def _without_checks(text: str) -> str:
    """Return code without the conditions of its checks."""
    pieces: list[str] = []
    at = 0
    for match in _CHECK.finditer(text):
        if match.end() >= at:
            pieces.append(text[at : match.end()])
            at = closed_at(text, match.end())
    return "".join((*pieces, text[at:]))
