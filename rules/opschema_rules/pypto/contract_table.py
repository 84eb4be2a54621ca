"""Simpler's contracts by commit: the demands of a runtime for a tree that only shows which commit it pins.

The table is ``contracts.json``, which ``contract_history`` writes from simpler's repository. It has the commits of the main
branch in their order, and those beside it that somebody has pinned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec.structs import asdict, replace

from opschema_rules.pypto.model import Contract

PATH = Path(__file__).with_name("contracts.json")

ABBREVIATED = 12
"""Number of digits of a commit name in the table; a collision with a commit of another repository is negligible."""

_IN_A_LINE = 9


class _Group(msgspec.Struct):
    """A contract and its commits, several per line."""

    contract: dict[str, str | int | bool]
    commits: list[str]


def known_contract(commit: str) -> Contract | None:
    """Return the contract of one of simpler's commits, by full name; None if it is not in the table."""
    return load_contracts().get(commit[:ABBREVIATED])


@cache
def load_contracts() -> Mapping[str, Contract]:
    """All contracts, by abbreviated commit."""
    return parse_contracts(PATH.read_bytes())


def parse_contracts(data: bytes) -> dict[str, Contract]:
    """Parse the text of a table."""
    groups = msgspec.json.decode(data, type=list[_Group])
    return {
        commit: contract
        for group in groups
        for contract in [msgspec.convert(group.contract, Contract)]
        for line in group.commits
        for commit in line.split()
    }


def render_contracts(found: Mapping[str, Contract]) -> bytes:
    """Render the text of a table from contracts by commit."""
    groups: dict[Contract, list[str]] = {}
    for commit, contract in found.items():
        groups.setdefault(without_sources(contract), []).append(commit[:ABBREVIATED])
    rows = [_Group(_fields(contract), _lines(commits)) for contract, commits in groups.items()]
    return msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n"


def without_sources(contract: Contract) -> Contract:
    """Return a contract without its sources, to compare the demands only."""
    return replace(contract, source=Contract().source, limits_source=Contract().limits_source)


def _fields(contract: Contract) -> dict[str, str | int | bool]:
    return {name: value for name, value in asdict(contract).items() if not name.endswith("source")}


def _lines(commits: Sequence[str]) -> list[str]:
    return [" ".join(commits[at : at + _IN_A_LINE]) for at in range(0, len(commits), _IN_A_LINE)]
