"""Prints how the costs of kinds of input grow: ``python -m tests.hostile.growth [WORDS]``."""

from __future__ import annotations

import sys

from tests.hostile.growth.kinds import KINDS
from tests.hostile.growth.measure import growth, prepare


def main(words: list[str]) -> None:
    """A row for each kind whose name holds one of the words."""
    prepare()
    print("| input | n | n: s | 2n: s | ratio | 2n: MiB | 2n: KB of report |\n|---|---|---|---|---|---|---|")
    for name, kind in KINDS.items():
        if not words or any(word in name for word in words):
            found = growth(kind)
            ratio = f"{found.ratio:.1f}" if found.ratio else "limited"
            cells = (name, f"{found.n:,}", f"{found.once.seconds:.2f}", f"{found.twice.seconds:.2f}", ratio)
            print(f"| {' | '.join(cells)} | {found.twice.mebibytes:.0f} | {found.twice.report // 1024:,} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
