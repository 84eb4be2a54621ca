"""Detects trees with FlyDSL kernels, and loads what they trace, launch, wrap and describe."""

from __future__ import annotations

from opschema_cli.lint.pack import Description, Entry, Fact, Loaded, Pack, collect_migrations, collect_rules
from opschema_cli.project import Project
from opschema_rules.flydsl import migrations, rules
from opschema_rules.flydsl.examples import example_files
from opschema_rules.flydsl.head import FlydslOptions, detect
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


def describe(project: Project, options: FlydslOptions) -> list[Description]:
    """Which FlyDSL the kernels are for."""
    contract = read_tree(project, options).contract
    fact = Fact("tensor arguments", contract.name, contract.source or "nothing in the tree says which")
    return [Description("FlyDSL", [fact], "set `version` in `[tool.opschema.flydsl]`")]


PACK = Pack(
    name="flydsl",
    summary="FlyDSL kernels: signatures, launches, buffer descriptors, what the compile cache does not see",
    detect=detect,
    load=load,
    rules=collect_rules(rules),
    options=FlydslOptions,
    example=example_files,
    describe=describe,
    migrations=collect_migrations(migrations),
)
