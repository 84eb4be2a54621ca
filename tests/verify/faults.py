"""Faults to plant in fixtures/tilekit, each with the cells in which the harness must see it, or must not; and their table."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from opschema_cli.verify.model import Limits
from tests.verify.further_variants import ALL, FURTHER

CUDA = "tilekit/kernels/cuda"
UNARY = "tilekit/kernels/elementwise.py"
SUM = "tilekit/kernels/reduction.py"

SOUND = "unchanged"
"""The expected result of a cell that does not reach the fault."""


class Edit(NamedTuple):
    """An exact replacement, once, in a file of the tree."""

    path: str
    old: str
    new: str


class Fault(NamedTuple):
    """A fault of one op. ``cells`` are run in this order: by cell the check that names the fault there, or ``SOUND``."""

    name: str
    op: str
    edits: tuple[Edit, ...]
    cells: Mapping[str, str]

    @property
    def seen(self) -> dict[str, str]:
        """The cells in which it is seen, with the check."""
        return {f"{self.op}[{cell}]": check for cell, check in self.cells.items() if check != SOUND}


def plant(fault: Fault, sound: Path, folder: Path) -> Path:
    """A copy of a tree with the fault in it. Raises AssertionError if its place is not what it was."""
    root = folder / "tilekit"
    shutil.copytree(sound, root, ignore=shutil.ignore_patterns("__pycache__", ".*", "docs", "benchmarks"))
    for path, old, new in fault.edits:
        text = (root / path).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{path} has {text.count(old)} times {old!r}"
        (root / path).write_text(text.replace(old, new), encoding="utf-8")
    return root


PAGE = """\
# Seeded faults

Generated from the faults by `python -m tests.verify.faults`; do not edit.

Each of these faults is planted in a kernel or an op of [tilekit](../fixtures/tilekit), alone, by `tests/verify/faults.py`.
`tests/verify/test_faulty_kernels.py` then runs `opschema verify`'s harness on the CPU with the sound tree as *before* and the
faulty one as *after*: the verdict must be *regression* in the cell named here, and the check named here must be what found it;
cells that do not reach the fault must be *unchanged*. The same file runs sound kernels over several seeds, in which nothing may be
found.

{table}
`raised` is not a check: the call itself broke down. `poison` and `repeat` are two of three equal calls that differ; `overrun` and
`input-overrun` are the guard bands around what an op allocates and what it is given.

The CPU runs a kernel's threads one after the other, in an order that changes from launch to launch. It does not show: races
inside a block that only `__syncthreads` prevents, the wrong stream and the wrong device, and tensors of 2^31 elements or more.

## Faults and rewrites

`tests/verify/variants.py` and `further_variants.py` have {faults} faults and {rewrites} legitimate rewrites of {ops} ops in
Python and C++.
`python -m tests.verify.workbench` compares each with the sound op in the {cells} cells that a run has by default, in float16,
bfloat16 and float32: each fault is a regression, and no rewrite is. It takes five minutes on one core; the test suite runs a few
cells of it.

The judge was developed on 80 faults and 76 rewrites of 31 ops. {further} further ops with 43 faults and 31 rewrites were written
afterwards, and run for the first time without a change: 36 faults were found and 7 missed; 4 rewrites were alarms. Three
faults were missed since their op was written wrongly and refused every call, and three alarms were right, on rewrites that made
NaN of infinite logits or recorded no gradient. The rest was mended in general: cells of zeros alone, which none of the default
cells were; the first call of a process against those after it; flushed denormals that a call leaves to its process; the sign of
zeros in sums of neighbours and sorted rows.

{variants}
## Libraries

These libraries were run end to end on the CPU, with one fault in the tree after and a C++ build in each tree:

```console
$ opschema verify athena::my_attention athena::my_split_op --before ../old --device cpu --cells 8
$ opschema verify torch_scatter::scatter_sum torch_scatter::gather_csr --before ../old --import torch_scatter --cells 12
$ opschema verify ReluFwdOp RMSNormFwdOp SoftmaxFwdOp --device cpu --cells 2
```

- MagiCompiler 8e2e47c, operators of its tests: `2 * v` in place of `v` in `my_attention` is found in 8 of 8 cells; the cells
  of the other operator are unchanged.
- torch_scatter 2.1.2: without `src.contiguous()` in `scatter_cpu.cpp`, the strided cell is a regression, 23 others are unchanged.
  With the same build on both sides, 56 of 56 cells of 4 operators are unchanged.
- TileOPs 52dbc086 with tilelang 0.1.15: none of these ops can be compiled without a GPU, since each asks for its
  architecture first.

## What is not found

