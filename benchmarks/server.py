"""``python -m benchmarks.server TREE``: the time from a key to the diagnostics of the edited file, by kind of edit.

TREE is a checkout of TileOPs. The server is started as an editor starts it, and random edits are typed (``benchmarks/editing.py``):
the next key comes when the diagnostics of the last are there and a pause is over. Each edit is undone in one step before the next.
The server reads the tree and does not write to it. ``opschema lint`` after a change of one file is timed beside it, in a copy.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.__main__ import after_a_change, opschema
from benchmarks.editing import KINDS, edits
from tests.server.editor import Editor

FIRST = 120.0
"""Seconds that the first run may take."""

TOUCHED = "src/tileops/ops/norm/rms_norm.py"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("tree", type=Path)
    parser.add_argument("--edits", type=int, default=6, help="edits of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0.15, help="seconds between diagnostics and the next key")
    parser.add_argument("--kind", default="", help="only kinds whose names begin so")
    parser.add_argument("--lint", action="store_true", help="time opschema lint as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["OPSCHEMA_CACHE_DIR"] = str(Path(name) / "cache")
        times = latencies(options.tree.resolve(), options.seed, options.edits, options.pause, options.kind)
        print(table(times))
        if options.lint:
            print(f"\nopschema lint after a change of one file: {lint_seconds(options.tree, Path(name)):.2f} s")


def latencies(root: Path, seed: int, count: int, pause: float, kind: str) -> Mapping[str, list[float]]:
    """Seconds from each key to the diagnostics of the file, by kind of edit."""
    editor = Editor(root)
    editor.patience = FIRST
    found: dict[str, list[float]] = {name: [] for name in (*KINDS, "undo of an edit")}
    try:
        for edit in edits(root, random.Random(seed), count):
            if not edit.kind.startswith(kind):
                continue
            editor.open(edit.path)
            editor.diagnostics(edit.path)
            for text, name in (*((text, edit.kind) for text in edit.texts), (None, "undo of an edit")):
                time.sleep(pause)
                before = time.perf_counter()
                editor.type(edit.path, text if text is not None else (root / edit.path).read_text(encoding="utf-8"))
                editor.diagnostics(edit.path)
                found[name].append(time.perf_counter() - before)
            editor.shut(edit.path)
    finally:
        editor.close()
    return found


def lint_seconds(tree: Path, work: Path) -> float:
    """The median wall time of ``opschema lint`` after a change of one file."""
    folder, cache = work / "tree", work / "lint-cache"
    shutil.copytree(tree, folder)
    opschema(folder, cache, runs=1, cold=False)
    return after_a_change(folder, cache, 5, folder / TOUCHED).seconds


def table(times: Mapping[str, Sequence[float]]) -> str:
    """A table in Markdown, in milliseconds."""
    rows = [*((kind, found) for kind, found in times.items() if found)]
    rows.append(("all", [item for _, found in rows for item in found]))
    lines = ["| edit | keys | median, ms | p95, ms | max, ms |", "|---|---|---|---|---|"]
    lines += [
        f"| {kind} | {len(found)} | {1000 * statistics.median(found):.0f} | {1000 * quantile(found, 0.95):.0f} "
        f"| {1000 * max(found):.0f} |"
        for kind, found in rows
    ]
    return "\n".join(lines)


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


if __name__ == "__main__":
    main()
