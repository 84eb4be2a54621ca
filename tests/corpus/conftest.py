"""Linted trees of real repositories, found below ``OPSCHEMA_CORPUS`` (see ``benchmarks/corpus.py``)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from opschema_cli.cache import Cache
from opschema_cli.config import load_config
from opschema_cli.lint.registry import load_registry
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.testing import Linted
from opschema_cli.workspace import Workspace

Lint = Callable[..., Linted]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(folder):
            item.add_marker(pytest.mark.corpus)
            if not os.environ.get("OPSCHEMA_CORPUS"):
                item.add_marker(pytest.mark.skip(reason="OPSCHEMA_CORPUS is not set"))


@pytest.fixture
def corpus() -> Path:
    return Path(os.environ["OPSCHEMA_CORPUS"])


@pytest.fixture
def lint(corpus: Path, tmp_path: Path) -> Lint:
    def lint_tree(name: str, *select: str, latest: bool = False) -> Linted:
        root = corpus / name
        if not root.is_dir():
            pytest.skip(f"{name} is not below OPSCHEMA_CORPUS")
        registry = load_registry()
        config, _ = load_config(root)
        if latest:
            (tmp_path / "opschema.toml").write_text('[tileops]\nspec = ["latest"]\n')
            config, _ = load_config(tmp_path)
        job = Job(registry, resolve_settings(config, registry, select=select))
        project = Project(Workspace(root), Cache.for_workspace(root))
        return Linted(run(job, project), project)

    return lint_tree
