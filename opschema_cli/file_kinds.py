"""Kinds of files, by their names."""

from __future__ import annotations


def is_python(path: str) -> bool:
    """Whether a file is Python by its name."""
    return path.endswith((".py", ".pyi"))


def is_yaml(path: str) -> bool:
    """Whether a file is YAML by its name."""
    return path.endswith((".yaml", ".yml"))


_CPP = (".cpp", ".cc", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".hip", ".mm")


def is_cpp(path: str) -> bool:
    """Whether a file is C++, or CUDA, HIP or Objective-C++, by its name."""
    return path.endswith(_CPP)


def is_cpp_header(path: str) -> bool:
    """Whether a file is a header of C++ or CUDA, by its name."""
    return path.endswith((".h", ".hpp", ".cuh"))
