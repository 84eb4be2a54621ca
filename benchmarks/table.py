"""Timings as a table of ratios."""

from __future__ import annotations

from typing import TypeAlias

from benchmarks.measure import Measured

Row: TypeAlias = "tuple[str, Measured]"


def table(rows: list[Row], reference: str) -> str:
    """The rows with their ratio to the row named ``reference``."""
    known = dict(rows)
    base = known.get(reference)
    lines = [f"{'':<58} {'wall s':>8} {'range':>15} {'MiB':>6} {'ratio':>7}"]
    for label, item in rows:
        ratio = f"{item.seconds / base.seconds:>6.2f}x" if base is not None else "      -"
        spread = f"{item.fastest:.2f} - {item.slowest:.2f}"
        lines.append(f"{label:<58} {item.seconds:>8.2f} {spread:>15} {item.mebibytes:>6.0f} {ratio}")
    return "\n".join(lines)
