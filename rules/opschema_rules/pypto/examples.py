"""Builds the small program that contains a rule's example.

A ``python`` fence stands below the imports of ``kernel_config.py``; a ``cpp`` fence is the body of the orchestration's
entry; a fence with a path is that entire file. Kernels' sources are there, and empty.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

CONFIG, SOURCE = "program/kernel_config.py", "program/orchestration/main.cpp"

HEAD = """\
from pathlib import Path

from simpler.task_interface import ArgDirection as D

_ROOT_DIR = Path(__file__).parent

"""

SOUND = """\
ORCHESTRATION = {
    "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
    "function_name": "aicpu_orchestration_entry",
    "signature": [D.IN, D.IN, D.OUT],
}
KERNELS = [
    {
        "func_id": 0,
        "name": "add",
        "source": str(_ROOT_DIR / "kernels" / "aiv" / "add.cpp"),
        "core_type": "aiv",
        "signature": [D.IN, D.IN, D.OUT],
    },
]
RUNTIME_CONFIG = {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 4}
"""

BODY = """\
const ChipTensor &a = orch_args.tensor(0).ref();
const ChipTensor &b = orch_args.tensor(1).ref();
const ChipTensor &c = orch_args.tensor(2).ref();
CoreTaskArgs p;
p.add_input(a, b);
p.add_output(c);
rt_submit_aiv_task(0, p);
"""

_FRAME = """\
#include "pto_orchestration_api.h"

extern "C" {{

void aicpu_orchestration_entry(const ChipTaskArgs &orch_args) {{
{body}}}

}}  // extern "C"
"""

_KERNEL = re.compile(r'"kernels" / "(\w+)" / "(\w+\.cpp)"')


def example_files(fences: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the files of an example's workspace, by path."""
    files = {CONFIG: HEAD + SOUND, SOURCE: _frame(BODY)}
    for info, text in fences:
        language, _, path = info.partition(" ")
        if path:
            files[path.strip()] = text
        elif language == "python":
            files[CONFIG] = HEAD + _completed(text)
        elif language == "cpp":
            files[SOURCE] = _frame(text)
    kernels = {f"program/kernels/{folder}/{name}": "\n" for folder, name in _KERNEL.findall(files[CONFIG])}
    return {**kernels, **files}


def _completed(text: str) -> str:
    """Return a description with the omitted valid parts added."""
    parts = re.split(r"(?m)^(?=[A-Z_]+ = )", SOUND)
    return text + "".join(part for part in parts if part and not re.search(rf"(?m)^{part.split()[0]} = ", text))


def _frame(body: str) -> str:
    return _FRAME.format(body="".join(f"    {line}\n" if line else "\n" for line in body.splitlines()))
