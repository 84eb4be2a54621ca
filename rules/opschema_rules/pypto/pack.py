"""The pack for the kernels of pypto's runtime, put together from its parts."""

from __future__ import annotations

from opschema_cli.lint.pack import Description, Pack, collect_migrations, collect_rules
from opschema_cli.project import Project
from opschema_rules.pypto import migrations, rules
from opschema_rules.pypto.contract import find_contract
from opschema_rules.pypto.describe import describe_programs
from opschema_rules.pypto.detection import PyptoOptions, claims, detect
from opschema_rules.pypto.examples import example_files
from opschema_rules.pypto.load import load
from opschema_rules.pypto.model import Program, SpecEntry
from opschema_rules.pypto.operator_table import operators


def describe(project: Project, options: PyptoOptions) -> list[Description]:
    """Describe the workspace's runtime, programs and entries."""
    subjects = load(project, options).subjects
    programs = [item for item in subjects if isinstance(item, Program)]
    entries = [item for item in subjects if isinstance(item, SpecEntry)]
    return [describe_programs(find_contract(project, options), programs, entries)]


PACK = Pack(
    name="pypto",
    claims=claims,
    summary="kernels of pypto's runtime: signatures against the orchestration that submits them",
    detect=detect,
    load=load,
    rules=collect_rules(rules),
    options=PyptoOptions,
    example=example_files,
    operators=operators,
    describe=describe,
    migrations=collect_migrations(migrations),
)
