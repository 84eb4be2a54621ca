"""YAML that lists operators but is not torchgen's: reports name it, and it is not read."""

from __future__ import annotations

import re

from opschema_cli.file_kinds import is_yaml
from opschema_cli.lint.unread import Sighting
from opschema_cli.readings import Reading
from opschema_cli.source.line_keys import LineKeys

_TEST = re.compile(r"(?:^|/)tests?/")

_ITEM = rb"[ \t]*-[ \t]+"
_ENTRY = LineKeys(b"op", b"func", before=_ITEM, after=rb"[ \t]*:[ \t]*\S")
_OVERLOAD = LineKeys(b"op", before=_ITEM, after=rb"[ \t]*:[ \t]*(?:\w+::)?[a-z_]\w*\.\w+[ \t]*(?=\r?(?:\n|\Z))")
_OF_EXECUTORCH = LineKeys(b"kernels", b"arg_meta", b"kernel_name", b"type_alias", before=rb"[ \t]+(?:-[ \t]+)?")
_ATEN = re.compile(rb"aten(?<!\waten)(?:::|\.)[a-z_]")
"""A qualified name. A pattern with a constant prefix is searched for the fastest."""
_TAKES_TENSOR = re.compile(rb"\w\([^()]*?\bTensor\b")
_RETURNS = re.compile(rb"\)[ \t]*->")

FEWEST = 3
"""Minimum number of lines that name operators for a file to count as a table of them."""


def executorch_entries(data: bytes) -> int:
    """The number of entries of a file that ExecuTorch's code generator may read; 0 of another file."""
    return _ENTRY.count(data) if _OVERLOAD.count(data) >= FEWEST or _OF_EXECUTORCH.found(data) else 0


def _rows(data: bytes) -> int:
    if not (b"aten" in data or (b"Tensor" in data and b"->" in data)) or executorch_entries(data):
        return 0
    rows = sum(map(_names_operator, data.split(b"\n")))
    return rows if rows >= FEWEST else 0


def _names_operator(line: bytes) -> bool:
    """Whether a line names an operator of ATen, or has the schema of one, before a comment."""
    if b"aten" not in line and b"->" not in line:
        return False
    text = line.partition(b"#")[0]
    if _ATEN.search(text) is not None:
        return True
    taken = _TAKES_TENSOR.search(text) if b"->" in text and b"Tensor" in text else None
    return taken is not None and _RETURNS.search(text, taken.end()) is not None


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
