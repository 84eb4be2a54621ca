"""Plans of workspaces given as texts."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from opschema_cli.project import Project
from opschema_cli.verify.model import Call, Cell, Limits, Plan
from opschema_cli.workspace import Workspace
from opschema_rules.tileops.detection import TileopsOptions
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK


def plans(files: Mapping[str, str], ops: Sequence[str] = (), limits: Limits | None = None) -> dict[str, Plan]:
    """The plans of a workspace made of ``files``, by op."""
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Workspace(Path(folder), files))
        return {plan.op: plan for plan in PACK.plans(project, TileopsOptions(), ops, limits or Limits())}


def plan(entry: str, code: str = "", limits: Limits | None = None) -> Plan:
    """The plan of the example op with the keys of ``entry`` in its manifest entry."""
    fences = [("yaml", entry), *([("python", code)] if code else [])]
    return plans(example_files(fences), ["ExampleFwdOp"], limits)["ExampleFwdOp"]


def cells(found: Plan, row: str, dtype: str = "float16") -> dict[str, Cell]:
    """The plain cells of one row and dtype, by the names of their shapes."""
    return {
        cell.shape: cell
        for cell in found.cells
        if (cell.row, cell.dtype, cell.values, cell.layout) == (row, dtype, "normal", "contiguous")
        if not (cell.seed or cell.again or cell.wrong)
    }


def shapes(call: Call) -> dict[str, tuple[int, ...]]:
    """The shapes of a call's inputs."""
    return {item.name: item.shape for item in call.inputs}


def derived(entry: str, row: str = "r") -> dict[str, dict[str, tuple[int, ...]]]:
    """The shapes of the inputs in every shape of a row, by the names of the shapes."""
    return {name: shapes(cell.call) for name, cell in cells(plan(entry), row).items()}
