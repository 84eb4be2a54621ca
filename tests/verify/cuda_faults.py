# ruff: noqa: E501
"""Faults of CUDA kernels and of their launches, each with its sound twin, for runs on a GPU: see ``test_cuda.py`` and docs/gpu-run.md.

Kernels are compiled by NVRTC, which torch brings, and include nothing; so no CUDA toolkit is needed. Each op is a module of its own, whose
function ``op`` takes float32 ``x``, and ``w`` for products.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from opschema_cli.verify.cells import Case
from opschema_cli.verify.compute_sanitizer import Tool
from opschema_cli.verify.large.growth import with_large_tensor
from opschema_cli.verify.model import Call, Cell, Input, Layout, Output, Plan, Target, Values

RAISED = "raised or died"
"""Stands for the check where the process loses its GPU or raises: an error of CUDA sticks."""


class CudaFault(NamedTuple):
    """``sound`` and ``faulty`` are bodies of ``op``, ``kernel`` is CUDA whose entry is ``kernel``; in ``faulty_kernel`` it is replaced.

    One of ``checks`` must find the fault in a cell of this shape, values and layout. ``tool`` of compute-sanitizer finds it, too.
    ``large`` ones are called with int8 ``x`` of more than 2³¹ elements. ``chance`` is why it may not show on some GPU.
    """

    name: str
    reference: str
    kernel: str
    sound: str
    checks: frozenset[str]
    faulty: str = ""
    faulty_kernel: str = ""
    shape: tuple[int, int] = (67, 300)
    values: Values = "normal"
    layout: Layout = "contiguous"
    tool: Tool | None = None
    devices: int = 1
    chance: str = ""
    large: bool = False

    @property
    def kernels(self) -> Iterator[str]:
        """Its sources."""
        yield from filter(None, (self.kernel, self.faulty_kernel))

    def module(self, *, faulty: bool) -> str:
        """The module of the op."""
        kernel, body = (
            (self.faulty_kernel or self.kernel, self.faulty or self.sound) if faulty else (self.kernel, self.sound)
        )
        arguments = "x, w" if self.product else "x"
        return MODULE.format(
            kernel=kernel, arguments=arguments, body="\n".join(f"    {line}" for line in body.strip().splitlines())
        )

    @property
    def product(self) -> bool:
        """Whether it has a second input."""
        return "w" in self.reference

    @property
    def cell(self) -> Cell:
        """The cell that shows the fault."""
        if self.large:
            return _large_cell()
        inputs = [Input(name="x", shape=self.shape, dtype="float32")]
        if self.product:
            inputs.append(Input(name="w", shape=self.shape[::-1], dtype="float32"))
        call = Call(inputs=tuple(inputs), outputs=(Output(name="y"),))
        return Cell(op="Op", row="r", dtype="float32", values=self.values, layout=self.layout, call=call)


def _large_cell() -> Cell:
    def call(rows: int) -> Call:
        inputs = (Input(name="x", shape=(rows, 300), dtype="int8"),)
        return Call(inputs=inputs, outputs=(Output(name="y", shape=(rows, 300), dtype="int8"),))

    case = Case("Op", "r", "int8", "row", call(67), lambda: {"larger": call(137)})
    return with_large_tensor(Plan(op="Op", target=Target(root="", module="", name=""), cells=()), [case]).cells[0]


MODULE = '''\
import os

import torch
from torch.utils import cpp_extension

# torch asks for it before it compiles, for headers that these kernels do not need.
cpp_extension.CUDA_HOME = cpp_extension.CUDA_HOME or os.path.dirname(os.__file__)

SOURCE = r"""{kernel}"""
KEPT = []


COMPILED = {{}}


def launch(blocks, threads, x, *args, stream=None):
    with torch.cuda.device(x.device):
        if x.device not in COMPILED:
            compile_kernel = getattr(torch.cuda, "compile_kernel", None) or torch.cuda._compile_kernel
            COMPILED[x.device] = compile_kernel(SOURCE, "kernel")
        COMPILED[x.device](grid=(blocks, 1, 1), block=(threads, 1, 1), args=[x, *args], stream=stream)


def op({arguments}):
{body}
'''

RECIPE = """\
from opschema_cli.verify.recipes import Recipe, recipe


