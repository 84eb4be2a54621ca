"""The pack for operators of ``torch.library``, put together from its parts."""

from __future__ import annotations

from opschema_cli.lint.pack import Description, Pack, Speed, collect_rules
from opschema_cli.project import Project
from opschema_rules.torchlib import rules
from opschema_rules.torchlib.describe import describe_tree
from opschema_rules.torchlib.detection import TorchlibOptions, claims, detect
from opschema_rules.torchlib.examples import example_files
from opschema_rules.torchlib.load import load, read_tree
from opschema_rules.torchlib.operator_table import operators
from opschema_rules.torchlib.search import reads_on
from opschema_rules.torchlib.sharing import share
from opschema_rules.torchlib.sightings import SIGHTINGS
from opschema_rules.torchlib.torch_uses import torch_uses


def describe(project: Project, options: TorchlibOptions) -> list[Description]:
    """Describe the torch release that the operators are checked against, and what is not known of them."""
    return [describe_tree(read_tree(project, options))]


PACK = Pack(
    name="torchlib",
    claims=claims,
    unread=SIGHTINGS,
    summary="operators of torch.library: schemas against fakes, kernels, autograd and callers",
    detect=detect,
    load=load,
    rules=collect_rules(rules),
    options=TorchlibOptions,
    example=example_files,
    operators=operators,
    describe=describe,
    torch_uses=torch_uses,
    speed=Speed(reads_on=reads_on, shares=share),
)
