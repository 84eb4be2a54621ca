"""Proofs of the pack's fixes; each is a clause that rules and pages print."""

from __future__ import annotations

READ = "ExecuTorch's code generator rejects the file before the fix and accepts it afterwards"

LINKED = (
    "g++ compiles the call that the code generator emits; linking it against the repository's C++ fails before the fix and"
    " succeeds afterwards"
)
