"""Detects YAML files that PaddlePaddle's code generators read, without importing the rest of the pack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.file_kinds import is_cpp, is_yaml
from opschema_cli.lint.unread import Sighting
from opschema_cli.lint.yaml_lists import yaml_lists
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.line_keys import LineKeys
from opschema_cli.source.yaml import Node, YamlFile
from opschema_rules.aten.kinds import items_of
from opschema_rules.shipped import shipped_pack

Kind: TypeAlias = Literal["ops", "compat", "version", "exclude", "onednn", "python"]

_NAMES, _ARGUMENTS, _OUTPUT = (
    LineKeys(*keys, before=rb"-?[ \t]+", after=rb"[ \t]*:[ \t]*\S")
    for keys in ((b"op", b"backward_op"), (b"args",), (b"output",))
)
_FOLDERS = ("inconsistent", "legacy")
"""Folders beside the main files that contain more of them."""

OLD_PIR = "paddle/fluid/pir/dialect/operator/ir"
"""The folder that Paddle kept the operators of the new static graph in before 3.0, beside the main files in ``phi/api/yaml``."""

_BESIDE: dict[str, Kind] = {
    "op_compat.yaml": "compat",
    "op_version.yaml": "version",
    "ops_exclude.yaml": "exclude",
    "backward_exclude.yaml": "exclude",
    "onednn_ops_extra.yaml": "onednn",
    "python_api_info.yaml": "python",
}


class PaddleOptions(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``tests`` also reads files in test folders."""

    tests: bool = False


def _entries(data: bytes) -> int:
    return _ARGUMENTS.count(data) if _NAMES.found(data) and _OUTPUT.found(data) else 0


_ENTRIES = Reading("paddle entries", _entries, int)


def detect(project: Project, options: PaddleOptions) -> bool:
    """Whether a file of the workspace lists operators for Paddle's code generators."""
    return any(True for _ in op_files(project, options))


def op_files(project: Project, options: PaddleOptions) -> Iterator[YamlFile]:
    """The files that list operators."""
    found = yaml_lists(project, _ENTRIES, lambda path: claims(project, options, path), tests=options.tests)
    return filter(_lists_ops, found)


def other_files(project: Project, listed: list[YamlFile]) -> Iterator[tuple[Kind, YamlFile]]:
    """The files beside those that list operators."""
    folders = {home(file.path) for file in listed}
    for path in project.workspace.files:
        kind = _BESIDE.get(path.rpartition("/")[2])
        if kind is not None and home(path) in folders and (file := project.yaml(path)) is not None:
            yield kind, file


def home(path: str) -> str:
    """The folder of the main files that a file belongs to."""
    folder = path.rpartition("/")[0]
    if folder.endswith(OLD_PIR):
        return folder.removesuffix(OLD_PIR) + "paddle/phi/api/yaml"
    above, _, last = folder.rpartition("/")
    return above if last in _FOLDERS else folder


def claims(project: Project, options: PaddleOptions, path: str) -> bool:
    """Whether a file plainly lists operators for Paddle's code generators."""
    data = project.workspace.peek(path) if is_yaml(path) else b""
    return b"infer_meta" in data and _entries(data) > 0


def _lists_ops(file: YamlFile) -> bool:
    items = [file.document.merged(item) if item.is_mapping else item for item in items_of(file)]
    return 2 * sum(map(_is_entry, items)) > len(items)


def _is_entry(item: Node) -> bool:
    keys = {key.value for key, _ in item.pairs()}
    return len(keys & {"args", "output", "kernel", "infer_meta"}) > 1 and not keys.isdisjoint(("op", "backward_op"))


_TEST = re.compile(r"(?:^|/)tests?/")
_CUSTOM = re.compile(rb"(?m)^[ \t]*PD_BUILD_(?:STATIC_)?OP\s*\(")


def _is_source(path: str) -> bool:
    return is_cpp(path) and not _TEST.search(path)


def _custom(data: bytes) -> int:
    return len(_CUSTOM.findall(data)) if b"PD_BUILD_" in data else 0


SIGHTINGS = (
    Sighting(
        "custom operator of PaddlePaddle",
        "custom operators of PaddlePaddle",
        _is_source,
        Reading("paddle: custom operators", _custom, int),
    ),
)
"""Operators that C++ defines with ``PD_BUILD_OP``."""

LAZY_PACK = shipped_pack(__name__, detect, PaddleOptions, claims, unread=SIGHTINGS)
