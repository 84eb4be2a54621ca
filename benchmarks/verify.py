"""Overhead of ``opschema verify``: starts, imports, and the time of a cell outside of op and reference.

``python -m benchmarks.verify 6`` runs six generated ops instead, with 40 cells each.
"""

from __future__ import annotations

import json
import os
import resource
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

FUNCTIONS = ("relu", "sigmoid", "tanh", "exp", "sin", "cos", "abs", "neg", "square", "erf", "expm1", "sqrt")
ENTRY = """
Op{number}FwdOp:
  family: elementwise
  ref_api: "torch.{function}"
  status: implemented
  signature:
    inputs: {{x: {{dtype: "float16 | bfloat16 | float32", shape: "[M, N]"}}}}
    outputs: {{y: {{dtype: same_as(x), shape: "[M, N]"}}}}
    params: {{}}
  workloads:
    - {{x_shape: [64, 256], dtypes: [float16, bfloat16, float32], label: small}}
    - {{x_shape: [48, 1024], dtypes: [float16, bfloat16, float32], label: wide}}
  roofline: {{flops: "M * N", bytes: "2 * M * N * elem_bytes"}}
  source: {{op: kit/op{number}.py}}
"""
OP = """\
import torch


class Op{number}FwdOp:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return torch.{function}(x.float()).to(x.dtype)
"""

Seconds = Mapping[str, float]


def generated(folder: Path, count: int) -> None:
    """Write a library of ops of one line, each in its own module."""
    package = folder / "tilekit" / "kit"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    functions = [FUNCTIONS[number % len(FUNCTIONS)] for number in range(count)]
    entries = [ENTRY.format(number=number, function=function) for number, function in enumerate(functions)]
    (package / "ops.yaml").write_text("".join(entries))
    for number, function in enumerate(functions):
        (package / f"op{number}.py").write_text(OP.format(number=number, function=function))
    (package.parent / "opschema.toml").write_text('[tileops]\nspec = ["latest"]\n')


def verified(folder: Path, cells: int, ops: Sequence[str] = OPS) -> tuple[float, list[Seconds]]:
    """The wall time of a run of ``ops``, or of all, against the same tree, and the seconds of each cell."""
    results = folder / "results.jsonl"
    options = ["--before", ".", "--device", "cpu", "--cells", str(cells), "--results", str(results)]
    env = {**os.environ, "OPSCHEMA_CACHE_DIR": str(folder / "cache"), "TILEKIT_CACHE_DIR": str(folder / "kernels")}
    started = time.perf_counter()
    command = [sys.executable, "-m", "opschema_cli", "verify", *ops, *options]
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


def many(count: int) -> None:
    """Measure and print a run of generated ops."""
    with tempfile.TemporaryDirectory() as name:
        generated(Path(name), count)
        wall, seconds = verified(Path(name), 40, ())
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"opschema verify: {len(seconds):,} cells of {count} generated ops on the CPU: {wall:.0f} s, "
        f"{spent.ru_utime + spent.ru_stime:.0f} s of processor time"
    )


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


if __name__ == "__main__" and len(sys.argv) > 1:
    many(int(sys.argv[1]))
elif __name__ == "__main__":
    main()
