"""Reads the contract of each of simpler's commits out of its repository, and writes ``contracts.json``:

    python -m opschema_rules.pypto.contract_history path/to/simpler.git path/to/pypto.git...

The first is simpler's repository. Its main branch is taken, and whatever else the others have ever pinned on any branch.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from opschema_rules.pypto.contract_table import PATH, render_contracts
from opschema_rules.pypto.model import Contract
from opschema_rules.pypto.runtime_sources import SOURCES, contract_of


class History:
    """Simpler's repository. Results are cached."""

    def __init__(self, repository: Path) -> None:
        self.repository = repository
        self._text = cache(lambda blob: _git(self.repository, "cat-file", "blob", blob))
        self._contract = cache(self._of_blobs)

    def commits(self) -> list[str]:
        """The commits of the main branch, oldest first."""
        return _git(self.repository, "rev-list", "--topo-order", "--reverse", "HEAD").split()

    def has(self, commit: str) -> bool:
        """Whether it has a commit with that name."""
        asked = f"{commit}^{{commit}}\n"
        return not _git(self.repository, "cat-file", "--batch-check", text=asked).endswith(" missing\n")

    def contract(self, commit: str) -> Contract:
        """The contract of a commit."""
        listed = _git(self.repository, "ls-tree", "-r", "-z", commit, "--", *SOURCES).split("\0")
        pairs = (entry.split("\t", 1) for entry in listed if entry)
        blobs = {path: meta.split()[2] for meta, path in pairs if meta.split()[1] == "blob"}
        return self._contract(tuple((path, blobs[path]) for path in SOURCES if path in blobs))

    def _of_blobs(self, blobs: Sequence[tuple[str, str]]) -> Contract:
        return contract_of({path: self._text(blob) for path, blob in blobs})


def pins(repository: Path) -> list[str]:
    """Return all commits of other repositories that any commit of a repository has ever pinned, sorted."""
    logged = _git(repository, "log", "--all", "--raw", "--no-abbrev", "-m", "--format=")
    found = {
        name for line in logged.splitlines() for mode, name in _sides(line) if mode == "160000" and set(name) != {"0"}
    }
    return sorted(found)


def _sides(line: str) -> Iterable[tuple[str, str]]:
    """Return the modes and names before and after a change (``:160000 160000 BEFORE AFTER M``), each with the path."""
    old, new, before, after, *_ = (*line.removeprefix(":").split(), "", "", "", "")
    return (old, before), (new, after)


def read_contracts(simpler: Path, pinning: Iterable[Path]) -> dict[str, Contract]:
    """Read the contracts of simpler's commits, by full commit name."""
    history = History(simpler)
    main = history.commits()
    beside = sorted({pin for repository in pinning for pin in pins(repository)} - {*main})
    return {commit: history.contract(commit) for commit in [*main, *filter(history.has, beside)]}


def _git(repository: Path, *arguments: str, text: str = "") -> str:
    command = ["git", "--git-dir", str(repository), *arguments]
    run = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    return run.stdout.decode("utf-8", "replace")


def main(simpler: Path, *pinning: Path) -> None:
    """Write ``contracts.json``."""
    PATH.write_bytes(render_contracts(read_contracts(simpler, pinning)))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
