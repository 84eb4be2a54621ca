"""The pack for PyTorch's own schemas, put together from its parts."""

from __future__ import annotations

from opschema_cli.lint.pack import Pack, StubMaker, collect_migrations, collect_rules
from opschema_rules.aten import migrations, rules
from opschema_rules.aten.describe import describe
from opschema_rules.aten.detection import AtenOptions, claims, detect
from opschema_rules.aten.examples import example_files
from opschema_rules.aten.kernel_bodies import with_bodies
from opschema_rules.aten.load import load
from opschema_rules.aten.operator_table import operators
from opschema_rules.aten.scaffold import scaffold
from opschema_rules.aten.schemas import SCHEMAS
from opschema_rules.aten.sightings import SIGHTINGS
from opschema_rules.aten.stubs import backend_sources, is_generated, make_stubs
from opschema_rules.aten.torch_changes import torch_changes
from opschema_rules.aten.torch_uses import torch_uses

_RULES = collect_rules(rules)

PACK = Pack(
    name="aten",
    summary="PyTorch's own schemas: native_functions.yaml, derivatives.yaml, tags.yaml and the YAML of backends",
    detect=detect,
    load=load,
    rules=_RULES,
    options=AtenOptions,
    example=example_files,
    operators=operators,
    describe=describe,
    migrations=collect_migrations(migrations),
    claims=claims,
    unread=SIGHTINGS,
    torch_uses=torch_uses,
    torch_changes=torch_changes,
    scaffold=scaffold,
    schemas=SCHEMAS,
    stubs=StubMaker(
        backend_sources, make_stubs, is_generated, [rule.code for rule in _RULES if rule.code[3] == "7"], with_bodies
    ),
)
