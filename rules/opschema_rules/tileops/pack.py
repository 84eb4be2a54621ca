"""The pack for TileOPs-style manifests, put together from its parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from opschema_cli.lint.pack import Description, FileSchema, Pack, Speed, collect_migrations, collect_rules
from opschema_cli.project import Project
from opschema_rules.tileops import migrations, rules
from opschema_rules.tileops.describe import describe_shapes, describe_spec
from opschema_rules.tileops.detection import TileopsOptions, claims, detect, manifest_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.load import load, specs
from opschema_rules.tileops.manifest_schema import schema_text
from opschema_rules.tileops.model import Manifest
from opschema_rules.tileops.operator_table import operators
from opschema_rules.tileops.touched import touched

if TYPE_CHECKING:
    from opschema_cli.operators.answers import RowAnswer
    from opschema_cli.operators.model import WorkloadRow
    from opschema_cli.verify.model import Limits, Plan


def describe(project: Project, options: TileopsOptions) -> list[Description]:
    """The demands that hold for each manifest, and the shapes that are checked."""
    found = [describe_spec(project, folder, spec) for folder, spec in specs(project, options)]
    facts = list(describe_shapes(_manifests(project, options)))
    return [*found, Description("shapes", facts)] if facts else found


def _manifests(project: Project, options: TileopsOptions) -> list[Manifest]:
    return [subject for subject in load(project, options).subjects if isinstance(subject, Manifest)]


def answers(
    project: Project, options: TileopsOptions, rows: Mapping[str, Sequence[WorkloadRow]]
) -> Mapping[str, Sequence[RowAnswer]]:
    """The answers of the ops' code to workloads."""
    from opschema_rules.tileops.calls.row_answers import row_answers  # not at the top: a lint run does without

    return row_answers(_manifests(project, options), rows)


def plans(project: Project, options: TileopsOptions, ops: Sequence[str], limits: Limits) -> Iterable[Plan]:
    """The plans of ``opschema verify`` for the ops."""
    from opschema_rules.tileops.verify.plans import make_plans  # not at the top: a lint run does without

    return make_plans(_manifests(project, options), ops, limits)


def _manifests_of(project: Project, options: TileopsOptions) -> list[str]:
    return [path for paths in manifest_files(project, options).values() for path in paths]


PACK = Pack(
    name="tileops",
    claims=claims,
    summary="TileOPs-style YAML manifests against their Python op classes",
    detect=detect,
    load=load,
    rules=collect_rules(rules),
    options=TileopsOptions,
    example=example_files,
    operators=operators,
    answers=answers,
    describe=describe,
    migrations=collect_migrations(migrations),
    plans=plans,
    speed=Speed(builds_on="torchlib", touched=touched),
    schemas=(FileSchema("manifest", lambda project, options: schema_text(), _manifests_of),),
)
