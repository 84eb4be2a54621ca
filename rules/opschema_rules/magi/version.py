"""The contract of the decorator: before or after MagiCompiler learnt to lower dataclasses (e68e0b0, pull request 32)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.project import Project

ContractName: TypeAlias = Literal["plain", "dataclasses"]

MODULE = "magi_compiler/_magi_register_custom_op.py"
"""The file where MagiCompiler itself keeps the decorator."""

_LOWERS = re.compile(rb"^def _lower_op_signature\(", re.MULTILINE)
_PIN = re.compile(rb"MagiCompiler\b[^\n]*?(?:@|#|\brev\s*=\s*[\"']?)([0-9a-f]{7,40})\b")

BEFORE = ("27f60db", "a841c53", "f1202a8", "8e2e47c", "517fc88")
AFTER = ("e68e0b0", "9e09849")
"""Commits of MagiCompiler that are known to lie before and after the change."""


class Contract(msgspec.Struct, frozen=True):
    """The decorator's treatment of a signature: pass it to torch unchanged (``plain``) or lower it first (``dataclasses``).

    ``sure`` is false when nothing in the tree says so and the newest is assumed; ``source`` says what did.
    """

    name: ContractName
    sure: bool
    source: str

    @property
    def lowers(self) -> bool:
        """Whether it lowers, or is taken to."""
        return self.name == "dataclasses"

    def surely(self, name: ContractName) -> bool:
        """Whether it is known to be that contract, as rules for one contract require."""
        return self.sure and self.name == name


NEWEST = Contract("dataclasses", False, "nothing in the tree says which; the newest is assumed")


def find_contract(project: Project, option: str) -> Contract:
    """The contract of a workspace: as configured, as its own copy of MagiCompiler shows, or as it pins it."""
    if option == "plain" or option == "dataclasses":
        return Contract("plain" if option == "plain" else "dataclasses", True, "the configuration")
    own = [path for path in project.workspace.files if f"/{path}".endswith(f"/{MODULE}")]
    if len(own) == 1:
        lowers = _LOWERS.search(project.workspace.peek(own[0])) is not None
        return Contract("dataclasses" if lowers else "plain", True, own[0])
    return _pinned(project) or NEWEST


def _pinned(project: Project) -> Contract | None:
    found: dict[str, str] = {}
    for path in _requirements(project.workspace.files):
        for match in _PIN.finditer(project.workspace.peek(path)):
            commit = match.group(1).decode()[:7]
            if commit in BEFORE or commit in AFTER:
                found["plain" if commit in BEFORE else "dataclasses"] = path
    if len(found) != 1:
        return None
    return Contract("plain" if "plain" in found else "dataclasses", True, next(iter(found.values())))


def _requirements(files: Iterable[str]) -> list[str]:
    names = (path.rpartition("/")[2] for path in files)
    pairs = zip(names, files, strict=True)
    return [
        path
        for name, path in pairs
        if name in ("pyproject.toml", "uv.lock", "poetry.lock") or name.startswith("requirements")
    ]
