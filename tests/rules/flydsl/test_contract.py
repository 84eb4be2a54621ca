"""Which FlyDSL a tree is for: as configured, as its own copy shows, or as its requirements pin it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from packaging.version import Version

from opschema_cli.errors import OpschemaError
from opschema_cli.project import Project
from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.flydsl.contract import RELEASES, Contract, Era, find_contract, known
from opschema_rules.flydsl.detection import JIT_ARGUMENT, FlydslOptions, reads
from opschema_rules.flydsl.examples import example_files
from opschema_rules.flydsl.pack import PACK

ERAS = {
    **dict.fromkeys(("5e64bba2", "202793de", "fd6ff00c", "e5f41ee5"), Era.BAKED),
    **dict.fromkeys(("29a9dd66", "d6a8a723", "4cffe5f6", "5301ec17", "250c11d"), Era.DYNAMIC),
    **dict.fromkeys(("1dfedbf4", "1f8f3325", "801fc4e6"), Era.SPLIT),
    "11c4174d": Era.CURRENT,
}
"""Commits of FlyDSL: from_dlpack becomes dynamic in 29a9dd66 and static again, with the shape in the key, in 1dfedbf4."""

STATIC = """\
class TensorAdaptor:
    def __init__(self, tensor):
        self.tensor = tensor

    def mark_layout_dynamic(self):
        return self
