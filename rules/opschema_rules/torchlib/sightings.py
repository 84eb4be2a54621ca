"""Registrations that the pack does not read: kernels for aten's operators, and functions bound to Python without torch."""

from __future__ import annotations

import re

from opschema_cli.file_kinds import is_cpp
from opschema_cli.lint.unread import Sighting
from opschema_cli.readings import Reading

_TEST = re.compile(r"(?:^|/)(?:tests?/|test_[^/]*\.py\Z|[^/]*_test\.py\Z|conftest\.py\Z)")

_LIBRARY = re.compile(rb"\bLibrary\(\s*[\"']aten[\"']")
_ROW = re.compile(rb"(?m)^[ \t]*\([ \t]*[\"'][A-Za-z_]\w*(?:\.\w+)?[\"'][ \t]*,[ \t]*[A-Za-z_][\w.]*[ \t]*[,)]")
_IMPL = re.compile(rb"\bimpl\(\s*[\"']aten::\w")

_MODULE = re.compile(rb"\b(?:PYBIND11_MODULE|NB_MODULE)\w*\s*\(|\b(?:py|pybind11|nb|nanobind)::module_?\b")
_BINDING = re.compile(rb"\b\w+\.def\(\s*\"\w+\"\s*,")


def _rows(data: bytes) -> int:
    held = b"aten" in data and b"Library(" in data
    return len(_ROW.findall(data)) if held and _LIBRARY.search(data) is not None else 0


def _impls(data: bytes) -> int:
    return len(_IMPL.findall(data)) if b"aten::" in data else 0


def _bindings(data: bytes) -> int:
    bound = (b"_MODULE" in data or b"::module" in data) and _MODULE.search(data) is not None
    return len(_BINDING.findall(data)) if bound else 0


def _is_module(path: str) -> bool:
    return path.endswith(".py") and not _TEST.search(path)


def _is_source(path: str) -> bool:
    return is_cpp(path) and not _TEST.search(path)


ROWS = Reading("torchlib: rows of aten operators", _rows, int)
"""The number of rows of a name and a function in a file that makes a library of the namespace ``aten``."""

KERNELS = Reading("torchlib: kernels of aten operators", _impls, int)
"""The number of calls of ``impl`` for operators of aten."""

SIGHTINGS = (
    Sighting(
        "row that names an aten operator",
        "rows that name aten operators",
        _is_module,
        ROWS,
        if_unread=True,
    ),
    Sighting(
        "kernel of an aten operator",
        "kernels of aten operators",
        _is_module,
        KERNELS,
        if_unread=True,
    ),
    Sighting(
        "binding of pybind11 or nanobind",
        "bindings of pybind11 or nanobind",
        _is_source,
        Reading("torchlib: bindings to Python", _bindings, int),
        only_alone=True,
    ),
)
