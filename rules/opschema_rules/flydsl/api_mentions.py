"""Names of FlyDSL that a file imports and uses, kept by its content, so that few files are searched for absent ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import msgspec

from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.python import PythonFile
from opschema_rules.flydsl.api_lookup import Lookup
from opschema_rules.flydsl.names import ROOT


class Mentions(msgspec.Struct):
    """The ``imports`` of a file from FlyDSL, in full; the dotted ``uses`` of what they bind; whether these names mean the same in
    the entire file (``plain``).
    """

    imports: list[str] = []
    uses: list[str] = []
    plain: bool = True


def _mentions(file: PythonFile) -> Mentions:
    scopes = list(file.body.walk())
    imports = [item for scope in scopes for item in scope.imports]
    own = [item for item in imports if not item.level and item.module.partition(".")[0] == ROOT]
    names = {item.name for item in own}
    used = {use.name for scope in scopes for use in scope.uses} if names else set[str]()
    inner = {name for scope in scopes if scope is not file.body for name in scope.named}
    return Mentions(
        sorted({".".join(filter(None, [item.module, item.attr.strip("*")])) for item in own}),
        sorted(name for name in used if "." in name and name.partition(".")[0] in names),
        names.isdisjoint(inner) and not any(item.level for item in imports),
    )


_MENTIONS: Reading[PythonFile, Mentions] = Reading("flydsl mentions", _mentions, Mentions)


def may_lack(lookup: Lookup, project: Project, files: list[PythonFile]) -> Iterator[PythonFile]:
    """The files that may mention a name which FlyDSL does not have."""
    found = project.file_readings(_MENTIONS, files)
    return (file for file in files if _may_lack(lookup, file, found[file.path]))


def _may_lack(lookup: Lookup, file: PythonFile, found: Mentions) -> bool:
    module = lookup.tree.bodies.module(file)
    absent = (lookup.absent_of(name) for name in found.imports)
    unknown = (lookup.absent(module, name) for name in found.uses)
    return not found.plain or any(item is not None for item in chain(absent, unknown))
