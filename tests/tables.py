"""The operator table of a few texts, and what ``opschema show`` prints of an operator in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from opschema_cli.lint.operators import operators_of
from opschema_cli.lint.pack import Pack
from opschema_cli.operators.lookup import close_to, meant_by
from opschema_cli.operators.model import Operator
from opschema_cli.project import Project
from opschema_cli.reporters.operators.show import cells, heading, part_lines
from opschema_cli.workspace import Workspace


class Shown(msgspec.Struct):
    """One operator as ``opschema show`` prints it: title, parts as labels and lines, the cells of the arguments."""

    title: str
    parts: list[tuple[str, str]]
    rows: list[tuple[str, str, str, str]]
    text: str


def table_of(pack: Pack, files: Mapping[str, str], options: object = None) -> list[Operator]:
    """The operators that a pack finds in some texts."""
    project = Project(Workspace(Path("/nowhere"), dict(files)))
    return list(operators_of([pack], project, {pack.name: pack.options() if options is None else options}))


def show(pack: Pack, files: Mapping[str, str], name: str, options: object = None) -> Shown | list[str]:
    """The one operator of a name; else the names that it may mean."""
    project = Project(Workspace(Path("/nowhere"), dict(files)))
    operators = list(operators_of([pack], project, {pack.name: pack.options() if options is None else options}))
    found = meant_by(name, operators)
    if len(found) != 1:
        return [item.name for item in found] or close_to(name, operators)
    parts = [(label, " ".join(line.split())) for label, line in part_lines(found[0], project.source)]
    rows = list(cells(found[0], project.source))
    return Shown(heading(found[0]), parts, rows, found[0].text)


def shown(pack: Pack, files: Mapping[str, str], name: str, options: object = None) -> Shown:
    """The one operator of a name."""
    found = show(pack, files, name, options)
    assert isinstance(found, Shown), found
    return found
