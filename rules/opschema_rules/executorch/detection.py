"""Detects YAML files that ExecuTorch's code generator reads, without importing the rest of the pack."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from opschema_cli.file_kinds import is_yaml
from opschema_cli.lint.unread import Sighting
from opschema_cli.lint.yaml_lists import yaml_lists
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.line_keys import LineKeys
from opschema_cli.source.yaml import Node, YamlFile
from opschema_rules import TORCH_RELEASES
from opschema_rules.aten.kinds import items_of
from opschema_rules.aten.sightings import executorch_entries
from opschema_rules.shipped import shipped_pack

_PLAINLY = LineKeys(b"kernel_name", before=rb"[ \t]+(?:-[ \t]+)?", after=rb"[ \t]*:[ \t]*\S")
_EDGE = frozenset({"inherits", "type_constraint"})
"""Fields of exir's edge dialect, whose file has entries of the same look."""

_OF_EDGE = LineKeys(b"inherits", b"type_constraint", before=rb"[ \t]+")

_OVERLOAD = re.compile(r"(?:\w+::)?[A-Za-z_]\w*\.\w+")


class ExecutorchOptions(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``tests`` also reads files in test folders. ``torch`` is a known release (``2.13``) whose operators ``op`` refers to,
    instead of the one that the tree pins.
    """

    tests: bool = False
    torch: str = ""


_ENTRIES = Reading("executorch entries", executorch_entries, int)


def detect(project: Project, options: ExecutorchOptions) -> bool:
    """Whether a file of the workspace is one that ExecuTorch's code generator reads."""
    return any(True for _ in files_of(project, options))


def files_of(project: Project, options: ExecutorchOptions) -> Iterator[YamlFile]:
    """The files of the workspace that the code generator reads, or that list operators for it."""
    found = yaml_lists(project, _ENTRIES, lambda path: claims(project, options, path), tests=options.tests)
    return filter(_is_read, found)


def claims(project: Project, options: ExecutorchOptions, path: str) -> bool:
    """Whether a file plainly names kernels of operators."""
    return is_yaml(path) and _PLAINLY.found(project.workspace.peek(path))


def _is_read(file: YamlFile) -> bool:
    items = [item for item in items_of(file) if item.is_mapping]
    if any(key.value in _EDGE for item in items for key, _ in item.pairs()):
        return False
    return any(map(_names_kernel, items)) or all(map(_names_overload, items))


def _names_kernel(item: Node) -> bool:
    kernels = item.get("kernels")
    return kernels is not None and any(one.get("kernel_name") is not None for one in kernels.items if one.is_mapping)


def _names_overload(item: Node) -> bool:
    """Whether an entry names an operator and nothing else: such files list the operators of a build."""
    keys = [key.value for key, _ in item.pairs()]
    name = item.get("op")
    return (
        keys == ["op"]
        and name is not None
        and (_OVERLOAD.fullmatch(name.value) is not None or name.value.endswith("_"))
    )


def _unread(data: bytes) -> int:
    return executorch_entries(data) if _OF_EDGE.found(data) else 0


SIGHTINGS = (
    Sighting(
        "YAML file of ExecuTorch's edge dialect",
        "YAML files of ExecuTorch's edge dialect",
        is_yaml,
        Reading("executorch: YAML of the edge dialect", _unread, int),
        per_file=True,
    ),
)

LAZY_PACK = shipped_pack(__name__, detect, ExecutorchOptions, claims, unread=SIGHTINGS, releases=TORCH_RELEASES)
