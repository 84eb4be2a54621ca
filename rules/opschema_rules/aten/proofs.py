"""What the pack's fixes and migrations are tested with; each is a sentence without an end, which rules and pages print."""

from __future__ import annotations

WRITTEN = (
    "torchgen reads the files and writes all its C++ and Python from them, with an effect of every value; torch parses each"
    " schema that this registers, and g++ compiles the declared kernels"
)

LINKED = (
    "torchgen declares the backend's class, and g++ compiles the tree's kernels against it and finds each declared method"
    " defined"
)
