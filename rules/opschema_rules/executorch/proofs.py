"""Proofs of the pack's fixes; each is a clause that rules and pages print."""

from __future__ import annotations

READ = "ExecuTorch's code generator, which refuses the file before, reads it after"

LINKED = "g++ compiles a call as the code generator writes it; linking it with the tree's C++ fails before, and succeeds after"
