"""Findings on backends out of PyTorch's tree against torch, which loaded each of them (``backend_trees.txt``)."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import pytest

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK
from tests.rules.torchlib.backend_trees import BackendTree, backend_trees
from tests.rules.torchlib.cpp_oracle import verdicts

PINNED = {"opschema.toml": '[torchlib]\ntorch = "2.13"\n'}

#: What torch or the compiler refuses without a finding, and why.
UNSEEN = {
    "macro pastes names: dup": "does not compile",
    "native reuse: swap": "functions of torch are not followed",
}

ACCEPTED = {"dup": "REG506"}
"""Code that torch accepts with a warning, and the rule that reports it."""


def reported(files: dict[str, str]) -> list[Diagnostic]:
    found = lint_files(PACK, {**files, **PINNED}).diagnostics
    return [item for item in found if item.severity is not Severity.INFO]


@pytest.mark.parametrize("tree", backend_trees(), ids=lambda tree: tree.name)
def test_a_backend(tree: BackendTree) -> None:
    found = reported(tree.files)
    fault = tree.name.partition(": ")[2]
    if tree.verdict != "ok":
        assert bool(found) is (tree.name not in UNSEEN)
    elif tree.name.startswith("stable: "):  # torch refuses each call of it
        assert [item.severity for item in found] == [Severity.ERROR]
    else:
        assert [item.code for item in found] == ([ACCEPTED[fault]] if fault in ACCEPTED else [])


def test_how_many() -> None:
    right = [tree for tree in backend_trees() if ": " not in tree.name]
    refused = [tree for tree in backend_trees() if tree.verdict != "ok"]
    assert len(right) >= 30
    assert len(refused) >= 170


@pytest.mark.skipif(not os.environ.get("OPSCHEMA_SLOW"), reason="compiles C++ for two minutes")
def test_the_verdicts_are_those_of_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    if not version("torch").startswith("2.13."):
        pytest.skip("the verdicts are those of torch 2.13")
    trees = backend_trees()
    found = verdicts([tree.case for tree in trees], tmp_path)
    assert dict(zip([tree.name for tree in trees], found, strict=True)) == {tree.name: tree.verdict for tree in trees}


BACKEND = """\
import torch

torch.utils.rename_privateuse1_backend("tile")
lib = torch.library.Library("aten", "IMPL", "PrivateUse1")


@torch.library.impl("aten::add.Tensor", "PrivateUse1")
def add(self, other, *, alpha=1):
    return self


def topk(self, k, dim=-1, largest=True, sorted=True):
    return self, self


lib.impl(torch.ops.aten.topk.default, topk)
lib.impl("mm", lambda self, mat2: self, "PrivateUse1")
for name, function in {"neg": lambda self: self, "sub.Tensor": add}.items():
    lib.impl(name, function)
"""


@pytest.mark.parametrize(
    ("before", "after", "codes"),
    [
        ("", "", []),
        ("add.Tensor", "add.Tensr", ["REG504"]),
        ('"neg"', '"negg"', ["REG504"]),
        ("*, alpha=1", "*, beta=1", ["REG509", "REG509"]),
        ("k, dim=-1", "dim, k=-1", ["REG509"]),
        ("return self, self", "return self, self, k", ["REG511"]),
        ('add.Tensor", "PrivateUse1"', 'add.Tensor", "PrivateUse"', ["REG119"]),
        ('add.Tensor", "PrivateUse1"', 'add.Tensor", "Cpu"', ["REG119"]),
        ('add.Tensor", "PrivateUse1"', 'add.Tensor", "tile"', []),
        ('add.Tensor", "PrivateUse1"', 'add.Tensor", "TILE"', []),
        ('self, "PrivateUse1")', 'self, "Tile")', ["REG119"]),
        ('self, "PrivateUse1")', 'self, "PrivateUse")', ["REG119"]),
        ('lib.impl("mm"', 'lib.impl("mm", lambda self, mat2: self)\nlib.impl("mm"', ["REG510"]),
        ('"neg": ', '"mm": ', ["REG509", "REG510"]),
        ('lib.impl("mm"', 'if torch.cuda.is_available():\n    lib.impl("mm"', []),
    ],
)
def test_a_backend_in_python(before: str, after: str, codes: list[str]) -> None:
    text = BACKEND.replace(before, after, 1)
    assert sorted(item.code for item in reported({"tile/__init__.py": text})) == codes


@pytest.mark.parametrize(
    ("between", "override", "reported"),
    [
        ("", "", True),
        ("more = lib\n", "", True),
        ("", ", allow_override=True", False),
        ("lib._destroy()\nlib = torch.library.Library('aten', 'IMPL')\n", "", False),
        ("del lib\nlib = torch.library.Library('aten', 'IMPL')\n", "", False),
        ("lib = torch.library.Library('aten', 'IMPL')\n", "", False),
    ],
)
def test_a_second_kernel_after_the_first_library_is_gone(between: str, override: str, reported: bool) -> None:
    code = (
        "import torch\n\nlib = torch.library.Library('aten', 'IMPL')\nlib.impl('neg', lambda x: x, 'CUDA')\n"
        f"{between}lib.impl('neg', lambda x: x + 0, 'CUDA'{override})\n"
    )
    assert bool(lint_files([PACK], {"kit.py": code}, ["REG510"]).diagnostics) is reported
