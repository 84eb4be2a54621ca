"""PyTorch release that a tree pins."""

from __future__ import annotations

import re

import msgspec

from opschema_cli.workspace import Workspace

_FILES = re.compile(
    r"(?:requirements[\w.-]*\.(?:txt|in)|requirements/[\w.-]+\.(?:txt|in)|(?:ci/)?environment\.ya?ml"
    r"|setup\.(?:py|cfg)|pyproject\.toml)"
)
_COMMIT_FILES = (".torch_commit", ".torch_pin", "torch_patches/.torch_pin", ".ci/torch_commit.txt")

_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))#.*$")
_REQUIRED = re.compile(r"(?<![\w.-])(?:py)?torch[ \t]*(?:==?|~=|===)[ \t]*v?(\d+\.\d+)")
_OWN = re.compile(r"(?:\bbase_version|\bTORCH_(?:[A-Z]+_)?VERSION)[\"']?[ \t]*[=,:][ \t]*[\"'](\d+\.\d+)")
"""pytorch/xla's own version, which follows PyTorch's: ``base_version`` or the default of ``TORCH_XLA_VERSION`` in setup.py."""

_COMMIT = re.compile(r"\b[0-9a-f]{40}\b")


class Pins(msgspec.Struct, frozen=True):
    """``versions`` are those that the tree names, major and minor; ``commits`` those of PyTorch's repository."""

    versions: frozenset[str]
    commits: frozenset[str]

    def agree(self, version: str, commit: str) -> bool:
        """Whether all of them, and at least one, say a torch of this version that is built from this commit."""
        if not (self.versions or self.commits):
            return False
        return self.versions <= {minor_version(version)} and self.commits <= {commit}


def minor_version(version: str) -> str:
    """``2.13`` of ``2.13.0+cpu``; empty where there is none."""
    found = re.match(r"v?(\d+\.\d+)", version)
    return found[1] if found is not None else ""


def pins_of(workspace: Workspace) -> Pins:
    """Pins in the files at the root of a workspace."""
    versions: set[str] = set()
    for path in workspace.files:
        if _FILES.fullmatch(path):
            text = _COMMENT.sub("", _text(workspace, path))
            versions.update(_REQUIRED.findall(text), _OWN.findall(text) if path == "setup.py" else ())
    pinned = [path for path in _COMMIT_FILES if path in workspace.file_set]
    return Pins(frozenset(versions), frozenset(_COMMIT.findall(" ".join(_text(workspace, path) for path in pinned))))


def _text(workspace: Workspace, path: str) -> str:
    return workspace.peek(path).decode("utf-8", "replace")
