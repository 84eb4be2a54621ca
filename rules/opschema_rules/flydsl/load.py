"""Load the FlyDSL kernels of a tree: what they trace, launch, wrap and describe."""

from __future__ import annotations

import msgspec

from opschema_cli.lint.loaded import Entry, Loaded
from opschema_cli.project import Project
from opschema_cli.source.text import Span
from opschema_rules.flydsl.code import FlyCode
from opschema_rules.flydsl.detection import FlydslOptions
from opschema_rules.flydsl.model import FlyTree


class _Traced(msgspec.Struct, array_like=True):
    """A traced function of a file, or one of another file that it traces."""

    path: str
    key: Span
    span: Span
    title: str
    kernel: bool


def load(project: Project, options: FlydslOptions) -> Loaded:
    """The files and the code that they are part of as subjects."""
    code = FlyCode(project, options)
    found = [item for file in code.files for item in file.value("traced", list[_Traced], _traced)]
    loaded = Loaded([code, *code.files], sum(item.kernel for item in found))
    loaded.entries = [Entry(item.path, item.key, item.span, item.title) for item in found]
    loaded.files = sorted({item.path for item in found})
    return loaded


def _traced(tree: FlyTree) -> list[_Traced]:
    return [
        _Traced(item.body.file.path, item.function.span, item.function.outer, item.title, item.kind == "kernel")
        for item in tree.traced
    ]
