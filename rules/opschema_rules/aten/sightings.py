"""YAML that lists operators and is none of torchgen's: it is named in reports, and not read."""

from __future__ import annotations

import re

from opschema_cli.file_kinds import is_yaml
from opschema_cli.lint.unread import Sighting
from opschema_cli.readings import Reading

_TEST = re.compile(r"(?:^|/)tests?/")

_ENTRY = re.compile(rb"(?m)^[ \t]*-[ \t]+(?:op|func)[ \t]*:[ \t]*\S")
_OF_EXECUTORCH = re.compile(rb"(?m)^[ \t]+(?:-[ \t]+)?(?:kernels|arg_meta|kernel_name|type_alias)[ \t]*:")
_OVERLOAD = re.compile(rb"(?m)^[ \t]*-[ \t]+op[ \t]*:[ \t]*(?:\w+::)?[a-z_]\w*\.\w+[ \t]*\r?$")
_NAMES_OPERATOR = re.compile(rb"[^#\n]*(?:\baten(?:::|\.)[a-z_]\w*|\w\([^)\n]*\bTensor\b[^\n]*\)[ \t]*->)")

FEWEST = 3
"""Lines that name operators from which on a file is a table of them."""


def executorch_entries(data: bytes) -> int:
    """The number of entries of a file that ExecuTorch's code generator may read; 0 of another file."""
    if b"op:" not in data and b"func:" not in data:
        return 0
    overloads = len(_OVERLOAD.findall(data)) >= FEWEST
    return len(_ENTRY.findall(data)) if overloads or _OF_EXECUTORCH.search(data) is not None else 0


def _rows(data: bytes) -> int:
    if not (b"aten" in data or b"Tensor" in data) or executorch_entries(data):
        return 0
    lines = (line for line in data.split(b"\n") if b"aten" in line or b"Tensor" in line)
    rows = sum(_NAMES_OPERATOR.match(line) is not None for line in lines)
    return rows if rows >= FEWEST else 0


def _concerns(path: str) -> bool:
    return is_yaml(path) and not _TEST.search(path)


SIGHTINGS = (
    Sighting(
        "YAML file that lists operators",
        "YAML files that list operators",
        _concerns,
        Reading("aten: YAML that lists operators", _rows, int),
        per_file=True,
    ),
)
