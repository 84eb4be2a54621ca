"""The fix that writes a kernel's declaration, as derived by the migration `derive-signatures`."""

from __future__ import annotations

from opschema_cli.lint.diagnostic import Fix
from opschema_rules.pypto.dict_edits import enum_of, fix_of, spelled
from opschema_rules.pypto.migrations.demands import Demand, demands
from opschema_rules.pypto.migrations.layout import edits_of, line_width
from opschema_rules.pypto.model import Kernel, Program


def declaring(program: Program, kernel: Kernel) -> Fix | None:
    """Return the fix that writes a kernel's signature; None if it is not certain, or if the file has no name for the enum."""
    wanted = next((item for item in demands(program) if isinstance(item, Demand) and item.kernel is kernel), None)
    enum = enum_of(program)
    edits = edits_of(wanted, enum, line_width(program.project)) if wanted is not None and enum else []
    if wanted is None or not edits:
        return None
    return fix_of(program.file, f"declare `{spelled(wanted.directions, enum)}`", edits)
