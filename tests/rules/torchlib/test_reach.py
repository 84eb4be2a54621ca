"""Which Python files are read: those that get hold of ``torch.library``, and those that import from them what registers."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.torchlib.detection import TorchlibOptions, detect
from opschema_rules.torchlib.pack import read_tree

OPS = """import torch


@torch.library.custom_op("kit::f", mutates_args=())
def f(x: torch.Tensor) -> torch.Tensor:
    return x.clone()
"""
FAKE = "@{}.register_fake\ndef _(x):\n    return x\n"
OTHER = "class Module:\n    def register_kernel(self, kernel): ...\n    def register_fake(self, value): ...\n\n\nm = Module()\n"


def read(root: Path, files: dict[str, str]) -> tuple[list[int], set[str]]:
    """How many registrations each operator has, and the files that were parsed."""
    for path, text in {"kit/__init__.py": "", **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    project = Project(Workspace(root))
    tree = read_tree(project, TorchlibOptions())
    return [len(item.registrations) for item in tree.operators], {file.path for file in project.parsed_python}


@pytest.mark.parametrize(
    "fakes",
    [
        "from kit.ops import f\n" + FAKE.format("f"),
        "from kit import ops\n" + FAKE.format("ops.f"),
        "import kit.ops\n" + FAKE.format("kit.ops.f"),
        "from .ops import *\n" + FAKE.format("f"),
        'import torch\n@torch.library.register_fake("kit::f")\ndef _(x):\n    return x\n',
        'from torch.library import register_fake as fake\n@fake("kit::f")\ndef _(x):\n    return x\n',
        'import torch as t\n@t.library.register_fake("kit::f")\ndef _(x):\n    return x\n',
        'from torch import (\n    nn,\n    library,\n)\n@library.register_fake("kit::f")\ndef _(x):\n    return x\n',
    ],
)
def test_a_registration_in_another_file_is_found(tmp_path: Path, fakes: str) -> None:
    alone, _ = read(tmp_path / "alone", {"kit/ops.py": OPS})
    registrations, _ = read(tmp_path / "both", {"kit/ops.py": OPS, "kit/fakes.py": fakes})
    assert registrations == [alone[0] + 1]


def test_the_register_fake_of_another_library_is_not_read(tmp_path: Path) -> None:
    others = {f"kit/other{n}.py": OTHER + FAKE.format("m") for n in range(3)}
    operators, parsed = read(tmp_path, {"kit/ops.py": OPS, **others})
    assert (len(operators), parsed) == (1, {"kit/ops.py"})


@pytest.mark.parametrize("text", [OTHER, "custom_op = make()\ncustom_op.body.append(1)\n", "# a library of kernels\n"])
def test_a_tree_that_never_names_torch_library_is_not_the_packs(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.py").write_text(text)
    assert not detect(Project(Workspace(tmp_path)), TorchlibOptions())


def test_a_comment_on_torch_library_makes_nothing_be_read(tmp_path: Path) -> None:
    operators, parsed = read(tmp_path, {"kit/a.py": "# as torch.library.custom_op does\n", "kit/b.py": OTHER})
    assert (operators, parsed) == ([], {"kit/a.py"})
