"""Proofs of the pack's migrations; each is a clause that pages print."""

from __future__ import annotations

BUILT = "an extension is compiled and loaded before and after, and all of its functions return the same results"
