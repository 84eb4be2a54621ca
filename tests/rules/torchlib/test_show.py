"""``opschema show`` of an operator."""

from __future__ import annotations

from pathlib import Path

from opschema_cli.lint.pack import Shown
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.torchlib.pack import PACK, TorchlibOptions
from opschema_rules.torchlib.show import show

CODE = """\
import torch
@torch.library.custom_op("ns::foo", mutates_args=())
def foo(x: torch.Tensor, n: int = 3) -> torch.Tensor: ...
@foo.register_fake
def _(input): ...
"""


def _shown(name: str) -> object:
    return show(Project(Workspace(Path("/nowhere"), {"ops.py": CODE})), TorchlibOptions(), name)


def test_schema_and_fake_side_by_side() -> None:
    shown = _shown("ns::foo")
    assert isinstance(shown, Shown)
    assert shown.title == "ns::foo(Tensor x, SymInt n=3) -> Tensor"
    assert shown.places == [("custom_op", "ops.py:2"), ("fake", "ops.py:4")]
    assert [(row.slot, row.implemented, row.note) for row in shown.rows] == [
        ("x", "function: x: torch.Tensor", ""),
        ("n", "function: n: int = 3", ""),
        ("x", "fake: input", "named `input`"),
        ("n", "fake: absent", ""),
    ]


def test_the_closest_names() -> None:
    assert _shown("ns::fooo") == ["ns::foo"]


def test_settings_tell_the_version_and_what_is_not_known(tmp_path: Path) -> None:
    files = {
        "requirements.txt": "torch>=2.4,<2.7\n",
        "kit/ops.py": 'import torch\n\ntorch.library.define("kit::f", "(Tensor x) -> Tensor")\n'
        "torch.library.define(NAMES[0], SCHEMAS[0])\ntorch.library.define(NAMES[1], SCHEMAS[1])\n",
    }
    project = Project(Workspace(tmp_path, files))
    (described,) = PACK.describe(project, PACK.options())
    assert [(item.name, item.value) for item in described.facts] == [
        ("torch", "2.6"),
        ("operators", "1"),
        ("unresolved", "kit/ops.py:4"),
        ("unresolved", "kit/ops.py:5"),
    ]
