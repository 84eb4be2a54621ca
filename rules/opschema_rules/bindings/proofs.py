"""Proofs of the pack's fixes and migrations; each is a clause that pages print."""

from __future__ import annotations

BUILT = "an extension is compiled and loaded before and after, and all of its functions return the same results"
CALLED = (
    "g++ compiles the module with pybind11 and with nanobind; Python imports it and calls its functions with all arguments by "
    "keyword"
)
