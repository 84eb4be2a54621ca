"""Parameters that a kernel never reads."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_rules.flydsl.arguments import is_read
from opschema_rules.flydsl.model import FlyTree, Kind, Parameter, Traced
from opschema_rules.flydsl.usage import is_meant_to_fail


@rule("FLY212", "unread-parameter", severity="info")
def unread_parameter(tree: FlyTree) -> Iterator[Diagnostic]:
    """A parameter of a kernel or launcher that its body never reads.

    Every call evaluates and passes it, the kernel loads it, and a reader expects it to set a bound: a kernel that takes `n`
    and does not compare with it writes out of bounds if `n` is not a multiple of its tile. A `Constexpr` that nothing reads
    compiles the kernel again for each of its values.

    Nothing is reported for a name that begins with `_`, a parameter that is deleted, functions that read none of their
    parameters, `self`, a stream (see [ignored-stream](FLY219.md)), and a `Constexpr` of a launcher, which may be there to
    distinguish entries of the compile cache. If kernels of one file share a signature, or part of it, and another one reads
    the parameter, it is considered part of a common interface.

    Bad:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):
        C[fx.thread_idx.x] = A[fx.thread_idx.x]
    ```

    Good:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, C: fx.Tensor, n: fx.Int32, _reserved: fx.Int32):
        if fx.thread_idx.x < n:
            C[fx.thread_idx.x] = A[fx.thread_idx.x]
    ```

    Good, two kernels of one interface:

    ```python
    @flyc.kernel
    def plain(A: fx.Tensor, C: fx.Tensor, factor: fx.Float32):
        C[fx.thread_idx.x] = A[fx.thread_idx.x]


    @flyc.kernel
    def scaled(A: fx.Tensor, C: fx.Tensor, factor: fx.Float32):
        C[fx.thread_idx.x] = A[fx.thread_idx.x] * factor
    ```
    """
    for traced in tree.traced:
        if traced.function.stub or is_meant_to_fail(tree, traced.body):
            continue
        read = [item for item in traced.call_parameters if is_read(traced, item)]
        for parameter in traced.call_parameters if read else ():
            if parameter not in read and _counts(traced, parameter) and not _is_common(tree, traced, parameter):
                yield Diagnostic(
                    f"`{traced.name}` takes `{parameter.name}` and does not read it: drop it here and in the calls, or "
                    f"name it `_{parameter.name}`",
                    traced.body.at(parameter.param.span),
                    tuple(_passed(traced, parameter)),
                    ops=(traced.title,),
                )


def _counts(traced: Traced, parameter: Parameter) -> bool:
    if traced.kind == "kernel":
        return not parameter.name.startswith("_") and parameter.param.by_name
    return parameter.kind in (Kind.TENSOR, Kind.NUMBER, Kind.POINTER) and not parameter.name.startswith("_")


def _is_common(tree: FlyTree, traced: Traced, parameter: Parameter) -> bool:
    """Whether another function of the file has the parameter, reads it, and shares most of the signature."""
    names = {item.name for item in traced.call_parameters}
    for other in tree.traced:
        found = other.parameter(parameter.name) if other is not traced else None
        if found is not None and other.kind == traced.kind and other.body.file is traced.body.file:
            shared = names & {item.name for item in other.call_parameters}
            if 2 * len(shared) > len(names) and is_read(other, found):
                return True
    return False


def _passed(traced: Traced, parameter: Parameter) -> Iterator[Related]:
    for call in traced.calls[:3]:
        value = call.argument(parameter.name)
        if value is not None:
            yield Related(call.body.at(value), "passed here")
