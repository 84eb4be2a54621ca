"""Contents of the cache key of a compiled function, and the blocks that are rewritten, by release, or by commit where FlyDSL itself
is linted.
"""

from __future__ import annotations

from packaging.version import Version

from opschema_rules.flydsl.model import FlyTree

GLOBALS_SINCE = Version("0.2.0")
"""The first release whose key has the values of the modules' variables that a function reads."""

ENUMERATIONS_SINCE = Version("0.3.2")
"""The first release whose key has captured members of enumerations."""

BLOCKS_SINCE = Version("0.1.8")
"""The first release that makes functions of the blocks of every `if` and of loops over ``range``."""

_FILE = "jit_function.py"
_REWRITER = "ast_rewriter.py"


def sees_globals(tree: FlyTree) -> bool | None:
    """Whether variables of modules are in the key; None when that is not known."""
    return _sees(tree, GLOBALS_SINCE, "def _snapshot_refs(")


def sees_enumerations(tree: FlyTree) -> bool | None:
    """Whether captured members of enumerations are in the key; None when that is not known."""
    return _sees(tree, ENUMERATIONS_SINCE, "enum.Enum")


def rewrites_blocks(tree: FlyTree) -> bool:
    """Whether FlyDSL surely makes functions of the blocks of every `if` and of loops over ``range``."""
    if tree.contract.own:
        holds = tree.answers.compiler_holds
        return holds(_REWRITER, "def scf_for_dispatch(") is True and holds(_REWRITER, "_could_be_dynamic") is False
    releases = tree.contract.releases
    return bool(releases) and all(release >= BLOCKS_SINCE for release in releases)


def _sees(tree: FlyTree, since: Version, mark: str) -> bool | None:
    contract = tree.contract
    if contract.own:
        return tree.answers.compiler_holds(_FILE, mark)
    answers = {release >= since for release in contract.releases}
    return answers.pop() if len(answers) == 1 else None
