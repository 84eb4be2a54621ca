"""Detects that a tree holds files of PyTorch's code generator, without importing the rest of the pack."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from opschema_cli.file_kinds import is_yaml
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.yaml import YamlFile
from opschema_rules import TORCH_RELEASES
from opschema_rules.aten.kinds import Kind, is_surely, kind_of, may_be, may_be_meant
from opschema_rules.aten.sightings import SIGHTINGS
from opschema_rules.shipped import shipped_pack

_TEST = re.compile(r"(?:^|/)tests?/")


class AtenOptions(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``tests`` also reads files in test folders. ``native_functions`` is the path of the native_functions.yaml that backends'
    YAML is checked against; without it, and without one in the tree, that of an installed torch is used if ``installed_torch``
    allows it. ``torch`` is a known release (``2.15``) to check against instead. ``kernels`` are the C++ files (paths or
    patterns) that define a backend's kernels; by default, all of the tree.
    """

    tests: bool = False
    native_functions: str = ""
    installed_torch: bool = True
    torch: str = ""
    kernels: tuple[str, ...] = ()


def detect(project: Project, options: AtenOptions) -> bool:
    """Whether a file of the workspace belongs to torchgen."""
    return any(True for _ in files_of(project, options))


def files_of(project: Project, options: AtenOptions) -> Iterator[tuple[Kind, YamlFile]]:
    """Yield torchgen's files in the workspace, each with its kind."""
    for path in project.workspace.files:
        if is_yaml(path) and (options.tests or not _TEST.search(path)) and _may_be(project, path):
            file = project.yaml(path) if claims(project, options, path) else project.guess_yaml(path)
            kind = kind_of(file, project.workspace.file_set) if file is not None else ""
            file = project.yaml(path) if kind else None
            if file is not None and kind:
                yield kind, file


def claims(project: Project, options: AtenOptions, path: str) -> bool:
    """Whether a file belongs to torchgen by name, place or configuration, or clearly by its content."""
    named = path == options.native_functions or may_be_meant(path, project.workspace.file_set)
    return is_yaml(path) and (named or is_surely(project.workspace.peek(path)))


def _may_be(project: Project, path: str) -> bool:
    return may_be_meant(path, project.workspace.file_set) or any(
        held for _, held in project.scan(_HOLDS_FIELDS, [path])
    )


_HOLDS_FIELDS: Reading[bytes, bool] = Reading("aten fields", may_be, bool)


LAZY_PACK = shipped_pack(__name__, detect, AtenOptions, claims, unread=SIGHTINGS, releases=TORCH_RELEASES)
