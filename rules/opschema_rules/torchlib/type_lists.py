"""Macros of torch that apply a macro to each of some types or operators (``AT_FORALL_SCALAR_TYPES``), by release.

``type_lists.json`` holds of each release what is new or another, and what was removed (null); ``benchmarks.torch_macros`` writes
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from opschema_cli.installed_tables import installed_table
from opschema_cli.requirements import Version, nearest_release, read_version
from opschema_cli.source.preprocessor import Macro

TABLE = Path(__file__).with_name("type_lists.json")


@lru_cache(maxsize=1)
def _tables() -> dict[Version, dict[str, Macro]]:
    found: dict[Version, dict[str, Macro]] = {}
    known: dict[str, Macro] = {}
    for release, changes in installed_table(TABLE, dict[str, dict[str, Macro | None]]).items():
        known = {name: macro for name, macro in {**known, **changes}.items() if macro is not None}
        version = read_version(release)
        assert version is not None
        found[version] = known
    return found


def type_lists(torch: Version) -> Mapping[str, Macro]:
    """The lists of a release; of an unknown release those of the nearest older one."""
    tables = _tables()
    return tables[nearest_release(torch, tuple(tables))]
