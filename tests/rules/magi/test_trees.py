"""Whole trees: what is parsed of them, and what is found in the checkouts of real ones."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.magi.detection import MagiOptions, detect
from opschema_rules.magi.examples import example_files
from opschema_rules.magi.load import load_tree
from opschema_rules.magi.model import MagiTree
from opschema_rules.magi.pack import PACK

ReadTree = Callable[..., MagiTree]

OP = "from kit.config import Cfg\n@magi_register_custom_op()\ndef f(x: Tensor, cfg: Cfg) -> Tensor: ...\n"
CONFIG = "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Cfg:\n    a: int\n"

CORPUS = Path(os.environ.get("OPSCHEMA_CORPUS", "."))


def test_files_without_ops_or_their_dataclasses_are_not_parsed(read_tree: ReadTree) -> None:
    files = {"kit/config.py": CONFIG, "kit/far.py": "def broken(:\n", "kit/near.py": "from kit.ops import other\n"}
    tree = read_tree(OP, files)
    assert [branch.dataclass.name for op in tree.ops for branch in op.lowering.branches] == ["Cfg"]
    assert [op.calls for op in tree.ops] == [[]]
    assert tree.project.inputs == {"kit/ops.py", "kit/config.py"}


def test_a_tree_without_the_decorator_is_none_of_this_pack(tmp_path: Path) -> None:
    assert not detect(Project(Workspace(tmp_path, {"a.py": "magi_register_custom_ops = 1\n"})), MagiOptions())
    assert detect(Project(Workspace(tmp_path, {"a.py": "op = magi_register_custom_op\n"})), MagiOptions())


def test_a_sound_tree_has_no_findings() -> None:
    files = {**example_files([("python", OP)]), "kit/config.py": CONFIG}
    assert lint_files([PACK], files).diagnostics == []


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "paths", "contract"),
    [
        ("oplibs/magi-e68e0b0", {"flatten": 42, "simple": 49, "signature": 5}, "dataclasses"),
        ("oplibs/magi-e68e0b0p", {"simple": 28, "signature": 2}, "plain"),
        ("oplibs/LightX2V", {"simple": 4, "signature": 2}, "dataclasses"),
    ],
)
def test_real_trees(name: str, paths: dict[str, int], contract: str) -> None:
    if not (CORPUS / name).is_dir():
        pytest.skip(f"OPSCHEMA_CORPUS has no {name}")
    tree = load_tree(Project(Workspace(CORPUS / name)), MagiOptions())
    assert tree.contract.name == contract
    assert all(op.name is not None and op.lowering.complete for op in tree.ops)
    assert Counter(op.lowering.path for op in tree.ops) == paths
    refused = [op.title for op in tree.ops if op.lowering.problems and not op.fails_on_purpose]
    assert refused == []
