"""The pack for MagiCompiler's custom ops, put together from its parts."""

from __future__ import annotations

from opschema_cli.lint.pack import Description, Fact, Pack, collect_migrations, collect_rules
from opschema_cli.project import Project
from opschema_rules.magi import migrations, rules
from opschema_rules.magi.detection import MagiOptions, claims, detect
from opschema_rules.magi.examples import example_files
from opschema_rules.magi.load import load, load_tree
from opschema_rules.magi.operator_table import operators


def describe(project: Project, options: MagiOptions) -> list[Description]:
    """The contract that holds."""
    contract = load_tree(project, options).contract
    fact = Fact("contract", contract.name, contract.source)
    return [Description("MagiCompiler", [fact], "set `magi` in `[tool.opschema.magi]`")]


PACK = Pack(
    name="magi",
    claims=claims,
    summary="MagiCompiler's custom ops: signature, dataclasses, meta and backward functions",
    detect=detect,
    load=load,
    rules=collect_rules(rules),
    options=MagiOptions,
    example=example_files,
    operators=operators,
    describe=describe,
    migrations=collect_migrations(migrations),
)
