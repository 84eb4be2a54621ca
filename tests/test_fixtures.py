"""The fixture repositories' own tests, where no other test runs them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.aten.pack import PACK
from tests.command import TILEKIT

ATENKIT, BROKEN = TILEKIT.with_name("atenkit"), TILEKIT.with_name("atenkit_broken")


def test_the_kernels_of_tilekit_are_built_as_they_should() -> None:
    pytest.importorskip("torch")
    if not any(map(shutil.which, ("g++", "c++", "clang++"))):
        pytest.skip("no C++ compiler for the kernels of tilekit")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_build.py"]
    run = subprocess.run(command, cwd=TILEKIT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


# atenkit

READ_BY_TORCHGEN = """
import json, sys
from torchgen.gen import get_grouped_by_view_native_functions, get_grouped_native_functions, parse_native_yaml
from torchgen.gen_backend_stubs import error_on_missing_kernels, parse_backend_yaml
from torchgen.packaged.autograd.load_derivatives import load_derivatives

native, tags = "aten/native_functions.yaml", "aten/tags.yaml"
parsed = parse_native_yaml(native, tags)
grouped = get_grouped_native_functions(parsed.native_functions)
get_grouped_by_view_native_functions(parsed.native_functions)
infos, _ = load_derivatives("autograd/derivatives.yaml", native, tags)
found = parse_backend_yaml("backend/atenkit.yaml", grouped, parsed.backend_indices)
keys = (found.backend_key, found.autograd_key)
error_on_missing_kernels(
    parsed.native_functions, found.backend_indices, *keys, found.class_name, "backend/kernels.cpp"
)
print(json.dumps([*map(str, keys), len(parsed.native_functions), len(infos)]))
"""


def test_torchgen_takes_atenkit() -> None:
    pytest.importorskip("torchgen")
    command = [sys.executable, "-c", READ_BY_TORCHGEN]
    run = subprocess.run(command, cwd=ATENKIT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == ["PrivateUse1", "AutogradPrivateUse1", 28, 11]


def found_in(fixture: Path) -> list[str]:
    """The findings of the pack `aten` in a fixture."""
    workspace = Workspace(fixture)
    linted = lint_files([PACK], {path: workspace.source(path).text for path in workspace.files})
    return [
        f"{item.place.path}:{position.line}:{position.column}: {item.name}"
        for item in linted.diagnostics
        for position in [linted.position(item.place)]
    ]


def test_lint_finds_nothing_in_atenkit() -> None:
    assert found_in(ATENKIT) == []


def test_lint_finds_each_fault_of_atenkit_broken() -> None:
    assert found_in(BROKEN) == [
        "aten/native_functions.yaml:5:3: unknown-field",
        "aten/native_functions.yaml:12:10: unknown-dispatch-key",
        "aten/native_functions.yaml:21:22: schema-type",
        "aten/native_functions.yaml:21:48: schema-spelling",
        "autograd/derivatives.yaml:2:3: derivative-unknown-name",
        "backend/atenkit.yaml:6:5: kernel-missing",
        "backend/atenkit.yaml:7:5: repeated-backend-operator",
        "backend/kernels.cpp:5:39: kernel-drift",
    ]
