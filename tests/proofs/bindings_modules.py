"""Modules that the pack `bindings` finds in a workspace, written down for the oracle that compiles them.

The oracle itself does not use the pack, so that its recorded answers stay valid when the pack's code changes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from opschema_cli.project import Project
from opschema_cli.proof import Files, Observation
from opschema_cli.workspace import Workspace
from opschema_rules.bindings.detection import BindingsOptions
from opschema_rules.bindings.load import read_tree
from opschema_rules.bindings.model import Module
from tests.proofs import bindings_oracle
from tests.proofs.bindings_oracle import MODULES, BoundFunction, BuiltModule


def observe(workspaces: Sequence[Files]) -> list[Observation]:
    """The results of importing the modules of each workspace and calling their functions."""
    return bindings_oracle.observe([_with_modules(files) for files in workspaces])


def _with_modules(files: Files) -> Files:
    texts = {path: text.replace("\r\n", "\n") for path, text in files.items()}
    with tempfile.TemporaryDirectory() as folder:
        tree = read_tree(Project(Workspace(Path(folder), texts)), BindingsOptions())
    return {**texts, MODULES: msgspec.json.encode([_built(module) for module in tree.modules]).decode()}


def _built(module: Module) -> BuiltModule:
    called = [
        BoundFunction(item.name, item.signature.place.span.end, [one.name for one in item.signature.parameters])
        for item in module.bindings
        if item.annotations and item.signature is not None
    ]
    return BuiltModule(module.path, module.built_as or module.name, module.library, called)