@recipe("Op")
class OpRecipe(Recipe):
    def reference(self, tensors, params):
        x, w = tensors["x"], tensors.get("w")
        return {reference}
"""


def write(fault: CudaFault, folder: Path) -> tuple[str, str]:
    """Write the modules of a fault and its recipe, ``recipes.py``; the names of the sound and of the faulty module."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipes.py").write_text(RECIPE.format(reference=fault.reference), encoding="utf-8")
    for name in ("sound", "faulty"):
        (folder / f"{name}_op.py").write_text(fault.module(faulty=name == "faulty"), encoding="utf-8")
    return "sound_op", "faulty_op"


SCALE = """
extern "C" __global__ void kernel(float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}
"""
SCALED = """
x = x.contiguous()
y = torch.empty_like(x)
launch((x.numel() + 255) // 256, 256, x, y, x.numel())
return y
"""

# Threads behind the first warp are late, so that what does not wait for them reads too early.
LATE = "  if (t >= 32) { long long start = clock64(); while (clock64() - start < 100000) { } }\n"
SUM = f"""
extern "C" __global__ void kernel(float *x, float *y, int columns) {{
  __shared__ float part[256];
  int t = threadIdx.x;
  float s = 0;
  for (int i = t; i < columns; i += 256) s += x[(long long)blockIdx.x * columns + i];
{LATE}  part[t] = s;
  __syncthreads();
  for (int width = 128; width; width /= 2) {{
    if (t < width) part[t] += part[t + width];
    __syncthreads();
  }}
  if (t == 0) y[blockIdx.x] = part[0];
}}
"""
SUMMED = """
x = x.contiguous()
y = torch.empty(x.shape[0], device=x.device)
launch(x.shape[0], 256, x, y, x.shape[1])
return y
"""

# The buffer of a tile is used again for the next one.
TILES = """
extern "C" __global__ void kernel(float *x, float *y, int columns) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  float s = 0;
  for (int first = 0; first < columns; first += 64) {
    tile[t] = first + t < columns ? x[(long long)blockIdx.x * columns + first + t] : 0;
    __syncthreads();
    if (t >= 32) { long long start = clock64(); while (clock64() - start < 20000) { } }
    for (int i = 0; i < 64; ++i) s += tile[(i + t) % 64];
    __syncthreads();
  }
  if (t == 63) y[blockIdx.x] = s;
}
"""

COLUMNS = """
extern "C" __global__ void kernel(float *x, float *y, int rows, int columns) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= columns) return;
  float s = 0;
  for (int r = 0; r < rows; ++r) s += x[(long long)r * columns + j];
  y[j] = s;
}
"""
COLUMNS_SUMMED = """
x = x.contiguous()
y = torch.zeros(x.shape[1], device=x.device)
launch((x.shape[1] + 255) // 256, 256, x, y, x.shape[0], x.shape[1])
return y
"""
ROW_A_BLOCK = """
extern "C" __global__ void kernel(float *x, float *y, int rows, int columns) {
  for (int j = threadIdx.x; j < columns; j += blockDim.x) ADD
}
"""
ROWS_ADDED = """
x = x.contiguous()
y = torch.zeros(x.shape[1], device=x.device)
launch(x.shape[0], 256, x, y, x.shape[0], x.shape[1])
return y
"""

