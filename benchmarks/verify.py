"""Overhead of ``opschema verify``: starts, imports, and the time of a cell outside of op and reference."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

FIXTURE = Path(__file__).parent.parent / "fixtures" / "tilekit"
OPS = ("ReluFwdOp", "SiluFwdOp", "SumFwdOp")
SIDES = ("before", "after", "reference")

Seconds = Mapping[str, float]


def verified(folder: Path, cells: int) -> tuple[float, list[Seconds]]:
    """The wall time of a run of all ``OPS`` against the same tree, and what each cell took."""
    results = folder / "results.jsonl"
    options = ["--before", ".", "--device", "cpu", "--cells", str(cells), "--results", str(results)]
    env = {**os.environ, "OPSCHEMA_CACHE_DIR": str(folder / "cache"), "TILEKIT_CACHE_DIR": str(folder / "kernels")}
    started = time.perf_counter()
    command = [sys.executable, "-m", "opschema_cli", "verify", *OPS, *options]
    subprocess.run(command, cwd=folder / "tilekit", env=env, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - started
    lines = map(json.loads, results.read_text().splitlines())
    return wall, [line["seconds"] for line in lines if line["kind"] == "cell"]


def told(seconds: Sequence[Seconds], what: str) -> list[float]:
    """Answers of all sides to one question."""
    return [cell[f"{side}.{what}"] for cell in seconds for side in SIDES if f"{side}.{what}" in cell]


def overhead(cell: Seconds) -> float:
    """The seconds of a cell in which the slowest of its sides neither made nor called its op; sides run side by side."""
    busy = (sum(cell.get(f"{side}.{what}", 0.0) for what in ("construct", "call")) for side in SIDES)
    return cell["whole"] - max(busy)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(FIXTURE, folder / "tilekit")
        verified(folder, 1)  # the kernels are compiled
        wall, seconds = verified(folder, 40)
    starts, imports = told(seconds, "start"), told(seconds, "import")
    own = [overhead(cell) for cell in seconds if not any(name.endswith(".start") for name in cell)]
    print(f"opschema verify: {len(seconds)} cells of {len(OPS)} ops of tilekit on the CPU: {wall:.1f} s")
    print(f"  worker starts: {len(starts)}, median {statistics.median(starts):.3f} s, slowest {max(starts):.3f} s")
    print(f"  imports: {len(imports)}, one for each op and side, median {statistics.median(imports):.3f} s")
    rest = (
        f"median {statistics.median(own) * 1000:.1f} ms, 90% below {statistics.quantiles(own, n=10)[-1] * 1000:.1f} ms"
    )
    print(f"  overhead of a cell beyond op and reference: {rest}")


if __name__ == "__main__":
    main()
