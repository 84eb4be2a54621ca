"""Effects of instructions and of the runtime's own functions on the memory that they get."""

from __future__ import annotations

import re

from opschema_rules.pypto.kernel_facts import EffectKind

FIRST_IS_WRITTEN = re.compile(
    r"(?:T(?:LOAD|STORE)(?:_\w+)?|MGATHER|MSCATTER|(?:std::|__builtin_)?mem(?:cpy|move)|copy_(?:gm|ubuf|cbuf|matrix)\w*_to_\w+"
    r"|load_gm_to_\w+|set_(?:ub|gm)_\w+)\Z"
)
"""Instructions that write to their first argument and read the others (pto-isa: ``TLOAD(tile, global)``)."""

COPIES_BYTES = re.compile(r"(?:std::|__builtin_)?mem(?:cpy|move)\Z")
"""Functions that copy bytes, so that a number may become a pointer."""

NO_EFFECT = re.compile(
    r"(?:dcci|dsb|dc_preload|pipe_barrier|set_flag|wait_flag|sizeof|TPREFETCH\w*|TPRINT|printf|cce_printf|assert|likely|unlikely)\Z"
)
"""Functions that do not change the contents of memory."""

CONTEXT = re.compile(r"get_\w+\Z")
"""Runtime functions that take a kernel's ``args`` and read the context after all arguments (``intrinsic.h``)."""

PIPE = re.compile(r"\bTPipe\b")
"""An object that passes tiles between the cores of a task. Its buffer in global memory is only used on A2A3 (pto-isa)."""

OF_MEMORY: dict[str, tuple[EffectKind | None, ...]] = {
    **dict.fromkeys(("TPUSH", "TPOP", "TFREE", "TALLOC"), ("exchanged", None)),
    **dict.fromkeys(("TPUT", "SdmaTput", "UrmaTput"), ("exchanged", "read", None)),
    **dict.fromkeys(("TGET", "SdmaTget", "UrmaTget"), ("written", "exchanged", None)),
    "TNOTIFY": ("exchanged", None, None),
    "TWAIT": ("read", None, None),
    "TTEST": ("read", None, None),
    "st_dev": (None, "written", None),
    "ld_dev": ("read", None),
}
"""Effects of other instructions on the memory of each argument (pto-isa: ``TPUT(remote, local, tile)``); None for a tile, a pipe
or a number.
"""

AS_NUMBER = ("from_u64",)
"""Runtime functions that return a number with the bits of another."""

ATOMIC = re.compile(r"\b(?:AtomicType|Atomic(?:Add|Max|Min)\w*)\b")
"""A template parameter that makes a store add to the present value."""

ATOMIC_MODE = re.compile(r"\b(?:set_atomic_\w+|set_st_atomic_cfg|SetAtomic\w*)\b")
"""A mode in which stores add to the present value."""

TENSOR = re.compile(r"\b(?!GlobalTensor\b)\w*Tensor(?:Desc\w*|Data)?\b[^<>]*\*")
"""The type of a pointer to a tensor's description."""

MEMORY = re.compile(r"(?:data|data_as|addr|data_ptr|get_ptr|ptr|GetPhyAddr)\Z")
"""Members of a tensor that refer to its memory."""

HANDLE = ("buffer",)
"""Members of a tensor that hold its memory."""

SHAPES = re.compile(r"(?:[GS]et(?:Shape|Stride|ValidShape|Layout)\w*|shapes?|strides?|numel|size)\Z")
"""Members that only concern the shape of a tensor."""

MAKES_GLOBAL = "GlobalTensor"
