"""Builds the small workspace that a rule's example stands in: a ``python`` fence is a module below its usual imports; a
fence with a path after its language is that file, whole.
"""

from __future__ import annotations

from collections.abc import Sequence

MODULE = "kit/ops.py"

HEAD = """\
from typing import List, Optional, Tuple

import torch
from torch import Tensor


"""


def example_files(fences: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The files of an example's workspace, by path."""
    files = {"kit/__init__.py": ""}
    for info, text in fences:
        language, _, path = info.partition(" ")
        if path:
            files[path.strip()] = text
        elif language == "python":
            files[MODULE] = HEAD + text
    return files