- An error below one ulp of a 16-bit output, unless the op takes float32 too.
- In the ranges where a function is nearly constant, an error below 32 times 2^-23 of the largest output of the cell.
- A wrong call that after computes, where before did not refuse it by a statement of its own but failed in it, as `x.t()` does for
  three axes.
- An inner axis of no elements that after refuses, if the error says so, though before took it.
- An overflow on the largest numbers or on denormals, where the reference does not overflow: it is only a note.
- A single zero of the wrong sign, and any in an op whose output is never negative or is computed from several elements.
- Other strides of an output where the inputs are not contiguous: they are only a note.
- A gradient that is wrong at fewer than a tenth of its elements, or by less than 2 % (15 % in 16 bits), of an op that is no
  operator of torch.library; one that has the right values at other elements, of an input with many equal elements.
- Integers beyond 2^25 and sums of them that overflow.
- An infinity turned into NaN by a sum over rows: a column with an infinity has a NaN, too.
- More than 2,051 columns, and rows beyond twice those of the workload: a grid that ends at 65,535 blocks.
- What a call leaves changed in the environment, in filters of warnings or in loggers: imports do that, too.
- Threads and child processes that a call leaves behind, and deterministic algorithms that it turns on.
- Memory below half of the smallest tensor of a call, and what is kept for each new shape.
"""


def page() -> str:
    """``docs/verify-faults.md``."""
    values = {
        "{table}": table(),
        "{variants}": variants_table(),
        "{faults}": str(sum(len(op.faults) for op in ALL)),
        "{rewrites}": str(sum(len(op.rewrites) for op in ALL)),
        "{further}": str(len(FURTHER)),
        "{ops}": str(len(ALL)),
        "{cells}": str(Limits().cells),
    }
    text = PAGE
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def variants_table() -> str:
    """The ops with their faults and rewrites as a Markdown table."""
    rows = [f"| `{op.name}` | {_listed(op.faults)} | {_listed(op.rewrites)} |" for op in ALL]
    return "\n".join(["| op | faults, all found | rewrites, no alarm |", "|---|---|---|", *rows]) + "\n"


def _listed(names: Mapping[str, str]) -> str:
    return "; ".join(name.replace("|", "\\|") for name in names)


def table() -> str:
    """The faults as a Markdown table."""
    rows = [
        f"| {fault.name} | {places(fault)} | `{check}` | `{cell}` |" for fault in FAULTS for cell, check in seen(fault)
    ]
    return "\n".join(["| fault | planted in | check | cell |", "|---|---|---|---|", *rows]) + "\n"


def seen(fault: Fault) -> list[tuple[str, str]]:
    """The first cell in which it is seen, and the check."""
    return list(fault.seen.items())[:1]


def places(fault: Fault) -> str:
    return ", ".join(f"`{path}`" for path in dict.fromkeys(edit.path for edit in fault.edits))


def cu(name: str, old: str, new: str) -> tuple[Edit, ...]:
    """An edit of a kernel."""
    return (Edit(f"{CUDA}/{name}.cu", old, new),)


_SUM_LAUNCH = "self.launch(rows, out, out.numel(), x.shape[-1])"
_ROWS = "rows = x.contiguous()\n        out = rows.new_empty(x.shape[:-1])"
_UNARY_END = "self.launch(flat, out, self.numel)\n        return out\n\n\nclass ReluKernel"
_GELU = "out[i] = narrow<T>(0.5f * v * erfcf(-0.70710678f * v));"
_RELU = "narrow<T>(v < 0.0f ? 0.0f : v)"

FAULTS = (
    Fault(
        "off by one in the last block of 32: its last element is not summed",
        "SumFwdOp",
        cu("sum", "i < columns; ++i)", "i < columns - (columns % 32 != 0); ++i)"),
        {"rows-float16-row-s0": SOUND, "rows-float16-odd-s0": "tolerance", "rows-bfloat16-tail-1-s0": "tolerance"},
    ),
    Fault(
        "missing mask in a reduction: the last block of 32 goes on into the next row",
        "SumFwdOp",
        cu(
            "sum",
            "i < columns; ++i) total.add(widen(x[row * columns + i]))",
            "i < (columns + 31) / 32 * 32; ++i) total.add(widen(x[(row * columns + i) % (rows * columns)]))",
        ),
        {"rows-float16-row-s0": SOUND, "rows-float16-odd-s0": "tolerance"},
    ),
    Fault(
        "accumulates in the 16-bit dtype",
        "SumFwdOp",
        (
            *cu("sum", "Sum total;", "T total = narrow<T>(0.0f);"),
            *cu("sum", "total.add(widen(x[row * columns + i]))",
                "total = narrow<T>(widen(total) + widen(x[row * columns + i]))"),
            *cu("sum", "narrow<T>(total.value())", "total"),
        ),
        {"rows-float16-row-s0": "tolerance", "rows-bfloat16-odd-s0": "tolerance"},
    ),
    Fault(
        "ignores strides",
        "RMSNormFwdOp",
        (Edit("tilekit/kernels/norm.py", "rows, scale = x.contiguous(),", "rows, scale = x,"),),
        {"decoder-1b-float16-row-s0": SOUND, "decoder-1b-float16-row-strided-s0": "nan-mask"},
    ),
    Fault(
        "stale cache: the width of the first call's rows",
        "SumFwdOp",
        (
            Edit(SUM, _ROWS,
                 'self.width = getattr(self, "width", x.shape[-1])\n'
                 "        rows = x[..., : self.width].contiguous()\n"
                 "        out = rows.new_empty(x.shape[:-1])"),
            Edit(SUM, _SUM_LAUNCH, "self.launch(rows, out, out.numel(), rows.shape[-1])"),
        ),
        {"rows-float16-row-s0": SOUND, "rows-float16-odd-s0": SOUND, "rows-float16-tail-1-s0": "tolerance"},
    ),
    Fault(
        "stale cache: rows beyond the first call's count are left out",
        "SumFwdOp",
        (
            Edit(SUM, _SUM_LAUNCH,
                 'self.rows = getattr(self, "rows", out.numel())\n'
                 "        self.launch(rows, out, min(self.rows, out.numel()), x.shape[-1])"),
        ),
        {"rows-float16-row-s0": SOUND, "rows-float16-larger-s0": "nan-mask"},
    ),
    Fault(
        "unwritten tail of a vector of 8",
        "GeluFwdOp",
        cu("gelu", "if (i >= n) return;", "if (i >= n / 8 * 8) return;"),
        {"mlp-float16-row-s0": SOUND, "mlp-float16-odd-s0": "nan-mask"},
    ),
    Fault(
        "race in every fourth call",
        "ReluFwdOp",
        cu(
            "relu",
            "return launch(relu<T>, n, stream, x, out, n);",
            "static int calls = 0; const int error = launch(relu<T>, n, stream, x, out, n); "
            "if (++calls % 4 == 0 && n) out[n / 2] = narrow<T>(1.0f + widen(out[n / 2])); return error;",
        ),
        {"square-float16-row-s0": "poison"},
    ),
    Fault(
        "race of two threads of a row, the second of which adds to what the first wrote",
        "SumFwdOp",
        (
            *cu("sum", "const int64_t row = thread_index();", "const int64_t row = thread_index() / 2, part = thread_index() % 2;"),
            *cu("sum", "for (int64_t i = 0; i < columns; ++i)", "for (int64_t i = part; i < columns; i += 2)"),
            *cu("sum", "narrow<T>(total.value())", "narrow<T>(part ? widen(out[row]) + total.value() : total.value())"),
            *cu("sum", "launch(sum<T>, rows,", "launch(sum<T>, 2 * rows,"),
        ),
        {"middle-axis-float32-row-s0": "repeat", "rows-float16-odd-s0": "repeat"},
    ),
    Fault(
        "writes one element beyond its output",
        "GeluFwdOp",
        cu("gelu", "if (i >= n) return;", "if (i > n) return;"),
        {"mlp-float16-row-s0": SOUND, "mlp-float16-odd-s0": "overrun", "odd-float32-row-s0": "overrun"},
    ),
    Fault(
        "writes one element before its input",
        "SumFwdOp",
        (
            *cu("sum", "out[row] = narrow<T>(total.value());",
                "out[row] = narrow<T>(total.value()); if (row == 0) const_cast<T *>(x)[-1] = out[row];"),
        ),
        {"rows-float16-odd-s0": "input-overrun"},
    ),
    Fault(
        "NaN turned into 0",
        "ReluFwdOp",
        cu("relu", _RELU, "narrow<T>(v > 0.0f ? v : 0.0f)"),
        {"square-float16-row-s0": SOUND, "square-float16-row-special-s0": "nan-mask"},
    ),
    Fault(
        "infinities clamped",
        "ReluFwdOp",
        cu("relu", _RELU, "narrow<T>(v < 0.0f ? 0.0f : v > 65504.0f ? 65504.0f : v)"),
        {"square-float16-row-s0": SOUND, "square-float16-row-special-s0": "inf-mask"},
    ),
    Fault(
        "denormals flushed",
        "ReluFwdOp",
        cu("relu", _RELU, "narrow<T>(v < 1.17549435e-38f ? 0.0f : v)"),
        {"square-bfloat16-row-s0": SOUND, "square-bfloat16-row-special-s0": "denormals"},
    ),
    Fault(
        "raises for no elements",
        "ReluFwdOp",
        (Edit(f"{CUDA}/cuda_shim.h", "if (gridDim.x == 0) return 0;", "if (gridDim.x == 0) return 9;"),),
        {"square-float16-row-s0": SOUND, "square-float16-zero-rows-s0": "raised"},
    ),
    Fault(
        "input mutated after use",
        "ReluFwdOp",
        (Edit(UNARY, _UNARY_END, _UNARY_END.replace("return out", "flat.mul_(0.5)\n        return out")),),
        {"square-float16-odd-s0": "input-changed"},
    ),
    Fault(
        "returns the input's storage",
        "ReluFwdOp",
        (
            Edit(UNARY, f"out = torch.empty_like(flat)\n        {_UNARY_END}", f"out = flat\n        {_UNARY_END}"),
            Edit("tilekit/ops/elementwise/_base.py", "return wrapped(input, self._instance_key)",
                 "return self._eager_forward(input)"),
        ),
        {"square-float16-odd-s0": "shared-storage"},
    ),
    Fault(
        "zeroes its input and returns 0",
        "ReluFwdOp",
        (Edit(UNARY, _UNARY_END, _UNARY_END.replace("return out", "return torch.zeros_like(flat.zero_())")),),
        {"square-float16-odd-s0": "input-changed"},
    ),
    Fault(
        "wrong output dtype",
        "ReluFwdOp",
        (Edit(UNARY, _UNARY_END, _UNARY_END.replace("return out", "return out.float()")),),
        {"odd-float32-row-s0": SOUND, "square-float16-odd-s0": "dtype"},
    ),
    Fault(
        "extra leading dimension",
        "ReluFwdOp",
        (Edit("tilekit/ops/elementwise/_base.py", "kernel(input).reshape(input.shape)", "kernel(input).reshape(1, *input.shape)"),),
        {"square-float16-odd-s0": "shape"},
    ),
    Fault(
        "one element 10 % off",
        "GeluFwdOp",
        cu("gelu", _GELU, _GELU.replace("0.5f", "(i == 1234 ? 0.55f : 0.5f)")),
        {"mlp-float16-odd-s0": SOUND, "mlp-float16-row-s0": "tolerance", "mlp-bfloat16-row-s0": "tolerance"},
    ),
    Fault(
        "one row zero",
        "RMSNormFwdOp",
        cu("rms_norm", "const float scale = rsqrtf(", "const float scale = row == 5 ? 0.0f : rsqrtf("),
        {"decoder-1b-float16-one-row-s0": SOUND, "decoder-1b-float16-row-s0": "tolerance"},
    ),
    Fault(
        "bias of 0.3 %",
        "RMSNormFwdOp",
        cu("rms_norm", "* scale * weight[i]", "* scale * weight[i] * 1.003f"),
        {"decoder-1b-float16-row-s0": "tolerance", "odd-float32-row-s0": "tolerance"},
    ),
    Fault(
        "bias of 0.8 %",
        "RMSNormFwdOp",
        cu("rms_norm", "* scale * weight[i]", "* scale * weight[i] * 1.008f"),
        {"decoder-1b-bfloat16-row-s0": "tolerance"},
    ),
    Fault(
        "eps of 1e-3 for 1e-6",
        "RMSNormFwdOp",
        (Edit("tilekit/ops/norm.py", "DEFAULT_EPS = 1.0e-6", "DEFAULT_EPS = 1.0e-3"),),
        {"decoder-1b-float16-row-s0": "tolerance", "odd-float32-row-s0": SOUND},
    ),
    Fault(
        "noise of 1e-3",
        "GeluFwdOp",
        cu("gelu", _GELU, _GELU.replace("* v));", "* v) + 1e-6f * (i * 7919 % 2001 - 1000));")),
        {"mlp-float16-row-s0": "tolerance", "odd-float32-row-s0": "tolerance"},
    ),
    Fault(
        "returns a buffer that its next call overwrites",
        "ReluFwdOp",
        (Edit(UNARY, f"out = torch.empty_like(flat)\n        {_UNARY_END}",
              f"out = vars(self).setdefault('out', torch.empty_like(flat))\n        {_UNARY_END}"),),
        {"square-float16-odd-s0": "overwritten"},
    ),
    Fault(
        "leaves torch's default dtype changed",
        "ReluFwdOp",
        (Edit(UNARY, _UNARY_END, f"torch.set_default_dtype(torch.float64)\n        {_UNARY_END}"),),
        {"square-float16-odd-s0": "state"},
    ),
)  # fmt: skip


if __name__ == "__main__":
    Path("docs/verify-faults.md").write_text(page(), encoding="utf-8")
