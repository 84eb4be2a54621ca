"""Builds the workspace that a rule's example stands in: a ``yaml`` fence is ``ops.yaml``; a fence with a path is that file."""

from __future__ import annotations

from collections.abc import Sequence

_PATHS = {"yaml": "ops.yaml", "cpp": "kernels.cc"}


def example_files(fences: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The files of an example's workspace, by path."""
    found: dict[str, str] = {}
    for info, text in fences:
        language, _, path = info.partition(" ")
        found[path.strip() or _PATHS.get(language, language)] = text
    return found
