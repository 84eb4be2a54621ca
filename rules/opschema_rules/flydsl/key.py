"""How FlyDSL finds the artifact of a compiled function, and the blocks that it rewrites, by release, or by commit where FlyDSL
itself is linted.

Up to 0.4.2 an artifact is kept under a key of what the function captures and is passed, and a call with a known key is not
traced. From 0.5.0 on every call is traced, and the traced program is the key: nothing that it depends on can be missing.
"""

from __future__ import annotations

from packaging.version import Version

from opschema_rules.flydsl.model import FlyTree

GLOBALS_SINCE = Version("0.2.0")
"""The first release whose key contains the module variables that a function reads."""

ENUMERATIONS_SINCE = Version("0.3.2")
"""The first release whose key contains captured enumeration members."""

PROGRAM_SINCE = Version("0.5.0")
"""The first release whose key is the traced program."""

BLOCKS_SINCE = Version("0.1.8")
"""The first release that makes functions of the blocks of every `if` and of loops over ``range``."""

_FILE = "jit_function.py"
_REWRITER = "ast_rewriter.py"
_PROGRAM = "def _artifact_cache_key("


def is_program(tree: FlyTree) -> bool | None:
    """Whether the key is the traced program; None if that is not known."""
    return _sees(tree, PROGRAM_SINCE, _PROGRAM)


def has_computed_key(tree: FlyTree) -> bool:
    """Whether the key is known to be computed from captured and passed values, so that it can miss dependencies of the program."""
    return is_program(tree) is False


def sees_globals(tree: FlyTree) -> bool | None:
    """Whether module variables are part of the key; None if that is not known."""
    return _sees(tree, GLOBALS_SINCE, "def _snapshot_refs(", _PROGRAM)


def sees_enumerations(tree: FlyTree) -> bool | None:
    """Whether captured enumeration members are part of the key; None if that is not known."""
    return _sees(tree, ENUMERATIONS_SINCE, "enum.Enum", _PROGRAM)


def rewrites_blocks(tree: FlyTree) -> bool:
    """Whether FlyDSL is known to make functions of the blocks of every `if` and of loops over ``range``."""
    if tree.contract.own:
        holds = tree.answers.compiler_holds
        return holds(_REWRITER, "def scf_for_dispatch(") is True and holds(_REWRITER, "_could_be_dynamic") is False
    releases = tree.contract.releases
    return bool(releases) and all(release >= BLOCKS_SINCE for release in releases)


def _sees(tree: FlyTree, since: Version, *marks: str) -> bool | None:
    """Whether all releases that the tree admits are at least ``since``, or FlyDSL's own file contains one of the marks."""
    contract = tree.contract
    if contract.own:
        found = [tree.answers.compiler_holds(_FILE, mark) for mark in marks]
        return None if None in found else any(found)
    answers = {release >= since for release in contract.releases}
    return answers.pop() if len(answers) == 1 else None
