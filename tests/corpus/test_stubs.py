"""`opschema stubs` of pytorch/xla's YAML at HEAD: what torchgen's own command writes, byte for byte."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import Opschema

YAML = "codegen/xla_native_functions.yaml"
OUTPUT = "torch_xla/csrc"


def test_stubs_of_xla_are_those_of_torchgen(corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("torchgen")
    for name in ("own", "asked"):
        (tmp_path / name / "codegen").mkdir(parents=True)
        shutil.copy(corpus / "aten/xla-head" / YAML, tmp_path / name / YAML)
    command = [sys.executable, "-m", "torchgen.gen_backend_stubs", "--source_yaml", YAML, "--output_dir", OUTPUT]
    subprocess.run(command, cwd=tmp_path / "own", check=True)
    (tmp_path / "asked/opschema.toml").touch()
    done = Opschema(tmp_path / "asked", tmp_path / "cache")("stubs", "--output-dir", OUTPUT, "--apply")
    assert done.code == 0, done.err
    written = {path.name: path.read_bytes() for path in (tmp_path / "asked" / OUTPUT).iterdir()}
    assert written == {path.name: path.read_bytes() for path in (tmp_path / "own" / OUTPUT).iterdir()}
    assert sorted(written) == ["RegisterAutogradXLA.cpp", "RegisterXLA.cpp", "XLANativeFunctions.h"]
