"""Trees of texts, read by the pack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.magi.detection import MagiOptions
from opschema_rules.magi.examples import example_files
from opschema_rules.magi.load import load_tree
from opschema_rules.magi.model import MagiOp, MagiTree

ReadTree = Callable[..., MagiTree]
ReadOp = Callable[..., MagiOp]


@pytest.fixture
def read_tree(tmp_path: Path) -> ReadTree:
    """Reads the ops of ``kit/ops.py``, given below its imports, and of other files."""

    def read(text: str = "", files: Mapping[str, str] | None = None, *, magi: str = "") -> MagiTree:
        texts = {**(example_files([("python", text)]) if text else {}), **(files or {})}
        return load_tree(Project(Workspace(tmp_path, texts)), MagiOptions(magi=magi))  # type: ignore[arg-type]

    return read


@pytest.fixture
def read_op(read_tree: ReadTree) -> ReadOp:
    """Reads the one op of ``kit/ops.py``."""

    def read(text: str, files: Mapping[str, str] | None = None) -> MagiOp:
        ops = read_tree(text, files).ops
        assert len(ops) == 1
        return ops[0]

    return read
