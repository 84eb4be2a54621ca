"""The pack for ExecuTorch's operator lists, put together from its parts."""

from __future__ import annotations

from opschema_cli.lint.examples import files_by_language
from opschema_cli.lint.pack import Pack, collect_rules
from opschema_rules.executorch import rules
from opschema_rules.executorch.detection import SIGHTINGS, ExecutorchOptions, claims, detect
from opschema_rules.executorch.file_schema import SCHEMAS
from opschema_rules.executorch.load import load
from opschema_rules.executorch.operator_table import operators

_EXAMPLES = {"yaml": "functions.yaml", "cpp": "kernels.cpp", "python": "ops.py", "cmake": "CMakeLists.txt"}
"""The files that fences of examples are, by their languages."""

PACK = Pack(
    name="executorch",
    summary="ExecuTorch's operator lists: functions.yaml and the like, their C++ kernels and other declarations",
    detect=detect,
    load=load,
    rules=collect_rules(rules),
    options=ExecutorchOptions,
    example=files_by_language(_EXAMPLES),
    operators=operators,
    claims=claims,
    unread=SIGHTINGS,
    schemas=SCHEMAS,
)