VECTORS = """
struct __align__(16) Four { float a, b, c, d; };
extern "C" __global__ void kernel(float *x, float *y, int n) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (ALIGNED i + 4 <= n) {
    Four v = *(Four *)(x + i);
    y[i] = 2 * v.a + 1; y[i + 1] = 2 * v.b + 1; y[i + 2] = 2 * v.c + 1; y[i + 3] = 2 * v.d + 1;
  } else {
    for (int k = i; k < n && k < i + 4; ++k) y[k] = 2 * x[k] + 1;
  }
}
"""

HALVED = """
extern "C" __global__ void kernel(float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) asm("MUL.f32 %0, %1, %2;" : "=f"(y[i]) : "f"(x[i]), "f"(0.5f));
}
"""

FLIP = """
extern "C" __global__ void kernel(signed char *x, signed char *y, int rows, int columns) {
  INDEX n = (INDEX)rows * columns, i = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = ~x[i];
}
"""
FLIPPED = """
x = x.contiguous()
y = torch.empty_like(x)
launch((x.numel() + 255) // 256, 256, x, y, x.shape[0], x.shape[1])
return y
"""

WRONG = frozenset({"tolerance", "nan-mask", "inf-mask", "repeat", "poison"})
"""The checks of values: which one depends on what memory holds."""

