"""The table of simpler's contracts by commit, and how it is made of a repository's history."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from opschema_rules.pypto.contract_history import History, pins, read_contracts
from opschema_rules.pypto.contract_table import (
    ABBREVIATED,
    known_contract,
    load_contracts,
    parse_contracts,
    render_contracts,
    without_sources,
)
from opschema_rules.pypto.model import Contract
from tests.rules.pypto.test_contract import HEADER, NAMED, SUM, WIDEST

LIMITS, DUMP = "src/common/task_interface/arg_direction.h", "src/common/platform/include/aicpu/args_dump_aicpu.h"


# What simpler's own history says of these commits: they changed the contract, or are the last before.
@pytest.mark.parametrize(
    ("commit", "rule", "limits"),
    [
        ("e3e4bd53549a4b4e6ccf3e792f5a9b99f5d15890", "sum", (16, 0, 16, 0)),
        ("20548f4327e814dfabb8665399e3ec34a235f7b6", "sum", (16, 32, 64, 128)),
        ("e03faff546d4323243820977e4a7aae40a95a356", "sum", (16, 32, 128, 128)),
        ("19b2c0be5aa6aa1827f0e26648ea34a9513df9ba", "sum", (32, 16, 128, 128)),
        ("096fa4dfbc190911a26064b07be87a6d2f17c45d", "sum", (32, 16, 128, 128)),
        ("b972b288e33353a0f768ef383600c339d61bfbc9", "arg_index", (32, 16, 128, 128)),
        ("8ac5ee8018781e8243a0bd0b30f2aafa2e61b234", "arg_index", (32, 16, 128, 128)),
        ("b1e4bd239a1cf6dff58922ed351f5c5af3c6dcb8", "widest", (32, 16, 128, 128)),
        ("b5261a7f32037ca636ec4d3a664ff98344e3ea1f", "widest", (32, 16, 256, 128)),
        ("6ebaf77156313aaeb5c9457c57b16c45b84ae7e8", "widest", (32, 16, 256, 128)),
    ],
)
def test_what_simpler_demands_at_a_commit(commit: str, rule: str, limits: tuple[int, ...]) -> None:
    found = known_contract(commit)
    assert found is not None
    assert (found.rule, found.certain, found.dumps) == (rule, True, True)
    assert (found.core_tensors, found.core_scalars, found.chip_tensors, found.chip_scalars) == limits


def test_before_there_was_a_dump_nothing_was_read() -> None:
    found = known_contract("7abe56002c2c7cf449c3e5c575484aef0f7d3970")
    assert found is not None
    assert (found.dumps, found.certain) == (False, False)


@pytest.mark.parametrize("commit", ["", "6ebaf7715", "6ebaf77156320000000000000000000000000000", "0" * 40, "HEAD"])
def test_other_commits_are_not_known(commit: str) -> None:
    assert known_contract(commit) is None


def test_it_names_each_commit_once_and_long_enough() -> None:
    assert len(load_contracts()) > 1300
    assert {len(commit) for commit in load_contracts()} == {ABBREVIATED}


def test_what_is_written_reads_back() -> None:
    found = {
        f"{number:012x}".ljust(40, "0"): Contract(core_tensors=number % 3, source="x", dumps=number % 2 > 0)
        for number in range(70)
    }
    again = parse_contracts(render_contracts(found))
    assert again == {commit[:ABBREVIATED]: without_sources(contract) for commit, contract in found.items()}
    assert render_contracts({}) == b"[]\n"


class Repository:
    """A repository that is written here."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        identity = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        command = ["git", "-C", str(self.root), *arguments]
        run = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **identity})
        return run.stdout.strip()

    def commit(self, files: dict[str, str]) -> str:
        for path, text in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
        self.git("add", ".")
        return self.head()

    def pin(self, commit: str) -> str:
        self.git("update-index", "--add", "--cacheinfo", f"160000,{commit},runtime")
        return self.head()

    def head(self) -> str:
        self.git("commit", "-q", "--allow-empty", "-m", "next")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def simpler(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "simpler")


@pytest.fixture
def pypto(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "pypto")


def test_contracts_are_those_of_the_files_at_each_commit(simpler: Repository) -> None:
    files = [
        {"README.md": "a"},
        {LIMITS: HEADER.replace("32", "16")},
        {DUMP: SUM},
        {"docs/args_dump_aicpu.h": WIDEST},
        {DUMP: NAMED, LIMITS: HEADER},
    ]
    commits = [simpler.commit(item) for item in files]
    history = History(simpler.root / ".git")
    assert history.commits() == commits
    found = [history.contract(commit) for commit in commits]
    assert [(item.rule, item.core_tensors, item.dumps, item.certain) for item in found] == [
        ("widest", 32, True, False),
        ("widest", 16, False, False),
        ("sum", 16, True, True),
        ("sum", 16, True, True),
        ("arg_index", 32, True, True),
    ]


def test_what_was_ever_pinned_beside_the_main_branch_is_in_the_table_too(
    simpler: Repository, pypto: Repository
) -> None:
    base = simpler.commit({DUMP: SUM})
    simpler.git("checkout", "-q", "-b", "side")
    pinned, unused = simpler.commit({DUMP: NAMED}), simpler.commit({"a": ""})
    simpler.git("checkout", "-q", "main")
    newest = simpler.commit({DUMP: WIDEST})
    pypto.pin(base)
    pypto.git("checkout", "-q", "-b", "try")
    pypto.pin(pinned)
    pypto.git("checkout", "-q", "main")
    pypto.pin("12" * 20)
    pypto.commit({"runtime.txt": ""})

    assert pins(pypto.root / ".git") == sorted([base, pinned, "12" * 20])
    found = read_contracts(simpler.root / ".git", [pypto.root / ".git", pypto.root / ".git"])
    assert {commit: item.rule for commit, item in found.items()} == {base: "sum", newest: "widest", pinned: "arg_index"}
    assert list(found) == [base, newest, pinned]
    assert unused not in found
