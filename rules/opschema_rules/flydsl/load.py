"""Load the FlyDSL kernels of a tree: what they trace, launch, wrap and describe."""

from __future__ import annotations

from opschema_cli.lint.loaded import Entry, Loaded
from opschema_cli.project import Project
from opschema_rules.flydsl.detection import FlydslOptions
from opschema_rules.flydsl.reader import read_tree


def load(project: Project, options: FlydslOptions) -> Loaded:
    """The tree and each of its traced functions as subjects."""
    tree = read_tree(project, options)
    kernels = [item for item in tree.traced if item.kind == "kernel"]
    loaded = Loaded([tree, *tree.traced], len(kernels))
    for item in tree.traced:
        loaded.entries.append(Entry(item.body.file.path, item.function.span, item.function.outer, item.title))
    loaded.files = sorted({item.body.file.path for item in tree.traced})
    return loaded
