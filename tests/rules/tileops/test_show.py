"""`opschema show`: an entry beside its class, argument by argument."""

from __future__ import annotations

from pathlib import Path

from opschema_cli.lint.pack import Shown
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import TileopsOptions
from opschema_rules.tileops.show import show

OP = """\
class ExampleFwdOp(Op):
    def __init__(self, N: int, eps: float = 0.25, *, kernel_map=None): ...

    def forward(self, x): ...
"""


def test_declarations_stand_beside_the_code(tmp_path: Path) -> None:
    texts = example_files([("yaml", 'signature:\n  static_dims: {N: "x.shape[-1]"}\n'), ("python", OP)])
    shown = show(Project(Workspace(tmp_path, texts)), TileopsOptions(), "ExampleFwdOp")
    assert isinstance(shown, Shown)
    assert [(row.slot, row.declared, row.implemented) for row in shown.rows] == [
        ("x", "input float16 | float32", "forward(x)"),
        ("N", "static dim x.shape[-1]", "__init__(N: int)"),
        ("eps", "param float = 0.5", "__init__(eps: float = 0.25)"),
        ("kernel_map", "-", "__init__(*, kernel_map=None)"),
        ("y", "output same_as(x)", ""),
    ]
