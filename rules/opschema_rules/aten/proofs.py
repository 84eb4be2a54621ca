"""Proofs of the pack's fixes and migrations; each is a clause that rules and pages print."""

from __future__ import annotations

WRITTEN = (
    "torchgen reads the files and writes all its C++ and Python from them, with an effect of every value; torch parses each"
    " schema that this registers, and g++ compiles the declared kernels and the formulas of derivatives"
)

LINKED = (
    "torchgen declares the backend's class, and g++ compiles the tree's kernels against it and finds each declared method"
    " defined"
)

SAME = "torchgen writes the same C++ and Python before and after"

RESTORED = (
    "PyTorch's own entries are taken back to what they were before; torchgen then writes the C++ and Python for them that it"
    " writes for PyTorch's"
)

KEPT = (
    "torchgen registers each operator with the schema and tags that it had, and with a kernel for each dispatch key that it"
    " had one for; g++ compiles the declared kernels"
)

DECLARED = "torchgen declares a class from the lists, and g++ compiles the header's kernels against it and finds no others declared"
