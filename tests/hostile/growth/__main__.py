"""Prints how the costs of kinds of input grow."""

from __future__ import annotations

import sys
from itertools import pairwise

from tests.hostile.growth.kinds import KINDS
from tests.hostile.growth.measure import cost, prepare


def main(words: list[str]) -> None:
    """A row for each kind: size, seconds, MiB and report's KB at n, 2n and 4n, and the ratios."""
    prepare()
    factor = 1.0
    while words and words[0].startswith("x"):
        factor = float(words.pop(0)[1:])
    for name, kind in KINDS.items():
        if words and not any(word in name for word in words):
            continue
        n = int(kind.size * factor)
        base = cost(kind, 1)
        found = [cost(kind, n << step) for step in range(3)]
        times = [max(one.seconds - base.seconds, 0.001) for one in found]
        ratios = "  ".join(f"{after / before:4.1f}" for before, after in pairwise(times))
        row = "  ".join(f"{seconds:6.2f}" for seconds in times)
        memory = "  ".join(f"{one.mebibytes:4.0f}" for one in found)
        sizes = " ".join(f"{one.report // 1024}" for one in found)
        codes = {one.code for one in found} - {0, 1}
        mark = "!!" if times[2] > 2.7 * times[1] and times[2] > 0.3 else "  "
        print(f"{mark} {name:42} {n:>8}  {row}  ratio {ratios}  MiB {memory}  KB {sizes} {codes or ''}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
