"""Manifests with other values: what YAML and Python read in different ways."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from opschema_cli.proof import Files

VALUES = ("1.0e-6", "-0.0", "2", "true", "null", "[1, 2]", '"mean"', "1e-6", ".inf", "0x10", "1_000")
"""Values that YAML reads in different ways."""

CODE = ("1e-6", "-0.0", "2", "True", "None", "(1, 2)", "'mean'", "float('inf')", "10**20", "torch.float16")
"""The like in Python."""


def revalued(files: Files) -> Iterator[Files]:
    """Other defaults, in the manifest or in the code."""
    for value in VALUES:
        yield _yaml(files, lambda text, value=value: re.sub(r"default: [^,}\n]+", f"default: {value}", text))
    for value in CODE:
        yield {
            path: re.sub(r"(eps: [\w |.]+ = )[\w.]+", rf"\g<1>{value}", text) if path.endswith(".py") else text
            for path, text in files.items()
        }


def _yaml(files: Files, change: Callable[[str], str]) -> Files:
    return {path: change(text) if path.endswith(".yaml") else text for path, text in files.items()}
