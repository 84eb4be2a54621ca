"""`drop-carrier` on TileOPs before a person dropped its carriers: the same is left, whatever the hack is called."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from opschema_cli.testing import lint_files, migrate_files
from opschema_rules.tileops.pack import PACK
from tests.command import Opschema

PARENT, FIX = "tileops-bfae9be4-parent", "tileops-bfae9be4"
HACK = re.compile(r"device_carrier|_register_generative_custom_op|is_generative|generative-op carve-out", re.IGNORECASE)

TOUCHED = {
    "scripts/validate_manifest.py",
    "tests/test_ops_manifest.py",
    "tests/test_validate_manifest.py",
    "tileops/manifest/elementwise_generative.yaml",
    "tileops/ops/elementwise/__init__.py",
    "tileops/ops/elementwise/_base.py",
    "tileops/ops/elementwise/alibi.py",
    "tileops/ops/elementwise/sinusoidal.py",
}
"""The files that the human's commit changes."""

RENAMED = {
    r"device_carrier": "phantom_ref",
    r"_register_generative_custom_op": "_bind_sourceless",
    r"is_generative": "lacks_tensors",
    r"positional_forward_params = _": "taken = _",
    r"\bpositional_forward_params\b": "taken",
    r"AlibiFwdOp": "SlopeBiasFwdOp",
    r"SinusoidalFwdOp": "WaveTableFwdOp",
    r"_OP_REGISTRY": "_LIVE_OPS",
    r"_instance_key": "_handle",
    r"_eager_forward": "_run_now",
    r"\b_wrapped\b": "_traced",
    r"\bout_shape_fn\b": "shaped",
    r"elementwise_generative": "elementwise_sourceless",
    r"(?<=elementwise/)alibi(?=\.py)|(?<=from \.)alibi\b": "slope_bias",
    r"(?<=elementwise/)sinusoidal(?=\.py)|(?<=from \.)sinusoidal\b": "wave_table",
    r"validate_manifest": "vet_manifest",
    r"check_l1_signature": "hold_signature",
    r"check_l0": "hold_schema",
}


def renamed(text: str) -> str:
    """A text, or a path, with every name of the hack changed."""
    for pattern, name in RENAMED.items():
        text = re.sub(pattern, name, text)
    return text


def texts(root: Path) -> dict[str, str]:
    """The files of a tree that say anything of ops or manifests."""
    paths = (path for path in root.rglob("*") if path.suffix in (".py", ".yaml", ".md", ".toml") and path.is_file())
    return {path.relative_to(root).as_posix(): path.read_text() for path in paths}


@pytest.fixture
def parent(corpus: Path) -> Path:
    root = corpus / PARENT
    if not root.is_dir():
        pytest.skip(f"{PARENT} is not below OPSCHEMA_CORPUS")
    return root.resolve()


def test_the_hack_is_gone_whatever_it_is_called(parent: Path) -> None:
    before = texts(parent)
    found = migrate_files(PACK, "drop-carrier", before)
    changed = {path: text for path, text in found.files.items() if text != before[path]}
    assert changed.keys() <= TOUCHED
    for path, text in found.files.items():
        if path.startswith(("tileops/", "scripts/", "tests/")):
            assert not HACK.search(text), path
    linted = lint_files([PACK], found.files, ["CAR101", "CAR102", "CAR103", "CAR104", "CAR105", "CAR106"])
    assert linted.codes() == []

    other = {renamed(path): renamed(text) for path, text in before.items()}
    again = migrate_files(PACK, "drop-carrier", other)
    expected = {renamed(path): renamed(text) for path, text in changed.items()}
    assert {path: text for path, text in again.files.items() if text != other[path]} == expected


def test_op_classes_and_manifest_are_those_of_the_human(parent: Path, corpus: Path) -> None:
    """But for the notes that the human added, and for the default that the constructors do not have."""
    found = migrate_files(PACK, "drop-carrier", texts(parent))
    for name in ("alibi", "sinusoidal"):
        path = f"tileops/ops/elementwise/{name}.py"
        human = (corpus / FIX / path).read_text()
        assert found.files[path] == re.sub(r"    Note:\n(?:        .*\n)+\n", "", human)
    path = "tileops/ops/elementwise/_base.py"
    assert found.files[path] == (corpus / FIX / path).read_text()
    path = "tileops/manifest/elementwise_generative.yaml"
    human = (corpus / FIX / path).read_text().replace(", default: float16}", "}")
    one_row = re.compile(r"  - \{.*dtypes: \[float16, bfloat16\].*\}\n")
    assert one_row.sub("", human) == re.sub(r"  - \{.* dtype: b?float16, .*\}\n", "", found.files[path])


@pytest.mark.skipif(find_spec("tilelang") is None, reason="TileOPs' own checks need tilelang")
def test_tileops_passes_its_own_checks(parent: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    shutil.copytree(parent, folder)
    opschema = Opschema(folder, tmp_path / "cache")
    done = opschema("migrate", "drop-carrier", "--apply", "--allow-dirty", timeout=300)
    assert done.code == 0, done.out + done.err
    assert "Nothing to migrate" in opschema("migrate", "drop-carrier", "--apply", "--allow-dirty", timeout=300).out

    def run(*command: str, cwd: Path = folder) -> tuple[int, str]:
        ran = subprocess.run(
            [sys.executable, *command],
            cwd=cwd,
            env={"PYTHONPATH": ".", "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        return ran.returncode, ran.stdout

    assert run("scripts/validate_manifest.py")[0] == 0
    for op in ("AlibiFwdOp", "SinusoidalFwdOp"):
        command = ("-B", "scripts/validate_manifest.py", "--strict", "--check-op", op)
        assert run(*command) == run(*command, cwd=parent)
    tests = ("tests/test_validate_manifest.py", "tests/test_ops_manifest.py")
    code, out = run("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert code == 0, out