CUDA_FAULTS = (
    CudaFault(
        "out of bounds: one element beyond the output",
        "2 * x + 1",
        SCALE,
        SCALED,
        frozenset({"overrun"}),
        faulty_kernel=SCALE.replace(
            "if (i < n) y[i] = 2 * x[i] + 1", "if (i < n) y[i] = 2 * x[i] + 1; else if (i == n) y[i] = 7"
        ),
        tool="memcheck",
    ),
    CudaFault(
        "out of bounds: one element before the input",
        "2 * x + 1",
        SCALE,
        SCALED,
        frozenset({"input-overrun"}),
        faulty_kernel=SCALE.replace("if (i < n)", "if (i == 0) x[-1] = 7; if (i < n)"),
    ),
    CudaFault(
        "a sticky error: far beyond the output",
        "2 * x + 1",
        SCALE,
        SCALED,
        frozenset({RAISED}),
        faulty_kernel=SCALE.replace("y[i]", "y[i + (1ll << 40)]"),
        tool="memcheck",
    ),
    CudaFault(
        "a race of blocks: a sum without atomics",
        "x.sum(0)",
        COLUMNS,
        COLUMNS_SUMMED,
        WRONG,
        faulty=ROWS_ADDED,
        faulty_kernel=ROW_A_BLOCK.replace("ADD", "y[j] += x[(long long)blockIdx.x * columns + j];"),
        shape=(1031, 300),
    ),
    CudaFault(
        "atomics: a sum whose order changes",
        "x.sum(0)",
        COLUMNS,
        COLUMNS_SUMMED,
        frozenset({"repeat", "poison"}),
        faulty=ROWS_ADDED,
        faulty_kernel=ROW_A_BLOCK.replace("ADD", "atomicAdd(y + j, x[(long long)blockIdx.x * columns + j]);"),
        shape=(4099, 300),
        chance="blocks may end in the same order each time",
    ),
    CudaFault(
        "a missing barrier before shared memory is read",
        "x.sum(-1)",
        SUM,
        SUMMED,
        WRONG,
        faulty_kernel=SUM.replace("part[t] = s;\n  __syncthreads();", "part[t] = s;"),
        tool="racecheck",
    ),
    CudaFault(
        "a race in shared memory: a tile is overwritten while it is read",
        "x.sum(-1)",
        TILES,
        SUMMED.replace("256, x", "64, x"),
        WRONG,
        faulty_kernel=TILES.replace("    __syncthreads();\n  }", "  }"),
        tool="racecheck",
    ),
    CudaFault(
        "shared memory that is not written for short rows",
        "x.sum(-1)",
        SUM,
        SUMMED,
        WRONG,
        faulty_kernel=SUM.replace("part[t] = s;", "if (t < columns) part[t] = s;"),
        shape=(67, 100),
        chance="shared memory may hold zeros",
    ),
    CudaFault(
        "the grid is too small: the last block is left out",
        "2 * x + 1",
        SCALE,
        SCALED,
        WRONG,
        faulty=SCALED.replace("+ 255) // 256", ") // 256"),
        tool="initcheck",
    ),
    CudaFault(
        "the default stream",
        "2 * x + 1",
        SCALE,
        SCALED,
        WRONG,
        faulty=SCALED.replace("x.numel())\nreturn", "x.numel(), stream=torch.cuda.default_stream())\nreturn"),
    ),
    CudaFault(
        "a stream of its own that waits for nothing",
        "2 * x + 1",
        SCALE,
        SCALED,
        WRONG,
        faulty=SCALED.replace("x.numel())\nreturn", "x.numel(), stream=torch.cuda.Stream())\nreturn"),
    ),
    CudaFault(
        "a missing wait for another stream",
        "2 * x + 1",
        SCALE.replace("  int i", "  long long start = clock64(); while (clock64() - start < 1000000) { }\n  int i", 1),
        SCALED.replace("return y", "return y + 0"),
        WRONG,
        faulty=SCALED.replace(
            "launch", "other = torch.cuda.Stream()\nother.wait_stream(torch.cuda.current_stream())\nlaunch"
        ).replace("x.numel())\nreturn y", "x.numel(), stream=other)\nreturn y + 0"),
    ),
    CudaFault(
        "a vector is read where memory is not aligned",
        "2 * x + 1",
        VECTORS.replace("ALIGNED", "(unsigned long long)x % 16 == 0 &&"),
        SCALED.replace("256, 256", "1024, 256").replace("255", "1023"),
        frozenset({RAISED}),
        faulty_kernel=VECTORS.replace("ALIGNED ", ""),
        layout="offset",
        tool="memcheck",
    ),
    CudaFault(
        "an index of 16 bits overflows",
        "2 * x + 1",
        SCALE,
        SCALED,
        WRONG | {RAISED, "overrun"},
        faulty_kernel=SCALE.replace("if (i < n) y", "if (i < n) i = (unsigned short)i; if (i < n) y"),
        shape=(300, 300),
    ),
    CudaFault(
        "an index of 32 bits overflows",
        "~x",
        FLIP.replace("INDEX", "long long"),
        FLIPPED,
        frozenset({RAISED, "large-tensor"}),
        faulty_kernel=FLIP.replace("INDEX", "int"),
        large=True,
    ),
    CudaFault(
        "products in TF32",
        "x @ w",
        "",
        "return x @ w",
        frozenset({"tolerance", "state"}),
        faulty="torch.backends.cuda.matmul.allow_tf32 = True\nreturn x @ w",
    ),
    CudaFault(
        "denormals are flushed",
        "x * 0.5",
        HALVED.replace("MUL", "mul"),
        SCALED,
        frozenset({"denormals"}),
        faulty_kernel=HALVED.replace("MUL", "mul.ftz"),
        values="special",
    ),
    CudaFault(
        "every call keeps memory",
        "2 * x + 1",
        SCALE,
        SCALED,
        frozenset({"memory"}),
        faulty=SCALED.replace("return y", "KEPT.append(torch.empty_like(x))\nreturn y"),
    ),
    CudaFault(
        "an error of a launch is ignored",
        "2 * x + 1",
        SCALE,
        SCALED,
        WRONG,
        faulty=SCALED.replace(
            "launch((x.numel() + 255) // 256, 256, x, y, x.numel())",
            "try:\n    launch((x.numel() + 2047) // 2048, 2048, x, y, x.numel())\nexcept RuntimeError:\n    pass",
        ),
    ),
    CudaFault(
        "the first device instead of the input's",
        "2 * x + 1",
        SCALE,
        SCALED,
        frozenset({"device", "second-device"}),
        faulty=SCALED.replace("torch.empty_like(x)", "torch.empty(x.shape, device='cuda:0')"),
        devices=2,
    ),
)
