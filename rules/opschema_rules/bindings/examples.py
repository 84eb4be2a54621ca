"""Builds the small workspace that a rule's example stands in: a ``cpp`` fence is ``ops.cpp``, a ``python`` fence ``ops.py``, and
the extension module is ``_C`` unless a fence is ``setup.py``; a fence with a path is that file.
"""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.lint.examples import files_by_language

_PATHS = {"cpp": "ops.cpp", "python": "ops.py"}
_BASE = {
    "setup.py": """\
from setuptools import setup
from torch.utils.cpp_extension import CppExtension

setup(ext_modules=[CppExtension("_C", ["ops.cpp"])])
"""
}


def example_files(fences: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The files of an example's workspace, by path."""
    return files_by_language(fences, _PATHS, _BASE)
