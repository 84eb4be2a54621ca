"""Builds the small workspace of a rule's example: a ``python`` fence is a module below its usual imports; a
fence with a path after its language is that entire file.
"""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.lint.examples import files_of

MODULE = "kit/ops.py"

HEAD = """\
from typing import List, Optional, Tuple

import torch
from torch import Tensor


"""


def example_files(fences: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The files of an example's workspace, by path."""
    return files_of(fences, {"kit/__init__.py": ""}, MODULE, HEAD)
