"""A module's names for parts of ``dataclasses``, imported where needed."""

from __future__ import annotations

from opschema_cli.migrate.codemods.new_imports import add_import
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.source.bodies import Body
from opschema_cli.source.resolution import External
from opschema_rules.magi.model import MagiTree


def of_dataclasses(tree: MagiTree, rewrite: Rewrite, body: Body, name: str) -> str:
    """Return ``name`` of the module ``dataclasses``, as it must be written in a body.

    Raises:
        Refused: the module gives the name another meaning.
    """
    wanted = External(f"dataclasses.{name}")
    for written in (name, f"dataclasses.{name}"):
        if tree.bodies.resolve(body, written) == wanted:
            return written
    add_import(rewrite, "dataclasses", name)
    return name
