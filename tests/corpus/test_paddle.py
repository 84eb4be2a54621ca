"""PaddlePaddle/Paddle at a pinned commit: what is found there was judged, and seeded faults are reported.

``benchmarks.corpus`` does not unpack it, as its history is larger than that of all others; any checkout of that commit will do.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.cache import Cache
from opschema_cli.config import Config
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.testing import Linted
from opschema_cli.workspace import Workspace
from opschema_rules.paddle.pack import PACK
from tests.rules.paddle.faults import FAULTS, missed

JUDGED = Path(__file__).with_name("judged") / "paddle-4b03158d.txt"

TOLERATED = 4
"""Faults of a round that may be missed: those of kernels that a macro declares."""


@pytest.fixture
def paddle(corpus: Path) -> Path:
    root = corpus / "paddle-4b03158d"
    if not root.is_dir():
        pytest.skip("paddle-4b03158d is not below OPSCHEMA_CORPUS")
    return root


def test_what_is_found_is_what_was_judged(paddle: Path) -> None:
    project = Project(Workspace(paddle), Cache.for_workspace(paddle))
    registry = Registry((PACK,))
    linted = Linted(run(Job(registry, resolve_settings(Config(), registry)), project), project)
    found = [
        f"{item.code} {item.place.path}:{linted.position(item.place).line} {linted.text(item.place)}"
        for item in linted.diagnostics
    ]
    assert found == JUDGED.read_text().splitlines()


@pytest.mark.parametrize("at", [0, 1, 2])
def test_faults_are_reported(paddle: Path, at: int) -> None:
    assert len(FAULTS) >= 40
    lost = missed(Workspace(paddle), "paddle/phi/ops/yaml", at=at)
    assert len(lost) <= TOLERATED, lost
