"""Work between the imports of modules."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from opschema_cli.lint.between_imports import between_imports


def test_it_is_done_before_each_module_and_not_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "outer_of_two.py").write_text("import inner_of_two\n")
    (tmp_path / "inner_of_two.py").write_text("")
    (tmp_path / "another_one.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    done: list[bool] = []
    try:
        with between_imports(lambda: done.append("inner_of_two" in sys.modules)):
            importlib.import_module("outer_of_two")
        importlib.import_module("another_one")
        assert done == [False, False]
    finally:
        for name in ("outer_of_two", "inner_of_two", "another_one"):
            sys.modules.pop(name, None)
