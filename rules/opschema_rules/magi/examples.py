"""Builds the small workspace that contains a rule's example.

A ``python`` fence is the module of the ops, below its imports; one with a path after its language is that entire file. A
``toml`` fence is ``opschema.toml``; without one, the newest contract is configured.
"""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.lint.examples import files_of

OPS_PATH = "kit/ops.py"

HEAD = """\
from dataclasses import KW_ONLY, InitVar, dataclass, field
from enum import Enum
from typing import ClassVar, Literal, Optional

import torch
from magi_compiler.api import magi_register_custom_op
from torch import Tensor


"""

BASE_FILES = {
    "opschema.toml": '[magi]\nmagi = "dataclasses"\n',
    "kit/__init__.py": "",
}


def example_files(fences: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The files of an example's workspace, by path."""
    return files_of(fences, BASE_FILES, OPS_PATH, HEAD)