"""
DYNAMIC = STATIC.replace(
    "self.tensor = tensor", "self.tensor = tensor\n        self.adaptor.mark_layout_dynamic(-1, 1)"
)


def contract(files: dict[str, str], option: str = "") -> Contract:
    return find_contract(Project(Workspace(Path("/nowhere"), files)), option)


@pytest.mark.corpus
@pytest.mark.parametrize(("commit", "era"), ERAS.items())
def test_era_of_flydsl_itself(commit: str, era: Era) -> None:
    corpus = os.environ.get("OPSCHEMA_CORPUS")
    path = Path(corpus or "", "flydsl", commit, "python", JIT_ARGUMENT)
    if not corpus or not path.is_file():
        pytest.skip("FlyDSL's checkouts are not below OPSCHEMA_CORPUS")
    found = contract({f"python/{JIT_ARGUMENT}": path.read_text(encoding="utf-8")})
    assert found == Contract(frozenset({era}), (), f"python/{JIT_ARGUMENT}", own=True)
    assert found.surely(era)


@pytest.mark.parametrize(
    ("text", "era"),
    [
        (STATIC, Era.BAKED),
        (DYNAMIC, Era.DYNAMIC),
        (STATIC + "\n\nclass Torch(TensorAdaptor):\n    dynamic_layout = True\n", Era.SPLIT),
        ("def from_torch_tensor(tensor): ...\n", Era.CURRENT),
    ],
)
def test_era_of_a_copy(text: str, era: Era) -> None:
    assert contract({f"third_party/flydsl-src/{JIT_ARGUMENT}": text}).eras == {era}


def test_a_copy_of_no_known_form_says_nothing() -> None:
    assert not contract({JIT_ARGUMENT: "class TensorArgument: ...\n", "requirements.txt": "flydsl==0.1.8\n"}).source


def test_two_copies_say_nothing() -> None:
    files = {f"a/{JIT_ARGUMENT}": STATIC, f"b/{JIT_ARGUMENT}": DYNAMIC, "requirements.txt": "flydsl==0.1.8\n"}
    assert not contract(files).source


@pytest.mark.parametrize(
    ("path", "text", "releases"),
    [
        ("requirements.txt", "flydsl==0.3.1\n", "0.3.1"),
        ("requirements.txt", "torch\nFlyDSL >= 0.2.2 , < 0.3  # the DSL\n", "0.2.2 to 0.2.4"),
        ("requirements.txt", "flydsl[dev]~=0.2.3; python_version > '3.9'\n", "0.2.3 to 0.2.4"),
        ("requirements.txt", "flydsl (>=0.4)\n", f"0.4.0 to {RELEASES[-1]}"),
        ("requirements.txt", "flydsl===0.4.1 --hash=sha256:00\n", "0.4.1"),
        ("requirements.txt", "flydsl!=0.1.5,<=0.1.7\n", "0.1.6 to 0.1.7"),
        ("requirements.txt", "flydsl==0.3.*\n", "0.3.0 to 0.3.4.1"),
        ("ci/requirements-dev.in", "flydsl<0.1.9\n", "0.1.5 to 0.1.8"),
        ("pyproject.toml", '[project]\ndependencies = ["torch", "flydsl==0.3.1"]\n', "0.3.1"),
        ("pyproject.toml", '[tool.poetry.dependencies]\nflydsl = "^0.2.1"\n', "0.2.1 to 0.2.4"),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\nflydsl = {version = "~0.3.1", optional = true}\n',
            "0.3.1 to 0.3.4.1",
        ),
        ("pyproject.toml", '[tool.poetry.dependencies]\nflydsl = "0.1.8"\n', "0.1.8"),
        ("pyproject.toml", '[tool.poetry.dependencies]\nflydsl = ">=0.4.1,<1"\n', f"0.4.1 to {RELEASES[-1]}"),
        ("setup.py", 'FLYDSL = "flydsl==0.2.0"\nsetup(install_requires=[FLYDSL])\n', "0.2.0"),
        ("setup.cfg", "[options]\ninstall_requires =\n    flydsl>=0.4.2\n", f"0.4.2 to {RELEASES[-1]}"),
        # What pins nothing.
        ("requirements.txt", "# flydsl==0.1.8 was slow\nflydsl\n", ""),
        ("requirements.txt", "my-flydsl==0.1.8\nflydsl-extras==0.1.8\n", ""),
        ("requirements.txt", "flydsl @ git+https://github.com/ROCm/FlyDSL@5e64bba2\n", ""),
        ("requirements.txt", "flydsl>=1000\n", ""),
        ("requirements.txt", "flydsl==0.x\n", ""),
        ("pyproject.toml", '[project.entry-points."opschema.packs"]\nflydsl = "kit.head:HEAD"\n', ""),
        ("pyproject.toml", '[tool.poetry.dependencies]\nflydsl = "*"\n', ""),
        ("docs/notes.txt", "flydsl==0.1.8\n", ""),
    ],
)
def test_pins(path: str, text: str, releases: str) -> None:
    found = contract({path: text})
    assert (known(found.releases), found.source) == (releases, path if releases else "")


def test_what_every_pin_admits() -> None:
    files = {"requirements.txt": "flydsl>=0.2\n", "ci/requirements.txt": "flydsl<0.2.2\n"}
    found = contract(files)
    assert (known(found.releases), found.source) == ("0.2.0 to 0.2.1", "requirements.txt")
    assert found.surely(Era.SPLIT)
    assert not contract({**files, "setup.py": '"flydsl==0.4.2"\n'}).source


def test_a_range_over_two_eras_is_sure_of_neither() -> None:
    found = contract({"requirements.txt": "flydsl>=0.1.8,<0.2.1\n"})
    assert found.name == "baked or split"
    assert not found.surely(Era.BAKED)
    assert found.surely(Era.BAKED, Era.SPLIT)


def test_nothing_is_sure_where_nothing_tells() -> None:
    assert not contract({"kit/kernels.py": "import flydsl\n"}).surely(*Era)


@pytest.mark.parametrize(
    ("option", "era"), [("0.1.8", Era.BAKED), ("0.2.1", Era.SPLIT), ("0.2.2", Era.CURRENT), ("9", Era.CURRENT)]
)
def test_the_configuration_goes_before_all(option: str, era: Era) -> None:
    found = contract({f"python/{JIT_ARGUMENT}": STATIC, "requirements.txt": "flydsl==0.3.1\n"}, option)
    assert found == Contract(frozenset({era}), (Version(option),), "the configuration")


def test_an_option_that_is_no_version() -> None:
    with pytest.raises(OpschemaError, match="`version` is `newest`, which is not a version such as `0"):
        lint_files([PACK], example_files([("toml", '[flydsl]\nversion = "newest"\n'), ("python", "x = fx\n")]))


def test_releases_are_in_order() -> None:
    assert list(RELEASES) == sorted(RELEASES)


@pytest.mark.parametrize(
    ("copies", "option", "own"),
    [
        (["python/"], "", ["python/flydsl/compiler/jit_argument.py", "python/flydsl/expr/derived.py"]),
        ([""], "", ["flydsl/compiler/jit_argument.py", "flydsl/expr/derived.py"]),
        (["python/"], "0.4.2", []),
        (["python/", "copy/"], "", []),
        ([], "", []),
    ],
)
def test_all_of_flydsl_is_read_early_where_it_is_developed(copies: list[str], option: str, own: list[str]) -> None:
    files = {"kernels/a.py": "import flydsl\n", "kernels/b.py": "import torch\n", "flydsl.py/note.txt": "flydsl"}
    for folder in copies:
        files |= {f"{folder}{JIT_ARGUMENT}": STATIC, f"{folder}flydsl/expr/derived.py": "x = 1\n"}
        files |= {f"{folder}flydsl_tools/derived.py": "x = 1\n", f"{folder}flydsl/lib.cpp": "flydsl"}
    project = Project(Workspace(Path("/nowhere"), files))
    assert sorted(reads(project, FlydslOptions(option))) == sorted(["kernels/a.py", *own])


@pytest.mark.parametrize(("number", "early"), [(1, True), (2, False)])
def test_files_that_import_from_kernels_are_read_early_where_they_are_few(number: int, early: bool) -> None:
    kernels = {f"kernels/k{index}.py": "import flydsl\n" for index in range(10)}
    near = {f"tests/test_{index}.py": "from kernels.k0 import build\n" for index in range(number)}
    others = {"kernels/__init__.py": "", "tests/test_other.py": "from kernels import none\nimport torch\n"}
    project = Project(Workspace(Path("/nowhere"), kernels | near | others))
    assert sorted(reads(project, FlydslOptions())) == sorted(kernels | near if early else kernels)
