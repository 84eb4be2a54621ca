"""Builds the small workspace that a rule's example stands in.

A ``python`` fence is the module of the kernels, below its imports; one with a path after its language is that entire file. A
``toml`` fence is ``opschema.toml``; without one, the newest FlyDSL is configured.
"""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.lint.examples import files_of
from opschema_rules.flydsl.contract import RELEASES

KERNELS_PATH = "kit/kernels.py"

HEAD = """\
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx


"""

BASE_FILES = {
    "opschema.toml": f'[flydsl]\nversion = "{RELEASES[-1]}"\n',
    "kit/__init__.py": "",
}


def example_files(fences: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the files of an example's workspace, by path."""
    return files_of(fences, BASE_FILES, KERNELS_PATH, HEAD)
