"""A real editor: Neovim types a fault into a manifest, sees it, applies the fix and sees it gone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pygls", reason="the language server needs pygls")

from tests.command import TILEKIT

NVIM = shutil.which("nvim")
MANIFEST = "tilekit/manifest/elementwise.yaml"


@pytest.mark.skipif(NVIM is None, reason="Neovim is not installed")
def test_neovim_shows_a_fault_and_applies_its_fix(tmp_path: Path) -> None:
    root = Path(shutil.copytree(TILEKIT, tmp_path / "tilekit"))
    environment = {
        **os.environ,
        "OPSCHEMA_CACHE_DIR": str(tmp_path / "cache"),
        "XDG_STATE_HOME": str(tmp_path),
        "WALK_PYTHON": sys.executable,
        "WALK_ROOT": str(root),
        "WALK_FILE": str(root / MANIFEST),
    }
    script = Path(__file__).with_name("walkthrough.lua")
    command = [str(NVIM), "--clean", "--headless", "-c", f"luafile {script}", "-c", "cquit"]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=60)
    opened, typed, fixed, end = (json.loads(line) for line in done.stdout.splitlines())
    assert opened["done"], done.stderr
    assert typed["codes"] == ["DTY101"]
    assert fixed["done"]
    assert "float16" in fixed["step"]
    assert end == {"line": '      input: {dtype: "float16 | bfloat16 | float32"}', "modified": True}
    assert (root / MANIFEST).read_bytes() == (TILEKIT / MANIFEST).read_bytes(), "nothing was saved"
