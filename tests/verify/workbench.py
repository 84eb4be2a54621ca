"""Runs of variants of ops through the harness in this process: the sound op is before, a fault or a rewrite after.

``python -m tests.verify.workbench [WORD...]`` runs all, or those whose names hold a word, and prints what came of each: some three
minutes on one core. C++ is compiled with g++.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from opschema_cli.verify.cells import Case, choose
from opschema_cli.verify.harness import Harness
from opschema_cli.verify.model import Call, Cell, CellResult, Input, Limits, Output, Plan, Ran, Side, Target
from opschema_cli.verify.protocol import Load, Loaded
from opschema_cli.verify.protocol import Run as Request
from opschema_cli.verify.results import Header, Version
from opschema_cli.verify.run import CPU_LABEL, Run
from opschema_cli.verify.worker import _run, _side
from tests.verify.further_variants import ALL
from tests.verify.variants import Op

SIZES = {
    "row": (24, 64, 16),
    "odd": (7, 67, 11),
    "larger": (51, 67, 11),
    "one-row": (1, 64, 16),
    "tail-1": (24, 65, 16),
    "zero-rows": (0, 64, 16),
    "long": (5, 2051, 16),
    "one-column": (24, 1, 16),
    "zero-columns": (24, 0, 16),
}
"""M, N and K of each shape."""

DTYPES = ("float16", "bfloat16", "float32")

MODULE = """\
import ctypes, pathlib, subprocess
import torch
import torch.nn.functional as F

CACHE, KEPT, G = {{}}, [], torch.Generator().manual_seed({seed})


def compiled():
    source = pathlib.Path(__file__).with_suffix(".cpp")
    library = source.with_suffix(".so")
    if not library.exists():
        subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    function = ctypes.CDLL(str(library)).kernel
    columns = ctypes.c_int64
    return lambda v, y: function(*map(ctypes.c_void_p, (v.data_ptr(), y.data_ptr())), columns(len(v)), columns(v.shape[1]))


kernel = compiled() if {compiled} else None


def op({arguments}):
{body}
"""

RECIPES = """\
import torch
import torch.nn.functional as F
from opschema_cli.verify.recipes import Recipe, recipe
"""

RECIPE = """

@recipe("{name}")
class _{name}(Recipe):
    deterministic = {deterministic}

    def reference(self, tensors, params):
        {unpack} = {values}
{body}
"""


class InProcess:
    """Stands for the worker processes: every side runs here."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sides: dict[tuple[str, Side], object] = {}

    def start(self, plan: Plan, *sides: Side) -> None:
        """Nothing has to start."""

    def is_hopeless(self, op: str, side: Side) -> bool:
        """Whether an op cannot be imported."""
        return False

    def load(self, side: Side, plan: Plan) -> Loaded:
        """Each is imported with its first cell."""
        return Loaded()

    def close(self) -> None:
        """Nothing has to end."""

    def run(self, side: Side, plan: Plan, cell: Cell, device: str, timeout: float, repeats: int = 0) -> Ran:
        load = Load(side=side, op=plan.op, target=plan.target)
        key = (plan.target.module, side)
        if key not in self._sides:
            self._sides[key] = _side(load, {})
        folder = self.folder / side
        folder.mkdir(exist_ok=True)
        request = Request(cell=cell, device=device, folder=str(folder), seconds=timeout, repeats=repeats)
        return _run(self._sides[key], request, load).ran


