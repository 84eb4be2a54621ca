"""Detects the files of PyTorch's code generator and loads their entries."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from opschema_cli.lint.pack import Entry as Declared
from opschema_cli.lint.pack import Loaded, Pack, collect_migrations, collect_rules
from opschema_cli.project import Project
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import YamlFile
from opschema_cli.workspace import ReadError, is_yaml
from opschema_rules.aten import migrations, rules
from opschema_rules.aten.backend import read_backend
from opschema_rules.aten.derivatives import read_derivatives
from opschema_rules.aten.examples import example_files
from opschema_rules.aten.kinds import MAY_BE, Kind, kind_of
from opschema_rules.aten.model import NativeEntry, NativeFile, TagsFile
from opschema_rules.aten.native import read_native, read_tags
from opschema_rules.aten.reference import find_reference

_TEST = re.compile(r"(?:^|/)tests?/")


class AtenOptions(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``tests`` reads what lies in folders of tests, too."""

    tests: bool = False


def detect(project: Project, options: AtenOptions) -> bool:
    """Whether a file of the workspace is one of torchgen's."""
    return any(True for _ in _files(project, options))


def _files(project: Project, options: AtenOptions) -> Iterator[tuple[Kind, YamlFile]]:
    for path in project.workspace.files:
        if is_yaml(path) and (options.tests or not _TEST.search(path)) and _may_be(project, path):
            file = project.yaml(path)
            kind = kind_of(file) if file is not None else ""
            if file is not None and kind:
                yield kind, file


def _may_be(project: Project, path: str) -> bool:
    try:
        return MAY_BE.search(project.workspace.data(path)) is not None
    except ReadError:
        return False


def load(project: Project, options: AtenOptions) -> Loaded:
    """All of torchgen's files in the workspace, and their entries."""
    files = list(_files(project, options))
    loaded = Loaded(files=[file.path for _, file in files])
    tags = [read_tags(file) for kind, file in files if kind == "tags"]
    natives = [read_native(file, _of_tags(tags, file.path)) for kind, file in files if kind == "native"]
    for listed in tags:
        loaded.subjects += [listed, *listed.entries]
    for native in natives:
        loaded.subjects += [native, *native.entries]
        loaded.ops += len(native.entries)
        loaded.entries += [_declared(entry) for entry in native.entries]
    for kind, file in files:
        reference = find_reference(project, file.path, natives) if kind in ("derivatives", "backend") else None
        if kind == "derivatives":
            derivatives = read_derivatives(file, reference.native if reference is not None else None)
            loaded.subjects += [derivatives, *derivatives.entries]
        backend = read_backend(file, reference) if kind == "backend" else None
        if backend is not None:
            loaded.subjects.append(backend)
            loaded.ops += len(backend.items)
    return loaded


def _of_tags(tags: list[TagsFile], path: str) -> TagsFile | None:
    """The tags of the native_functions.yaml at ``path``: those beside it, or the only ones."""
    folder = path.rpartition("/")[0]
    beside = [item for item in tags if item.path.rpartition("/")[0] == folder]
    return (beside or tags)[0] if len(beside or tags) == 1 else None


def _declared(entry: NativeEntry) -> Declared:
    first = entry.node.items[0] if entry.node.items else entry.node
    return Declared(entry.file.path, first.span, Span(entry.node.start, entry.node.end), entry.name)


def natives_of(loaded: Loaded) -> list[NativeFile]:
    """Every native_functions.yaml among the subjects."""
    return [item for item in loaded.subjects if isinstance(item, NativeFile)]


PACK = Pack(
    name="aten",
    summary="PyTorch's own schemas: native_functions.yaml, derivatives.yaml, tags.yaml and the YAML of backends",
    detect=detect,
    load=load,
    rules=collect_rules(rules),
    options=AtenOptions,
    example=example_files,
    migrations=collect_migrations(migrations),
)
