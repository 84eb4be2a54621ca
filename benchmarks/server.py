"""``python -m benchmarks.server TREE``: the time from a key to the diagnostics of the edited file, by kind of edit.

TREE is a checkout of TileOPs. The server is started as an editor starts it, and random edits are typed (``benchmarks/editing.py``):
the next key comes when the run of the last has ended and a pause is over. Each edit is undone in one step before the next. *First*
diagnostics come from what the edit touches, *all* from the entire run. Processor time is that of the server's own process, which a
busy machine changes less than wall time. The server does not write to the tree. Then defaults are changed in manifests while the
op's Python file is open, until that shows the difference, and back. ``opschema lint`` after a change of one file is timed too.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import psutil

from benchmarks.__main__ import after_a_change, opschema
from benchmarks.editing import KINDS, TILEOPS, edits
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
        editor = Editor(options.tree.resolve())
        editor.patience = FIRST
        try:
            print(table(latencies(editor, options.seed, options.edits, options.pause, options.kind)))
            shown = list(other_side(editor, random.Random(options.seed), 4 * options.edits, options.pause))
            print(f"\ndefault in the manifest, shown in the open Python file ({len(shown)} times): {_cell(shown)} ms")
            print(f"memory of the server: {psutil.Process(editor.pid).memory_info().rss / 2**20:.0f} MiB")
        finally:
            editor.close()
        if options.lint:
            print(f"\nopschema lint after a change of one file: {lint_seconds(options.tree, Path(name)):.2f} s")


def latencies(editor: Editor, seed: int, count: int, pause: float, kind: str) -> Mapping[str, list[Key]]:
    """Times after each key, by kind of edit."""
    found: dict[str, list[Key]] = {name: [] for name in (*KINDS, "undo of an edit")}
    for edit in edits(editor.root, random.Random(seed), count):
        if not edit.kind.startswith(kind):
            continue
        editor.open(edit.path)
        editor.diagnostics(edit.path)
        for text, name in (*((text, edit.kind) for text in edit.texts), (None, "undo of an edit")):
            time.sleep(pause)
            saved = (editor.root / edit.path).read_text(encoding="utf-8")
            found[name].append(_typed(editor, edit.path, saved if text is None else text))
        editor.shut(edit.path)
    return found


_DEFAULT = re.compile(r"default: (\d[\d.e-]*)")
_SOURCE = re.compile(r"(?m)^    op: (\S+\.py)$")


def other_side(editor: Editor, draw: random.Random, count: int, pause: float) -> Iterator[float]:
    """Seconds from a change of a default in a manifest until the op's Python file shows the difference, and back."""
    manifests = sorted(editor.root.glob(TILEOPS["manifest"][0]))
    for _ in range(count):
        path = draw.choice(manifests).relative_to(editor.root).as_posix()
        text = (editor.root / path).read_text(encoding="utf-8")
        entries = [part for part in re.split(r"(?m)^(?=\w+:$)", text) if _DEFAULT.search(part) and _SOURCE.search(part)]
        if not entries:
            continue
        entry = draw.choice(entries)
        source = _SOURCE.search(entry)
        assert source is not None  # see above
        code = f"src/{source[1]}"
        editor.open(path)
        editor.open(code)
        editor.diagnostics(path)
        known = len(editor.diagnostics(code))
        for after in (text.replace(entry, _DEFAULT.sub("default: 12345", entry, count=1)), text):
            time.sleep(pause)
            started = time.perf_counter()
            editor.type(path, after)
            if _shows(editor, code, known, more=after != text):
                yield time.perf_counter() - started
            editor.diagnostics(path)
        editor.shut(path)
        editor.shut(code)


def _shows(editor: Editor, path: str, known: int, *, more: bool) -> bool:
    """Whether a file comes to show more findings than those known before, or no more of them; a class may be in another file."""
    editor.patience = 5.0
    try:
        editor.wait(lambda: (len(editor.published[editor.uri(path)].diagnostics) > known) == more)
    except AssertionError:
        return False
    finally:
        editor.patience = FIRST
    return True


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
