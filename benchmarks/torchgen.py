"""opschema on the installed torch's own schemas, beside torchgen and the round trip of PyTorch's nativefunctions_linter.

python -m benchmarks.torchgen
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.corpus import packaged
from benchmarks.measure import Measured, measure
from benchmarks.table import table

_PARSE = """\
from torchgen.gen import parse_native_yaml, get_grouped_native_functions
parsed = parse_native_yaml({native!r}, {tags!r})
get_grouped_native_functions(parsed.native_functions)
"""
_DERIVATIVES = """\
from torchgen.packaged.autograd.load_derivatives import load_derivatives
load_derivatives({derivatives!r}, {native!r}, {tags!r})
"""
_ROUND_TRIP = """\
import io
from ruamel.yaml import YAML
yaml = YAML()
yaml.preserve_quotes = True
yaml.width = 1000
yaml.boolean_representation = ["False", "True"]
with open({native!r}) as file:
    data = yaml.load(file)
yaml.dump(data, io.StringIO())
"""


def rows(work: Path, source: Path, runs: int) -> Iterator[tuple[str, Measured]]:
    """Whole processes, in turn, so that a machine whose speed drifts does so for all of them."""
    native, tags = "ATen/native/native_functions.yaml", "ATen/native/tags.yaml"
    alone, whole = work / "native", work / "whole"
    for name in (native, tags):
        for folder in (alone, whole):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, folder / name)
    (whole / "autograd").mkdir()
    for name in ("derivatives.yaml", "deprecated.yaml"):
        shutil.copy(source / "autograd" / name, whole / "autograd" / name)
    paths = {"native": native, "tags": tags, "derivatives": "autograd/derivatives.yaml"}
    lint = [sys.executable, "-m", "opschema_cli", "lint"]
    env = {"OPSCHEMA_CACHE_DIR": str(work / "cache")}
    yield "peer: torchgen, native_functions.yaml", _script(_PARSE, paths, whole, runs)
    yield "opschema lint, the same, cold", measure([*lint, "--no-cache"], alone, runs=runs)
    measure(lint, alone, runs=1, env=env)
    yield "opschema lint, the same, nothing changed", measure(lint, alone, runs=runs, env=env)
    yield "peer: ruamel round trip of it", _script(_ROUND_TRIP, paths, whole, runs)
    yield "peer: torchgen, derivatives.yaml, too", _script(_DERIVATIVES, paths, whole, runs)
    yield "opschema lint, all four files, cold", measure([*lint, "--no-cache"], whole, runs=runs)
    measure(lint, whole, runs=1, env=env)
    yield "opschema lint, all four files, nothing changed", measure(lint, whole, runs=runs, env=env)


def _script(code: str, paths: dict[str, str], folder: Path, runs: int) -> Measured:
    return measure([sys.executable, "-c", code.format(**paths)], folder, runs=runs)


def main(runs: int = 3) -> None:
    """Measure and print."""
    source = packaged()
    if source is None:
        print("no torchgen is installed: PyTorch's schemas are left out\n")
        return
    with tempfile.TemporaryDirectory() as name:
        print(table(list(rows(Path(name), source, runs)), "peer: torchgen, native_functions.yaml") + "\n")


if __name__ == "__main__":
    main()
