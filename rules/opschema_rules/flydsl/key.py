"""Contents of the cache key of a compiled function by release, or by commit where FlyDSL itself is linted."""

from __future__ import annotations

from packaging.version import Version

from opschema_cli.workspace import ReadError
from opschema_rules.flydsl.model import FlyTree

GLOBALS_SINCE = Version("0.2.0")
"""The first release whose key has the values of the modules' variables that a function reads."""

ENUMERATIONS_SINCE = Version("0.3.2")
"""The first release whose key has captured members of enumerations."""

_FILE = "jit_function.py"


def sees_globals(tree: FlyTree) -> bool | None:
    """Whether variables of modules are in the key; None when that is not known."""
    return _sees(tree, GLOBALS_SINCE, b"def _snapshot_refs(")


def sees_enumerations(tree: FlyTree) -> bool | None:
    """Whether captured members of enumerations are in the key; None when that is not known."""
    return _sees(tree, ENUMERATIONS_SINCE, b"enum.Enum")


def _sees(tree: FlyTree, since: Version, mark: bytes) -> bool | None:
    contract = tree.contract
    if contract.own:
        path = f"{contract.source.rpartition('/')[0]}/{_FILE}"
        try:
            return mark in tree.project.workspace.data(path)
        except ReadError:
            return None
    answers = {release >= since for release in contract.releases}
    return answers.pop() if len(answers) == 1 else None
