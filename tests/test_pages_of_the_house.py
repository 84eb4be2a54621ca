"""The pages about the house name modules that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = (ROOT, ROOT / "opschema_cli", ROOT / "rules/opschema_rules")


@pytest.mark.parametrize("page", ["architecture.md", "internals.md"])
def test_each_path_exists(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    paths = {path for path in re.findall(r"`([\w/]+/[\w/]*(?:\.py)?)`", text) if "/" in path}
    assert paths
    missing = [path for path in sorted(paths) if not any((folder / path).exists() for folder in FOLDERS)]
    assert missing == []
