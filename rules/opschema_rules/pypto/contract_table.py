"""Simpler's contracts by commit: what a tree's runtime demands where only the commit is known that it pins.

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
"""Digits of a commit's name in the table: that the commit of another repository begins alike will not happen."""

_IN_A_LINE = 9


class _Group(msgspec.Struct):
    """A contract, and the commits that have it, several in a line."""

    contract: dict[str, str | int | bool]
    commits: list[str]


def known_contract(commit: str) -> Contract | None:
    """The contract of one commit of simpler, by its full name; None if the table lacks it."""
    return load_contracts().get(commit[:ABBREVIATED])


@cache
def load_contracts() -> Mapping[str, Contract]:
    """All contracts, by abbreviated commit."""
    return parse_contracts(PATH.read_bytes())


def parse_contracts(data: bytes) -> dict[str, Contract]:
    """The contracts that a table's text holds."""
    groups = msgspec.json.decode(data, type=list[_Group])
    return {
        commit: contract
        for group in groups
        for contract in [msgspec.convert(group.contract, Contract)]
        for line in group.commits
        for commit in line.split()
    }


def render_contracts(found: Mapping[str, Contract]) -> bytes:
    """The table's text for contracts by commit."""
    groups: dict[Contract, list[str]] = {}
    for commit, contract in found.items():
        groups.setdefault(without_sources(contract), []).append(commit[:ABBREVIATED])
    rows = [_Group(_fields(contract), _lines(commits)) for contract, commits in groups.items()]
    return msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n"


def without_sources(contract: Contract) -> Contract:
    """A contract without its sources, to compare its demands."""
    return replace(contract, source=Contract().source, limits_source=Contract().limits_source)


def _fields(contract: Contract) -> dict[str, str | int | bool]:
    return {name: value for name, value in asdict(contract).items() if not name.endswith("source")}


def _lines(commits: Sequence[str]) -> list[str]:
    return [" ".join(commits[at : at + _IN_A_LINE]) for at in range(0, len(commits), _IN_A_LINE)]
