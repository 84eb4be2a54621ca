"""Every release of torch that opschema knows (``aten/torch-2.15``), against its tables, and its own files against opschema.

What PyTorch ships has no finding, with its torchgen in the tree and without. Random mutants of it are judged by that release's
torchgen, in a process of its own, and by opschema; the table in docs/pytorch-schemas.md holds the figures. ``OPSCHEMA_MUTANTS``
is how many are tried, ``OPSCHEMA_SEED`` which.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks import torch_macros
from opschema_cli.requirements import Version, read_version
from opschema_cli.testing import lint_files
from opschema_rules import TORCH_RELEASES
from opschema_rules.aten.native_history import NATIVE, table_bytes
from opschema_rules.aten.native_table import TABLE as NATIVES
from opschema_rules.aten.native_table import native_text
from opschema_rules.aten.pack import PACK
from opschema_rules.aten.torchgen_history import read_release, table_text
from opschema_rules.aten.torchgen_table import TABLE
from opschema_rules.aten.torchgen_table import known_releases as known_torchgens
from opschema_rules.torchlib.api_history import read_release as functions_that_register
from opschema_rules.torchlib.api_history import table_text as api_text
from opschema_rules.torchlib.api_table import TABLE as API
from opschema_rules.torchlib.type_lists import TABLE as TYPE_LISTS
from opschema_rules.torchlib.type_table import known_releases, type_table

ROOT = Path(__file__).parents[2]
COUNT = os.environ.get("OPSCHEMA_MUTANTS", "100")
SEED = os.environ.get("OPSCHEMA_SEED", "12")


def release(corpus: Path, name: str) -> Path:
    """The folder of one release."""
    folder = corpus / f"aten/torch-{name}"
    if not (folder / "torchgen").is_dir():
        pytest.skip(f"aten/torch-{name} is not below OPSCHEMA_CORPUS")
    return folder


def _version(name: str) -> Version:
    found = read_version(name)
    assert found is not None
    return found


def test_the_releases_that_are_known() -> None:
    versions = tuple(map(_version, TORCH_RELEASES))
    assert known_releases() == versions
    assert known_torchgens() == versions


@pytest.mark.parametrize("name", TORCH_RELEASES)
def test_infer_schema_of_the_release_takes_the_types_of_the_table(corpus: Path, name: str) -> None:
    pytest.importorskip("torch")
    from benchmarks.torch_types import probe, release_function

    table = type_table(_version(name))
    asked = probe(release_function(release(corpus, name)))
    assert asked == {"parameters": table.parameters, "returns": table.returns}


def test_the_table_of_torchgens_is_what_they_say(corpus: Path) -> None:
    releases = {_version(name): read_release(release(corpus, name)) for name in TORCH_RELEASES}
    assert table_text(releases.items()) == TABLE.read_text(encoding="utf-8")


def test_the_schemas_that_come_with_opschema_are_the_releases_own(corpus: Path) -> None:
    folders = [release(corpus, name) for name in TORCH_RELEASES]
    assert table_bytes(folders) == NATIVES.read_bytes()
    assert all(native_text(_version(item.name[6:])) == (item / NATIVE).read_text(encoding="utf-8") for item in folders)


def test_the_functions_of_torch_library_are_the_releases_own(corpus: Path) -> None:
    found = {_version(name): functions_that_register(release(corpus, name)) for name in TORCH_RELEASES}
    assert api_text(found) == API.read_text(encoding="utf-8")


def test_the_lists_of_types_are_those_of_the_releases_headers(corpus: Path) -> None:
    folders = {name: release(corpus, name) / "torch/include" for name in TORCH_RELEASES}
    if not any(folder.is_dir() for folder in folders.values()):
        pytest.skip("the corpus was made without headers")
    found = {name: torch_macros.read(folder) for name, folder in folders.items()}
    assert torch_macros.table_text(found) == TYPE_LISTS.read_text(encoding="utf-8")


# -- its own files ----------------------------------------------------------------------------------------------------


def checkout(folder: Path, *, torchgen: bool) -> Mapping[str, str]:
    """The files of a release where PyTorch's repository keeps them, with its torchgen or without."""
    packaged = folder / "torchgen/packaged"
    found = {
        **{f"aten/src/ATen/native/{path.name}": path for path in (packaged / "ATen/native").glob("*.yaml")},
        **{f"tools/autograd/{path.name}": path for path in (packaged / "autograd").glob("*.yaml")},
    }
    if torchgen:
        modules = [path for path in folder.glob("torchgen/**/*.py") if packaged not in path.parents]
        found |= {path.relative_to(folder).as_posix(): path for path in modules}
        found |= {f"tools/autograd/{path.name}": path for path in (packaged / "autograd").glob("*.py")}
    return {name: path.read_text(encoding="utf-8") for name, path in found.items()}


@pytest.mark.parametrize("torchgen", [True, False], ids=["with torchgen", "without"])
@pytest.mark.parametrize("name", TORCH_RELEASES)
def test_what_the_release_ships_has_no_finding(corpus: Path, name: str, torchgen: bool) -> None:
    files = checkout(release(corpus, name), torchgen=torchgen)
    assert {"aten/src/ATen/native/tags.yaml", "tools/autograd/derivatives.yaml"} <= files.keys()
    assert lint_files([PACK], files).diagnostics == []


@pytest.mark.parametrize("name", TORCH_RELEASES)
def test_a_lone_file_of_the_release_has_no_finding(corpus: Path, name: str) -> None:
    """Its tags are those of the release."""
    text = (release(corpus, name) / "ATen/native/native_functions.yaml").read_text(encoding="utf-8")
    assert lint_files([PACK], {"native_functions.yaml": text}).diagnostics == []
    broken = text.replace("tags: pointwise", "tags: poinwise", 1)
    (found,) = lint_files([PACK], {"native_functions.yaml": broken}).diagnostics
    assert f"torch {name}" in found.message  # which may be the installed one
    assert found.message.endswith(" has no tag `poinwise`; did you mean `pointwise`?")


# -- against its own torchgen -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TORCH_RELEASES[2:])
def test_random_mutants_are_judged_as_the_torchgen_of_the_release_does(corpus: Path, name: str) -> None:
    folder = release(corpus, name)
    path = os.pathsep.join(map(str, (folder, ROOT, ROOT / "rules")))
    command = [sys.executable, "-m", "tests.rules.aten.differential", COUNT, SEED]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    verdicts = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
    assert verdicts.pop("release", None) == name, done.stderr
    assert verdicts.keys() <= {"both accept", "both refuse"}, done.stderr
    assert sum(verdicts.values()) == int(COUNT)
