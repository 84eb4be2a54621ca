"""Loads the FlyDSL kernels of a tree."""

from __future__ import annotations

from opschema_cli.lint.loaded import Entry, Loaded
from opschema_cli.project import Project
from opschema_rules.flydsl.code import FlyCode
from opschema_rules.flydsl.detection import FlydslOptions


def load(project: Project, options: FlydslOptions) -> Loaded:
    """Load the files, and the code that they are part of, as subjects."""
    code = FlyCode(project, options)

    def count(loaded: Loaded) -> None:
        found = [item for file in code.files for item in file.listed]
        loaded.ops = sum(item.kernel for item in found)
        loaded.entries = [Entry(item.path, item.key, item.span, item.title) for item in found]
        loaded.files = sorted({item.path for item in found})

    return Loaded([code, *code.files], counting=count)
