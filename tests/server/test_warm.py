"""After any edits a warm run finds what a first run finds."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("pygls", reason="the language server needs pygls")

from opschema_cli.lint.runner import Job, Outcome, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.server.warm import Superseded, WarmLint
from opschema_cli.session import open_session
from tests.command import TILEKIT

MANIFEST, OPS = "tilekit/manifest/normalization.yaml", "tilekit/ops/norm.py"


def cold(root: Path, overlay: dict[str, str | None]) -> Outcome:
    with closing(open_session(root)) as session:
        project = session.project(overlay)
        registry = session.registry_for(project)
        return run(Job(registry, resolve_settings(session.config, registry)), project)


EDITS = (
    (OPS, "DEFAULT_EPS = 1.0e-6", "DEFAULT_EPS = 1.0e-5"),
    (MANIFEST, "weight: {dtype:", "scale: {dtype:"),
    (MANIFEST, "  signature:\n", "  signature: {\n"),  # no YAML
    (OPS, "def forward(self, x: torch.Tensor, weight", "def forward(self, x: torch.Tensor, scale"),
    (MANIFEST, "  signature: {\n", "  signature:\n"),
    (OPS, None, None),  # closed without saving
)


def test_warm_runs_find_what_cold_ones_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    root = Path(shutil.copytree(TILEKIT, tmp_path / "tilekit")).resolve()
    overlay: dict[str, str | None] = {}
    steps = 0

    def checkpoint() -> None:
        nonlocal steps
        steps -= 1
        if steps == 0:
            raise Superseded

    with closing(open_session(root)) as session:
        warm = WarmLint(session, checkpoint)
        warm.run({}, [])
        seen = set()
        for number, (path, old, new) in enumerate(EDITS):
            text = overlay.get(path) or (root / path).read_text(encoding="utf-8")
            overlay = {name: known for name, known in overlay.items() if name != path}
            if old is not None and new is not None:
                overlay[path] = text.replace(old, new, 1)
            steps = 40 * (number % 2)  # every other run is given up, and its changes are taken up by the next
            try:
                found = warm.run(overlay, [path])
            except Superseded:
                found = warm.run(overlay, [])
            expected = cold(root, overlay).diagnostics
            assert found.diagnostics == expected
            seen.add(repr(expected))
    assert len(seen) >= 5, "nothing is tested where no edit changes what is found"
