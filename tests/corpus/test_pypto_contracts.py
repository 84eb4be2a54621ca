"""The contracts in the table, against simpler's and pypto's histories.

``OPSCHEMA_HISTORIES`` names a folder with their repositories: ``simpler.git``, ``pypto.git`` and ``pypto-lib.git``.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.pypto.contract import find_contract
from opschema_rules.pypto.contract_history import History, pins, read_contracts
from opschema_rules.pypto.contract_table import PATH, known_contract, render_contracts, without_sources
from opschema_rules.pypto.detection import PyptoOptions
from opschema_rules.pypto.model import Contract
from opschema_rules.pypto.runtime_sources import SOURCES, TELLING

MODULES = '[submodule "simpler"]\n\tpath = runtime\n\turl = https://github.com/hw-native-sys/simpler\n'


@pytest.fixture(scope="module")
def histories() -> Path:
    if not os.environ.get("OPSCHEMA_HISTORIES"):
        pytest.skip("OPSCHEMA_HISTORIES is not set")
    return Path(os.environ["OPSCHEMA_HISTORIES"])


def test_the_table_is_current(histories: Path) -> None:
    found = read_contracts(histories / "simpler.git", [histories / "pypto.git", histories / "pypto-lib.git"])
    assert PATH.read_bytes() == render_contracts(found)


def test_what_is_pinned_demands_what_it_does_when_it_is_checked_out(histories: Path, tmp_path: Path) -> None:
    """Of every commit that pypto has ever pinned; its own sources are read wherever they lie."""
    simpler = History(histories / "simpler.git")
    pinned = [commit for commit in pins(histories / "pypto.git") if simpler.has(commit)]
    assert len(pinned) >= 40
    assert [commit for commit in pinned if known_contract(commit) is None] == []
    for commit in pinned:
        root = tmp_path / commit
        repository(root, commit)
        told = contract(root)
        assert told.source == f"simpler `{commit[:8]}`, at which `runtime` is pinned"
        listed = git(simpler.repository, "ls-tree", "-r", "--name-only", commit).splitlines()
        telling = [path for path in listed if TELLING.search(path)]
        assert {*telling} <= {*SOURCES}
        git(simpler.repository, "archive", f"--output={root}/runtime.tar", commit, "--", *telling)
        (root / "runtime").mkdir()
        subprocess.run(["tar", "xf", root / "runtime.tar", "-C", root / "runtime"], check=True)
        checked_out = contract(root)
        assert checked_out.source.startswith("runtime/")
        assert without_sources(told) == without_sources(checked_out), commit


def repository(root: Path, commit: str) -> None:
    """A tree that pins a commit and has nothing checked out."""
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / ".gitmodules").write_text(MODULES)
    git(root / ".git", "update-index", "--add", "--cacheinfo", f"160000,{commit},runtime")


def contract(root: Path) -> Contract:
    return find_contract(Project(Workspace(root)), PyptoOptions())


def git(repository: Path, *arguments: str) -> str:
    run = subprocess.run(["git", "--git-dir", repository, *arguments], check=True, capture_output=True, text=True)
    return run.stdout
