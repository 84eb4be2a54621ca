"""``python -m benchmarks.server TREE``: the time from a key to the diagnostics of the edited file, by kind of edit.

TREE is a checkout of TileOPs. The server is started as an editor starts it, and random edits are typed (``benchmarks/editing.py``):
the next key comes when the run of the last has ended and a pause is over. Each edit is undone in one step before the next. *First*
diagnostics come from what the edit touches, *all* from the entire run. Processor time is that of the server's own process, which a
busy machine changes less than wall time. The server does not write to the tree. ``opschema lint`` after a change of one file is
timed beside it, in a copy.
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

import msgspec
import psutil

from benchmarks.__main__ import after_a_change, opschema
from benchmarks.editing import KINDS, edits
from tests.server.editor import Editor

FIRST = 120.0
"""Seconds that the first run may take."""

TOUCHED = "src/tileops/ops/norm/rms_norm.py"


class Key(msgspec.Struct, frozen=True):
    """Seconds from a key to the first and to all diagnostics of the file, of wall time and of the server's processor time."""

    first: float
    all: float
    first_cpu: float
    all_cpu: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("tree", type=Path)
    parser.add_argument("--edits", type=int, default=3, help="edits of each kind")
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


def latencies(root: Path, seed: int, count: int, pause: float, kind: str) -> Mapping[str, list[Key]]:
    """Times after each key, by kind of edit."""
    editor = Editor(root)
    editor.patience = FIRST
    found: dict[str, list[Key]] = {name: [] for name in (*KINDS, "undo of an edit")}
    try:
        for edit in edits(root, random.Random(seed), count):
            if not edit.kind.startswith(kind):
                continue
            editor.open(edit.path)
            editor.diagnostics(edit.path)
            for text, name in (*((text, edit.kind) for text in edit.texts), (None, "undo of an edit")):
                time.sleep(pause)
                saved = (root / edit.path).read_text(encoding="utf-8")
                found[name].append(_typed(editor, edit.path, saved if text is None else text))
            editor.shut(edit.path)
    finally:
        editor.close()
    return found


def _typed(editor: Editor, path: str, text: str) -> Key:
    """Type a text, and wait for its diagnostics."""
    server = psutil.Process(editor.pid)
    times = [_clocks(server)]
    editor.type(path, text)
    editor.first_diagnostics(path)
    times.append(_clocks(server))
    editor.diagnostics(path)
    times.append(_clocks(server))
    (start, start_cpu), (first, first_cpu), (end, end_cpu) = times
    return Key(first - start, end - start, first_cpu - start_cpu, end_cpu - start_cpu)


def _clocks(process: psutil.Process) -> tuple[float, float]:
    used = process.cpu_times()
    return time.perf_counter(), used.user + used.system


def lint_seconds(tree: Path, work: Path) -> float:
    """The median wall time of ``opschema lint`` after a change of one file."""
    folder, cache = work / "tree", work / "lint-cache"
    shutil.copytree(tree, folder)
    opschema(folder, cache, runs=1, cold=False)
    return after_a_change(folder, cache, 5, folder / TOUCHED).seconds


def table(times: Mapping[str, Sequence[Key]]) -> str:
    """Medians and 95th percentiles in milliseconds, as a table in Markdown."""
    rows = [*((kind, found) for kind, found in times.items() if found)]
    rows.append(("all", [item for _, found in rows for item in found]))
    lines = ["| edit | keys | first | all | first, processor | all, processor |", "|---|---|---|---|---|---|"]
    for kind, keys in rows:
        columns = zip(*((key.first, key.all, key.first_cpu, key.all_cpu) for key in keys), strict=True)
        lines.append(f"| {kind} | {len(keys)} | {' | '.join(map(_cell, columns))} |")
    return "\n".join(lines)


def _cell(seconds: Sequence[float]) -> str:
    return f"{1000 * statistics.median(seconds):.0f}, {1000 * quantile(seconds, 0.95):.0f}"


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


if __name__ == "__main__":
    main()
