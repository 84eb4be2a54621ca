"""The files that may mention names which FlyDSL does not have."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from opschema_cli.source.python import PythonFile
from opschema_rules.flydsl.api_lookup import Lookup
from opschema_rules.flydsl.detection import MARK


def may_lack(lookup: Lookup, files: list[PythonFile]) -> Iterator[PythonFile]:
    """Yield the files that import or use an absent name, or whose names mean different things in different functions."""
    return (file for file in files if _may_lack(lookup, file))


def _may_lack(lookup: Lookup, file: PythonFile) -> bool:
    found, module = lookup.tree.words.indexes[file.path], lookup.tree.bodies.module(file)
    absent = (lookup.absent_of(name) for name in found.imports)
    unknown = (lookup.absent(module, name) for name in found.uses)
    return not found.plain or MARK not in file.source.text or any(item is not None for item in chain(absent, unknown))
