"""A text that keeps libcst busy for longer than the universe lasts, and that CPython's parser leaves to it."""

from __future__ import annotations

STALLING = "ﬁ = 1\nmatch a:\n case " + "[" * 60 + "a" + "]" * 60 + ":\n  pass\n"
"""CPython reads ``ﬁ`` as ``fi``, so that its tree is not taken; the pattern takes 2**60 steps in libcst's grammar."""
