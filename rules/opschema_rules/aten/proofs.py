"""Proofs of the pack's fixes and migrations; each is a clause that rules and pages print."""

from __future__ import annotations

WRITTEN = (
    "torchgen reads the files and generates all its C++ and Python from them, where every value has an effect; torch parses each"
    " schema that this registers, and g++ compiles the declared kernels and the derivative formulas"
)

LINKED = (
    "torchgen declares the backend's class, and g++ compiles the tree's kernels against it and finds each declared method"
    " defined"
)

SAME = "torchgen writes the same C++ and Python before and after"

RESTORED = (
    "applied to an older form of PyTorch's own entries, it gives entries for which torchgen writes the same C++ and Python as for"
    " PyTorch's"
)

KEPT = (
    "torchgen registers each operator with the schema and tags that it had, and with a kernel for each dispatch key that it"
    " had one for; g++ compiles the declared kernels"
)

DECLARED = "torchgen declares a class from the lists, and g++ compiles the header's kernels against it and finds no others declared"
