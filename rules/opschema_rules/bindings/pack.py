"""The pack for bindings of C++ functions, put together from its parts."""

from __future__ import annotations

from opschema_cli.lint.pack import Pack, collect_migrations, collect_rules
from opschema_rules.bindings import migrations, rules
from opschema_rules.bindings.detection import BindingsOptions, claims, detect
from opschema_rules.bindings.examples import example_files
from opschema_rules.bindings.load import load
from opschema_rules.bindings.operator_table import operators

PACK = Pack(
    name="bindings",
    summary="C++ functions that pybind11 and nanobind bind without schemas, their Python callers and stubs",
    detect=detect,
    load=load,
    rules=collect_rules(rules),
    migrations=collect_migrations(migrations),
    options=BindingsOptions,
    example=example_files,
    operators=operators,
    claims=claims,
)
