"""The first op of the documentation is found and verified as it stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from opschema_cli.main import run as opschema

DOCS = Path(__file__).resolve().parents[2] / "docs" / "verify.md"
_FILE = re.compile(r"^```\w+\n# (\S+/\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_the_first_op(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    section = DOCS.read_text(encoding="utf-8").partition("## A first op")[2].partition("\n## ")[0]
    files = _FILE.findall(section)
    assert [path for path, _ in files] == ["mylib/manifest/ops.yaml", "mylib/scale.py"]
    for path, text in files:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    command = section.partition("$ opschema ")[2].partition("\n")[0].split()
    assert opschema([*command, "--cells", "9"]) == 0
    out = capsys.readouterr().out
    assert "Passed: 9 cells of 1 op on cpu-sim: 9 within tolerance" in out, out
