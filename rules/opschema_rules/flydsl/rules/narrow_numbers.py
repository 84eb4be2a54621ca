"""Numbers that do not fit in 32 bits."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_rules.flydsl.arguments import binds_as_written
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.model import Call, FlyTree, Kind
from opschema_rules.flydsl.narrow_numbers import U32_MAX, overflows
from opschema_rules.flydsl.usage import of_sure_call
from opschema_rules.flydsl.workloads import Workload, workloads

_LEAST = -(2**31)
_MOST = {"Int32": 2**31 - 1, "Uint32": 2**32 - 1}
"""The largest values by type; any other 32-bit number may be meant as signed or as unsigned."""


@rule("FLY226", "i32-overflow", severity="warning", pure=True)
def i32_overflow(file: FlyFile) -> Iterator[Diagnostic]:
    """A number that has 32 bits and needs more, with the sizes that code of the tree passes.

    An `fx.Int32` keeps the low 32 bits of what it is passed, silently, and so do sums and products of numbers of 32 bits: the
    product `M * K` of two parameters for 65,536 by 131,072 elements is 0. An offset that is computed so reads or writes
    another element. Begin with a number of 64 bits, `fx.Int64(M) * K`, and declare parameters `fx.Int64` that may be large.

    The sizes are those of calls in the tree: constants, shapes and strides of tensors, the rows of a loop over a list or of
    `pytest.mark.parametrize`, and what callers pass. Reported are arguments beyond the range of the parameter, and sums and
    products of sizes of tensors, block and thread indices, and variables of loops, whose greatest values follow from the grid
    and the bounds. Only results beyond 32 bits are reported, as offsets between 2^31 and 2^32 may be meant as unsigned ones,
    unless the result is made an `fx.Int64`. Statements in an `if` or a loop are checked if the last thread of the last block
    certainly runs them, and kernels if they are certainly launched. Not checked are sizes that the host tests before the call,
    products that go into a mask (`&`), a remainder or an exclusive or, products in helpers and inner functions, and those with
    a size that a factory captures.

    Bad:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, M: fx.Int32, K: fx.Int32):
        last = M * K


    @flyc.jit
    def launch(A: fx.Tensor, M: fx.Int32, K: fx.Int32):
        scale(A, M, K).launch(grid=(1, 1, 1), block=(64, 1, 1))


    for rows, width in [(1024, 4096), (65536, 131072)]:
        launch(torch.empty(rows, width), rows, width)
    ```

    Bad, the offset of the last row:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, K: fx.Int32):
        offset = fx.block_idx.x * K


    @flyc.jit
    def launch(A: fx.Tensor, M: fx.Int32, K: fx.Int32):
        scale(A, K).launch(grid=(M, 1, 1), block=(64, 1, 1))


    def run():
        a = torch.empty(131072, 65536)
        launch(a, a.shape[0], a.shape[1])
    ```

    Bad, in the last iteration of the loop:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, M: fx.Int32, K: fx.Constexpr[int]):
        for row in range(M):
            offset = row * K


    @flyc.jit
    def launch(A: fx.Tensor, M: fx.Int32, K: fx.Constexpr[int]):
        scale(A, M, K).launch(grid=(1, 1, 1), block=(64, 1, 1))


    def run():
        a = torch.empty(131072, 65536)
        M, K = a.shape
        launch(a, M, K)
    ```

    Bad:

    ```python
    @flyc.jit
    def launch(A: fx.Tensor, count: fx.Int32):
        print(A, count)


    def run():
        a = torch.empty(65536, 65536)
        launch(a, a.numel())
    ```

    Good:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, M: fx.Int32, K: fx.Int32, count: fx.Int64):
        last = fx.Int64(M) * K + count
        offset = fx.block_idx.x * 64


    @flyc.jit
    def launch(A: fx.Tensor, M: fx.Int32, K: fx.Int32, count: fx.Int64):
        scale(A, M, K, count).launch(grid=(M, 1, 1), block=(64, 1, 1))


    for rows, width in [(1024, 4096), (65536, 131072)]:
        launch(torch.empty(rows, width), rows, width, rows * width)
    ```

    Good, the offset stays small, and random numbers may wrap:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, M: fx.Int32, K: fx.Int32):
        rows = M
        rows //= 4096
        offset = rows * K
        state = (fx.block_idx.x * 64 + fx.thread_idx.x) * 1664525 + 1013904223


    @flyc.jit
    def launch(A: fx.Tensor, M: fx.Int32, K: fx.Int32):
        scale(A, M, K).launch(grid=(M, 1, 1), block=(64, 1, 1))


    for rows, width in [(1024, 4096), (65536, 131072)]:
        launch(torch.empty(rows, width), rows, width)
    ```

    Good, a seed may wrap:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, seed: fx.Int32):
        state = seed * 1664525 + 1013904223


    @flyc.jit
    def launch(A: fx.Tensor, seed: fx.Int32):
        fill(A, seed).launch(grid=(1, 1, 1), block=(64, 1, 1))


    launch(torch.empty(64), 123456789)
    ```
    """
    tree = file.tree
    found = dict(_passed_by_host(tree))
    for call, passed in found.items():
        yield from of_sure_call(tree, call, _arguments(call, passed))
    for item in overflows(tree, (item for call, passed in found.items() if not call.compiles for item in passed)):
        written = item.body.file.text(item.expr)
        message = (
            f"`{written}` has 32 bits, and is up to {item.value:,} where {_words(item.workload)}: it wraps; begin with a number of "
            "64 bits, `fx.Int64(...)`"
        )
        related = (Related(item.workload.call.place, "the sizes are passed here"),)
        yield Diagnostic(message, item.body.at(item.expr), related, ops=(item.traced.title,))


def _passed_by_host(tree: FlyTree) -> Iterator[tuple[Call, list[Workload]]]:
    """Yield the calls of launchers from untraced code, each with the known values of its arguments."""
    for traced in tree.traced:
        for call in traced.calls if traced.kind == "jit" else ():
            if tree.around(call.body) is None and binds_as_written(tree, call):
                passed = list(workloads(tree, call))
                if passed:
                    yield call, passed


def _arguments(call: Call, passed: list[Workload]) -> Iterator[Diagnostic]:
    """Yield findings on arguments beyond the range of their parameters, each once."""
    narrow = {item.name: item for item in call.target.call_parameters if item.kind is Kind.NUMBER and item.dsl in _MOST}
    reported: set[str] = set()
    for workload in passed if narrow else ():
        for name, value in workload.numbers.items():
            argument = call.argument(name)
            if name not in narrow or name in reported or argument is None:
                continue
            most = _MOST[narrow[name].dsl] if name in workload.sizes else U32_MAX
            if not _LEAST <= value <= most:
                reported.add(name)
                message = (
                    f"`{call.target.name}` takes `{name}` as `fx.{narrow[name].dsl}`, which keeps 32 bits of {value:,}: declare it "
                    "`fx.Int64`"
                )
                place = call.target.body.at(narrow[name].param.full_span)
                yield Diagnostic(
                    message, call.body.at(argument), (Related(place, "declared"),), ops=(call.target.title,)
                )


def _words(workload: Workload) -> str:
    sizes = (f"`{name}` is {value:,}" for name, value in workload.numbers.items() if name in workload.sizes)
    return ", ".join(list(sizes)[:4])
