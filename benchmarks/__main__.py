"""``make bench``: opschema beside its peers, as a table of ratios.

With ``OPSCHEMA_CORPUS`` naming a folder that holds ``tileops-52dbc086`` (a ``git archive`` of TileOPs), the real manifest is
linted and, where ``tilelang`` can be imported, TileOPs' own validator runs beside it. Without it only the fixture and
generated repositories are measured.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.generate import generate
from benchmarks.generate_carriers import generate_carriers
from benchmarks.measure import Measured, measure
from benchmarks.table import Row, table
from benchmarks.torchgen import main as torchgen_bench
from benchmarks.verify import main as verify_bench

FIXTURE = Path(__file__).parent.parent / "fixtures" / "tilekit"
PROJECT = Path(__file__).parent.parent
CORPUS_NAME = "tileops-52dbc086"


def opschema(folder: Path, cache: Path, *, runs: int, cold: bool) -> Measured:
    """Lint ``folder``; a cold run starts without any cache each time."""
    command = [sys.executable, "-m", "opschema_cli", "lint", *(["--no-cache"] if cold else []), str(folder)]
    return measure(command, folder, runs=runs, env={"OPSCHEMA_CACHE_DIR": str(cache)})


def lint_rows(folder: Path, label: str, cache: Path, runs: int, touched: Path | None) -> Iterator[Row]:
    """Cold, warm, and after a change of one file."""
    yield f"opschema lint, {label}, cold", opschema(folder, cache, runs=runs, cold=True)
    opschema(folder, cache, runs=1, cold=False)
    yield f"opschema lint, {label}, nothing changed", opschema(folder, cache, runs=runs, cold=False)
    if touched is not None:
        yield f"opschema lint, {label}, one op file changed", after_a_change(folder, cache, runs, touched)


def after_a_change(folder: Path, cache: Path, runs: int, touched: Path) -> Measured:
    """The median over ``runs`` changes of one file, each followed by one run."""
    text = touched.read_text()
    found: list[Measured] = []
    try:
        for number in range(runs):
            touched.write_text(f"{text}\n# change {number} {os.getpid()}\n")
            found.append(opschema(folder, cache, runs=1, cold=False))
    finally:
        touched.write_text(text)
    return sorted(found, key=lambda item: item.seconds)[len(found) // 2]


def migration_rows(work: Path, cache: Path, ops: int) -> Iterator[Row]:
    """The carrier migration over generated ops that all have one: the diff, then writing it; both parse everything anew."""
    folder = work / f"carriers-{ops}"
    generate_carriers(folder, ops)
    for what in ("--diff", "--apply"):
        command = [sys.executable, "-m", "opschema_cli", "migrate", "drop-carrier", what, "--no-cache"]
        env = {"OPSCHEMA_CACHE_DIR": str(cache)}
        yield f"opschema migrate drop-carrier {what}, {ops:,} ops", measure(command, folder, runs=1, env=env)


def peer_rows(folder: Path, runs: int) -> Iterator[Row]:
    """TileOPs' own validator and Fixit, where they are installed."""
    if importlib.util.find_spec("tilelang") is not None:
        command = [sys.executable, "scripts/validate_manifest.py"]
        yield "peer: scripts/validate_manifest.py", measure(command, folder, runs=runs)
    fixit = shutil.which("fixit", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if fixit is not None:
        yield "peer: fixit lint src/tileops", measure([fixit, "lint", "src/tileops"], folder, runs=1)


def real_rows(work: Path, cache: Path, runs: int) -> list[Row]:
    """The rows of the real repository; none without the corpus."""
    corpus = Path(os.environ.get("OPSCHEMA_CORPUS", "")) / CORPUS_NAME
    if not os.environ.get("OPSCHEMA_CORPUS") or not corpus.is_dir():
        print(f"no {CORPUS_NAME} below OPSCHEMA_CORPUS: the real repository and the peers are left out\n")
        return []
    folder = work / CORPUS_NAME
    shutil.copytree(corpus, folder)
    touched = folder / "src/tileops/ops/norm/rms_norm.py"
    return [*lint_rows(folder, "TileOPs", cache, runs, touched), *peer_rows(folder, runs)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ops", type=int, default=10_000, help="size of the generated repository")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work, cache = Path(name), Path(name) / "cache"
        rows = real_rows(work, cache, options.runs)
        print(table(rows, "peer: scripts/validate_manifest.py") + "\n" if rows else "")
        fixture = work / "tilekit"
        shutil.copytree(FIXTURE, fixture)
        generated: list[Row] = list(lint_rows(fixture, "tilekit (13 ops)", cache, options.runs, None))
        for ops in (options.ops // 10, options.ops):
            folder = work / f"generated-{ops}"
            generate(folder, ops)
            generated += lint_rows(folder, f"{ops:,} generated ops", cache, 1, None)
        generated += migration_rows(work, cache, options.ops // 10)
        print(table(generated, f"opschema lint, {options.ops // 10:,} generated ops, cold") + "\n")
    torchgen_bench(options.runs)
    verify_bench()


if __name__ == "__main__":
    main()
