"""The reader of custom ops that the rules on carriers ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.program import Program
from opschema_cli.workspace import Workspace
from opschema_rules.tileops.custom_ops import Registrations

HEAD = "import torch\nfrom torch.library import custom_op, custom_op as op\n\nNAME = 'kit::g'\n\n\n"


@pytest.mark.parametrize(
    "text",
    [
        "@custom_op('kit::g', mutates_args=())\ndef g(x: torch.Tensor) -> torch.Tensor:\n    return x\n",
        "@op('kit::g', mutates_args=())\ndef g(x: torch.Tensor) -> torch.Tensor:\n    return x\n",
        "def make():\n    @op('kit::g', mutates_args=())\n    def g(x: torch.Tensor) -> torch.Tensor:\n        return x\n",
    ],
    ids=["by its name", "by another name", "in a function"],
)
def test_a_decorated_function_is_an_op_whatever_the_decorator_is_called(text: str) -> None:
    workspace = Workspace(Path("/nowhere"), {"a.py": HEAD + text})
    bodies = Bodies(Program(workspace.files, Project(workspace).python, ["a.py"]), ["a.py"])
    assert [found.body.function.name for found in Registrations(bodies).named("kit::g") if found.body.function] == ["g"]
