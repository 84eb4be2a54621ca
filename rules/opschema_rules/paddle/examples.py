"""Builds the workspace that a rule's example stands in: a ``yaml`` fence is ``ops.yaml``; a fence with a path is that file."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.lint.examples import files_by_language

_PATHS = {"yaml": "ops.yaml", "cpp": "kernels.cc"}


def example_files(fences: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The files of an example's workspace, by path."""
    return files_by_language(fences, _PATHS, {})
