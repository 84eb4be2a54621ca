"""The pack for bindings of C++ functions, put together from its parts."""

from __future__ import annotations

from opschema_cli.lint.examples import files_by_language
from opschema_cli.lint.pack import Pack, collect_migrations, collect_rules
from opschema_rules.bindings import migrations, rules
from opschema_rules.bindings.detection import BindingsOptions, claims, detect
from opschema_rules.bindings.load import load
from opschema_rules.bindings.operator_table import operators

_SETUP = """\
from setuptools import setup
from torch.utils.cpp_extension import CppExtension

setup(ext_modules=[CppExtension("_C", ["ops.cpp"])])
"""
"""Examples build the module ``_C`` of ``ops.cpp``, unless they have another ``setup.py``."""

PACK = Pack(
    name="bindings",
    summary="C++ functions that pybind11 and nanobind bind without schemas, their Python callers and stubs",
    detect=detect,
    load=load,
    rules=collect_rules(rules),
    migrations=collect_migrations(migrations),
    options=BindingsOptions,
    example=files_by_language({"cpp": "ops.cpp", "python": "ops.py"}, {"setup.py": _SETUP}),
    operators=operators,
    claims=claims,
)
