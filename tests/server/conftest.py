"""One server for all tests, over a tree of its own; each test closes what it has opened."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.command import TILEKIT, TOYPACK

if TYPE_CHECKING:
    from tests.server.editor import Editor


@pytest.fixture(scope="session")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """An editor in a copy of the fixture `tilekit` without its findings, with the pack of the engine's tests."""
    pytest.importorskip("pygls", reason="the language server needs pygls")
    from tests.server.editor import Editor

    folder = tmp_path_factory.mktemp("server")
    root = Path(shutil.copytree(TILEKIT, folder / "tilekit"))
    config = root / "opschema.toml"
    shutil.copy(TOYPACK, root)
    config.write_text(
        'ignore = ["CAR"]\nplugins = ["toypack.py"]\n' + config.read_text(encoding="utf-8"), encoding="utf-8"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPSCHEMA_CACHE_DIR", str(folder / "cache"))
        found = Editor(root)
    yield found
    found.close()
