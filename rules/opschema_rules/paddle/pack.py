"""The pack for PaddlePaddle's operator YAML, put together from its parts."""

from __future__ import annotations

from opschema_cli.lint.examples import files_by_language
from opschema_cli.lint.pack import Pack, collect_rules
from opschema_rules.paddle import rules
from opschema_rules.paddle.detection import SIGHTINGS, PaddleOptions, claims, detect
from opschema_rules.paddle.file_schema import SCHEMAS
from opschema_rules.paddle.load import load
from opschema_rules.paddle.operator_table import operators

PACK = Pack(
    name="paddle",
    summary="PaddlePaddle's operator YAML: ops.yaml, backward.yaml and the like, their C++ kernels and op_compat.yaml",
    detect=detect,
    load=load,
    rules=collect_rules(rules),
    options=PaddleOptions,
    example=files_by_language({"yaml": "ops.yaml", "cpp": "kernels.cc"}),
    operators=operators,
    claims=claims,
    unread=SIGHTINGS,
    schemas=SCHEMAS,
)
