"""The expected contents of an operator in the tests of the reader, one line each."""

from __future__ import annotations

from pathlib import Path

from opschema_cli.project import Project
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Unresolved
from opschema_cli.workspace import Workspace
from opschema_rules.torchlib.detection import TorchlibOptions
from opschema_rules.torchlib.load import read_tree
from opschema_rules.torchlib.model import Operator, Registration, Tree


def tree_of(files: dict[str, str] | str, torch: str = "") -> Tree:
    """The operators of some files; a text alone is ``ops.py`` below ``import torch``."""
    if isinstance(files, str):
        files = {"ops.py": "import torch\nfrom torch import Tensor\n" + files}
    workspace = Workspace(Path("/nowhere"), files)
    return read_tree(Project(workspace), TorchlibOptions(torch=torch))


def told(files: dict[str, str] | str) -> dict[str, list[str]]:
    """The operators by their names, each with its schema and what is registered for it."""
    return {name_of(item): [schema_of(item), *map(registered, item.registrations)] for item in tree_of(files).operators}


def name_of(operator: Operator) -> str:
    return " ".join(sorted(operator.names)) if operator.names is not None else "?"


def schema_of(operator: Operator) -> str:
    schema = operator.definition.schema
    if isinstance(schema, Unresolved):
        return "?"
    arguments = ", ".join(("*" if item.kwarg_only else "") + str(item) for item in schema.arguments)
    returns = ", ".join(map(str, schema.returns))
    return f"({arguments}) -> {returns if len(schema.returns) == 1 else f'({returns})'}"


def registered(item: Registration) -> str:
    keys = "?" if item.keys is None else ",".join(sorted(item.keys))
    function = function_name(item.function)
    return " ".join(filter(None, (item.role, keys, function, "(perhaps)" if item.conditional else "")))


def function_name(function: Body | Unresolved | None) -> str:
    if function is None:
        return ""
    return function.function.name if isinstance(function, Body) and function.function is not None else "?"
