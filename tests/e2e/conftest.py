"""A small toy workspace, a copy of the fixture repository, and the command that is run in them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.command import TILEKIT, TOYPACK, Opschema


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with two toy files and the toy pack."""
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    shutil.copy(TOYPACK, folder / "toypack.py")
    (folder / "opschema.toml").write_text('plugins = ["toypack.py"]\npacks = ["toy"]\n')
    (folder / "a.toy.yaml").write_text("add: {doc: LOUD, dtype: f8}\n")
    (folder / "sub/b.toy.yaml").write_text("mul: {doc: x}\n")
    return folder


@pytest.fixture
def opschema(root: Path, tmp_path: Path) -> Opschema:
    return Opschema(root, tmp_path / "cache")


@pytest.fixture
def tilekit(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TILEKIT, tmp_path / "tilekit"))
