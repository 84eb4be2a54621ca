"""The contract of a runtime that is a submodule of the tree."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.pypto.contract import find_contract
from opschema_rules.pypto.head import PyptoOptions
from opschema_rules.pypto.model import Contract
from opschema_rules.pypto.submodules import Submodule, submodules
from tests.rules.pypto.test_contract import HEADER, SUM, WIDEST

MODULES = """\
[submodule "3rdparty/msgpack-c"]
\tpath = 3rdparty/msgpack-c
\turl = https://github.com/msgpack/msgpack-c.git
[submodule "simpler"]
\tpath = runtime
\turl = https://github.com/hw-native-sys/simpler
"""

LIMITS, DUMP = "src/common/task_interface/arg_direction.h", "src/a2a3/platform/include/aicpu/tensor_dump_aicpu.h"


def git(root: Path, *arguments: str) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, env=environment)


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository that pins a runtime."""
    root = tmp_path / "tree"
    write(root, {".gitmodules": MODULES})
    git(tmp_path, "init", "-q", str(root))
    git(root, "add", ".")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{'93adc386' * 5},runtime")
    return root


def check_out(root: Path, files: dict[str, str], path: str = "runtime") -> None:
    """Lay out a submodule; git does not list what is in it."""
    write(root / path, files)
    git(root, "init", "-q", path)
    git(root / path, "add", ".")
    assert not any(name.startswith(f"{path}/") for name in Workspace(root).files)


def contract(root: Path) -> Contract:
    return find_contract(Project(Workspace(root)), PyptoOptions())


def test_the_submodule_that_is_checked_out_tells(root: Path) -> None:
    check_out(root, {LIMITS: HEADER.replace("32", "16"), DUMP: SUM})
    found = contract(root)
    assert (found.rule, found.core_tensors, found.certain) == ("sum", 16, True)
    assert found.source == f"runtime/{DUMP}"


def test_without_it_the_newest_is_assumed(root: Path) -> None:
    found = contract(root)
    assert (found.rule, found.core_tensors, found.certain) == ("widest", 32, False)
    assert found.source == "the newest runtime is assumed; `runtime` is not checked out"


def test_the_trees_own_runtime_is_meant_first(root: Path) -> None:
    check_out(root, {LIMITS: HEADER.replace("32", "16"), DUMP: SUM})
    write(root, {"src/arg_direction.h": HEADER, "src/args_dump_aicpu.h": WIDEST})
    found = contract(root)
    assert (found.rule, found.core_tensors, found.source) == ("widest", 32, "src/args_dump_aicpu.h")


def test_a_submodule_of_a_submodule_counts(root: Path) -> None:
    write(root, {".gitmodules": '[submodule "pypto"]\n  path = "deps/pypto"\n'})
    check_out(root, {".gitmodules": MODULES, f"runtime/{DUMP}": SUM}, "deps/pypto")
    assert contract(root).source == f"deps/pypto/runtime/{DUMP}"


def test_what_is_checked_out_without_such_files_tells_nothing(root: Path) -> None:
    check_out(root, {"README.md": "", LIMITS: "enum class ArgDirection { kInput };\n"})
    assert not contract(root).certain


@pytest.mark.parametrize("path", ["../outside", "/etc", ".", "", "runtime/../..", "a/../../outside"])
def test_paths_out_of_the_tree_are_not_followed(root: Path, path: str) -> None:
    write(root.parent / "outside", {DUMP: SUM})
    write(root, {".gitmodules": f'[submodule "simpler"]\npath = {path}\nurl = x/simpler.git\n'})
    assert submodules(Project(Workspace(root))) == []
    assert contract(root) == Contract()


def test_a_link_out_of_the_tree_is_not_followed(root: Path) -> None:
    write(root.parent / "outside", {DUMP: SUM})
    (root / "runtime").symlink_to(root.parent / "outside")
    assert not contract(root).certain


def test_submodules_that_hold_each_other_end(root: Path) -> None:
    lines = "".join(f'[submodule "{name}"]\n\tpath = {name}\n' for name in ("a", "b", "c"))
    write(root, {".gitmodules": lines})
    for name in ("a", "b", "c"):
        (root / name).symlink_to(root)
    found = submodules(Project(Workspace(root)))
    assert len(found) == 3 + 9 + 27
    assert found[0] == Submodule("a", is_simpler=False)


def test_garbage_names_no_submodule(root: Path) -> None:
    (root / ".gitmodules").write_bytes(b"[[[\xff\x00path\n= x\n[submodule]\nurl = simpler\npathway = y\n[" * 50)
    assert submodules(Project(Workspace(root))) == []
