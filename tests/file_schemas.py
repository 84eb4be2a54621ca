"""The errors that the JSON Schemas of a pack report in the files of a tree."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import yaml

from opschema_cli.lint.pack import Pack
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace


def refused(pack: Pack, root: Path) -> dict[str, list[str]]:
    """The errors by file."""
    project, options = Project(Workspace(root)), pack.options()
    found: dict[str, list[str]] = {}
    for schema in pack.schemas:
        validator = jsonschema.Draft202012Validator(json.loads(schema.text(project, options)))
        for path in schema.files(project, options):
            data = yaml.safe_load((root / path).read_text(encoding="utf-8"))
            found[path] = [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(data)]
    return found
