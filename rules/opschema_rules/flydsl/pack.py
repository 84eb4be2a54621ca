"""The pack for FlyDSL kernels, put together from its parts."""

from __future__ import annotations

from opschema_cli.lint.pack import Description, Fact, Pack, collect_migrations, collect_rules
from opschema_cli.project import Project
from opschema_rules.flydsl import migrations, rules
from opschema_rules.flydsl.code import read_tree
from opschema_rules.flydsl.contract import known
from opschema_rules.flydsl.detection import FlydslOptions, claims, detect
from opschema_rules.flydsl.examples import example_files
from opschema_rules.flydsl.load import load
from opschema_rules.flydsl.operator_table import operators


def describe(project: Project, options: FlydslOptions) -> list[Description]:
    """The FlyDSL release of the kernels, and the number of kernels whose calls can be followed."""
    tree = read_tree(project, options)
    contract = tree.contract
    facts = [Fact("tensor arguments", contract.name, contract.source or "nothing in the tree says which")]
    if contract.releases:
        facts.append(Fact("releases", known(contract.releases), contract.source))
    for title, kind in (("kernels", "kernel"), ("under jit", "jit")):
        found = [item for item in tree.traced if item.kind == kind]
        uncalled = sum(not item.calls for item in found)
        facts.append(
            Fact(title, str(len(found)), f"{uncalled} without a call that can be followed" if uncalled else "")
        )
    return [Description("FlyDSL", facts, "set `version` in `[tool.opschema.flydsl]`")]


PACK = Pack(
    name="flydsl",
    claims=claims,
    summary="FlyDSL kernels: signatures, launches, buffer descriptors, what the compile cache does not see",
    detect=detect,
    load=load,
    rules=collect_rules(rules),
    options=FlydslOptions,
    example=example_files,
    operators=operators,
    describe=describe,
    migrations=collect_migrations(migrations),
)