class Workbench:
    """A folder with a module for each variant, and a harness."""

    def __init__(self, folder: Path, cells: int = Limits().cells) -> None:
        self.folder, self.cells = folder, cells
        self._recipes()
        here = Version(name="")
        header = Header(run="", shard=1, shards=1, total=0, before=here, after=here, device=CPU_LABEL, cells=())
        self.before: dict[str, Target] = {}
        self.harness = Harness(Run(header=header, plans=(), compared=True, before=self.before, folder=str(folder)))
        self.harness._workers.close()
        self.harness._threads = ThreadPoolExecutor(1)
        self.harness._workers = InProcess(folder)  # type: ignore[assignment]

    def close(self) -> None:
        """End the harness."""
        self.harness.close()

    def check(self, op: Op, text: str, name: str, *shapes: str) -> Iterator[CellResult]:
        """The results of the cells of a variant, or of those of some shapes and values."""
        cells = planned(op, self.cells)
        if shapes:
            cells = [cell for cell in cells if any(f"-{shape}-s0]" in cell.id for shape in shapes)]
        plan = Plan(op=op.name, target=self._target(op, text, name, 2), cells=tuple(cells))
        self.before[op.name] = self._target(op, op.sound, "sound", 1)
        self.harness._steady.clear()
        for cell in cells:
            yield self.harness.check(plan, cell)

    def _target(self, op: Op, text: str, name: str, seed: int) -> Target:
        module = f"{op.name}_{''.join(c if c.isalnum() else '_' for c in name)}_{seed}"
        path = self.folder / f"{module}.py"
        if not path.exists():
            code = _COMPILED if op.kernel else text
            source = MODULE.format(seed=seed, arguments=", ".join(op.inputs), body=body(code), compiled=bool(op.kernel))
            path.write_text(source)
            if op.kernel:
                path.with_suffix(".cpp").write_text(text)
        return Target(root=str(self.folder), module=module, name="op", recipe=str(self.folder / "recipes.py"))

    def _recipes(self) -> None:
        texts = [
            RECIPE.format(
                name=op.name,
                deterministic=op.deterministic,
                unpack=", ".join(op.inputs) + ",",
                values=", ".join(f"tensors[{name!r}]" for name in op.inputs) + ",",
                body=body(op.reference, indent=8),
            )
            for op in ALL
        ]
        (self.folder / "recipes.py").write_text(RECIPES + "".join(texts))


_COMPILED = "v = x.float().contiguous(); y = torch.empty_like(v); kernel(v, y); return y.to(x.dtype)"


def body(text: str, indent: int = 4) -> str:
    """A function's body of a text: statements, or an expression."""
    lines = text.strip("\n").splitlines()
    if "return" not in text:
        lines = [f"return {text}"]
    split = [
        part for line in lines for part in (line.split("; ") if not line.lstrip().startswith(("for", "if")) else [line])
    ]
    return "\n".join(" " * indent + line for line in split)


def planned(op: Op, limit: int) -> list[Cell]:
    """The cells of an op, as a pack plans them."""
    cases = [_case(op, dtype) for dtype in DTYPES]
    return choose(cases, Limits(cells=limit))[0]


def _case(op: Op, dtype: str) -> Case:
    calls = {shape: _call(op, shape, dtype) for shape in SIZES}
    return Case(op.name, "r", dtype, "row", calls["row"], lambda: {k: v for k, v in calls.items() if k != "row"})


def _call(op: Op, shape: str, dtype: str) -> Call:
    sizes = dict(zip("MNK", SIZES[shape], strict=True))
    inputs = []
    for name, axes in op.inputs.items():
        letters, _, own = axes.partition(":")
        size = tuple(sizes[letter] for letter in letters)
        low, high = (0.0, float(max(sizes["M"], 1) if op.name == "lookup" else 16)) if own else (None, None)
        inputs.append(Input(name=name, shape=size, dtype=own or dtype, mutated=name == op.mutated, low=low, high=high))
    aliases = {op.outputs[0]: op.mutated} if op.mutated else {}
    return Call(inputs=tuple(inputs), outputs=tuple(Output(name=name) for name in op.outputs), aliases=aliases)


def failing(results: Iterable[CellResult]) -> CellResult | None:
    """The first result that fails."""
    return next((result for result in results if result.verdict in ("regression", "crashed")), None)


def check_of(result: CellResult) -> str:
    """The check that made a cell fail: the one that its reason names first."""
    words = result.reason.split(": ")
    return words[1] if words[0] in ("after", "differs from before") else words[0]


def variants(op: Op) -> Iterator[tuple[str, str, str]]:
    """The kinds, names and texts of all variants of an op; the sound one is compared with itself."""
    yield "sound", "same code", op.sound
    yield from (("fault", name, text) for name, text in op.faults.items())
    yield from (("rewrite", name, text) for name, text in op.rewrites.items())


def main(words: Sequence[str]) -> int:
    """Run all variants, or those whose names hold a word, and print what came of each."""
    warnings.simplefilter("ignore")
    missed: list[str] = []
    alarms: list[str] = []
    count = 0
    with tempfile.TemporaryDirectory() as name, closing(Workbench(Path(name))) as bench:
        for op in ALL:
            for kind, title, text in variants(op):
                what = f"{kind} of {op.name}: {title}"
                if words and not any(word in what for word in words):
                    continue
                count += 1
                found = failing(bench.check(op, text, title))
                if (found is None) == (kind == "fault"):
                    (missed if kind == "fault" else alarms).append(what)
                print(f"{what}: {f'{check_of(found)} in {found.id}' if found else 'nothing found'}", flush=True)
    print(f"{count} variants; faults that were missed: {missed}; alarms on sound code: {alarms}")
    return 1 if missed or alarms else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
