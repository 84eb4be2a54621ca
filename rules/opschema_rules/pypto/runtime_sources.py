"""Reads the contract of a runtime from its sources, and lists where simpler has these."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from opschema_rules.pypto.model import Contract, Program, SignatureRule

TELLING = re.compile(r"(?:arg_direction\.h|aicpu_executor\.cpp|dump_aicpu\.h)\Z")
"""Ends of paths of files that may show the contract."""

_LIMIT = re.compile(r"\b(CORE|CHIP)_MAX_(TENSOR|SCALAR)_ARGS\s*=\s*(\d+)")
_LIMITS = re.compile(r"(?:^|/)arg_direction\.h\Z")
_EXECUTOR = re.compile(r"(?:^|/)aicpu_executor\.cpp\Z")
_DUMP = re.compile(r"(?:^|/)\w*dump_aicpu\.h\Z")

_ARCHES = ("src/a2a3", "src/a5", "src")
SOURCES = (
    "src/common/task_interface/arg_direction.h",
    "src/common/platform/include/aicpu/args_dump_aicpu.h",
    "src/common/platform/include/aicpu/tensor_dump_aicpu.h",
    *(f"{arch}/platform/include/aicpu/tensor_dump_aicpu.h" for arch in _ARCHES),
    "src/runtime/aicpu/aicpu_executor.cpp",
    *(
        f"{arch}/runtime/{runtime}/aicpu/aicpu_executor.cpp"
        for arch in _ARCHES
        for runtime in ("host_build_graph", "tensormap_and_ringbuffer", "aicpu_build_graph", "rt2")
    ),
)
"""Their paths in simpler, in all of its history."""


def contract_of(texts: Mapping[str, str]) -> Contract:
    """Return the contract of a runtime from its sources (path to text); the newest one if they do not show it."""
    executors = [text for _, text in _named(texts, _EXECUTOR)]
    found = Contract(names_entry=not executors or any("ORCH_ENTRY_SYMBOL" in text for text in executors))
    for path, text in _named(texts, _LIMITS):
        limits = {(where, what): int(number) for where, what, number in _LIMIT.findall(text)}
        if not limits:
            continue
        found = replace(
            found,
            core_tensors=limits.get(("CORE", "TENSOR"), 0),
            core_scalars=limits.get(("CORE", "SCALAR"), 0),
            chip_tensors=limits.get(("CHIP", "TENSOR"), 0),
            chip_scalars=limits.get(("CHIP", "SCALAR"), 0),
            source=path,
            limits_source=path,
            dumps=False,
        )
    rules = {rule: path for path, text in _named(texts, _DUMP) if (rule := _of_dump(text))}
    if len(rules) != 1:
        return replace(found, dumps=found.dumps or bool(rules))
    (rule, path), *_ = rules.items()
    return replace(found, rule=rule, source=path, certain=True, dumps=True)


_ADDS = re.compile(r"^[ \t]*void[ \t]+add_output\s*\(([^)]*)\)(?!\s*=\s*delete)", re.MULTILINE)


def takes_tensors(program: Program) -> bool:
    """Whether ``add_output`` of a program's runtime accepts existing tensors, as far as the tree shows."""
    taken = [found for text in _texts(program, r"(?:.*/)?pto_types\.h") for found in _ADDS.findall(text)]
    return not taken or any("TensorCreateInfo" not in item for item in taken)


def keeps_old_memory(program: Program) -> bool:
    """Whether a program's runtime leaves old data in the memory of ``OUT`` tensors, as far as the tree shows: older ones copied
    all tensors to the device, or filled these with zeros.
    """
    texts = _texts(program, r"host/runtime_maker\.cpp")
    return all("ArgDirection::OUT" in text and "device_memset(" not in text for text in texts)


def _texts(program: Program, name: str) -> list[str]:
    """Return the texts of a program's runtime files in the tree whose paths end with a match of a pattern."""
    own = re.compile(rf"/{re.escape(program.runtime) or '[^/]+'}/{name}\Z")
    paths = [path for path in program.project.workspace.files if own.search(path)]
    return [source.text for path in paths if (source := program.project.source(path)) is not None]


def _of_dump(text: str) -> SignatureRule | None:
    """Return how the runtime's argument dump reads signatures."""
    if ".arg_index(" in text:
        return "arg_index"
    if "widest" in text:
        return "widest"
    return "sum" if "sig_count()" in text else None


def _named(texts: Mapping[str, str], name: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    return ((path, text) for path, text in texts.items() if name.search(path))
