"""Builds the small workspace that a rule's example stands in: a ``cpp`` fence is ``ops.cpp``, a ``python`` fence ``ops.py``, and
the extension module is ``_C`` unless a fence is ``setup.py``; a fence with a path is that file.
"""

from __future__ import annotations

from collections.abc import Sequence

_PATHS = {"cpp": "ops.cpp", "python": "ops.py"}
_SETUP = """\
from setuptools import setup
from torch.utils.cpp_extension import CppExtension

setup(ext_modules=[CppExtension("_C", ["ops.cpp"])])
"""


def example_files(fences: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The files of an example's workspace, by path."""
    found = {"setup.py": _SETUP}
    for info, text in fences:
        language, _, path = info.partition(" ")
        found[path.strip() or _PATHS.get(language, language)] = text
    return found
