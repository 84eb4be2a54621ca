"""The words by which a Python file may reach operators through ``torch.ops``, its imports, and whether it may have subclasses of
``torch.autograd.Function``, all read from its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from opschema_cli.importing_files import IMPORTED
from opschema_cli.readings import Reading

_OPS = re.compile(r"torch\.ops\.([\w.]+)")  # without `\b` before it, the search is many times faster
_WORD = re.compile(r"[A-Za-z_]\w*")


def _behind_ops(data: bytes) -> list[str]:
    if b"torch.ops" not in data:
        return []
    return sorted(set(_OPS.findall(data.decode("utf-8", "replace"))))


def words_of(names: Iterable[str]) -> set[str]:
    """The words of dotted names."""
    return {word for name in names for word in name.split(".")}


def _held(data: bytes) -> list[str]:
    """The names to which something of ``torch.ops`` is assigned on one line, or on two."""
    if b"torch.ops" not in data:
        return []
    found: set[str] = set()
    before = ""
    for line in data.decode("utf-8", "replace").splitlines():
        if "torch.ops" in line:
            found.update(_WORD.findall((line if "=" in line else before).partition("=")[0]))
        before = line
    return sorted(found)


BEHIND_OPS: Reading[bytes, list[str]] = Reading("torchlib names behind torch.ops", _behind_ops, list[str])
"""The dotted names after ``torch.ops``, in comments and strings as well."""

HELD: Reading[bytes, list[str]] = Reading("torchlib names of torch.ops", _held, list[str])
"""The variables that hold something of ``torch.ops``."""


def _has_functions(data: bytes) -> bool:
    return b"autograd" in data and b"Function" in data


FUNCTIONS: Reading[bytes, bool] = Reading("torchlib autograd functions", _has_functions, bool)
"""Whether a file may have subclasses of ``torch.autograd.Function``."""

ASKED_LATER = (BEHIND_OPS, HELD, IMPORTED, FUNCTIONS)
"""All readings of the files of a tree with operators."""
