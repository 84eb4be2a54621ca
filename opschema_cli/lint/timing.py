"""Timings of rules, for ``--statistics``."""

from __future__ import annotations

import msgspec


class Timing(msgspec.Struct):
    """Runs, seconds and findings of a rule."""

    runs: int = 0
    seconds: float = 0.0
    findings: int = 0

    def add(self, other: Timing) -> None:
        """Add the timings of another process."""
        self.runs += other.runs
        self.seconds += other.seconds
        self.findings += other.findings
