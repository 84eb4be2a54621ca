"""Parameters that a kernel never reads."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_rules.flydsl.arguments import is_read
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.model import FlyTree, Kind, Parameter, Traced
from opschema_rules.flydsl.usage import is_meant_to_fail

SHOWN_CALLS = 3
"""Maximum number of calls shown in a finding about one parameter."""


@rule("FLY212", "unread-parameter", severity="info", pure=True)
def unread_parameter(file: FlyFile) -> Iterator[Diagnostic]:
    """Parameters of a kernel or launcher that its body never reads. Those of one function are one finding.

    Every call evaluates and passes it, the kernel loads it, and a reader expects it to set a bound: a kernel that takes `n`
    and does not compare with it writes out of bounds if `n` is not a multiple of its tile. Up to FlyDSL 0.4.2 a `Constexpr`
    that nothing reads compiles the kernel again for each of its values.

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
    tree = file.tree
    for traced in tree.traced:
        if traced.function.stub:
            continue
        unread = [item for item in traced.call_parameters if not is_read(traced, item)]
        found = [item for item in unread if _counts(traced, item) and not _is_common(tree, traced, item)]
        if found and len(unread) < len(traced.call_parameters) and not is_meant_to_fail(tree, traced.body):
            yield Diagnostic(
                _message(traced, [item.name for item in found]),
                traced.body.at(found[0].param.span),
                tuple(_related(traced, found)),
                ops=(traced.title,),
            )


def _message(traced: Traced, names: list[str]) -> str:
    if len(names) == 1:
        return f"`{traced.name}` takes `{names[0]}` and does not read it: drop it here and in the calls, or name it `_{names[0]}`"
    listed = ", ".join(f"`{name}`" for name in names[:-1])
    return (
        f"`{traced.name}` takes {listed} and `{names[-1]}` and does not read them: drop them here and in the calls, or "
        "begin their names with `_`"
    )


def _related(traced: Traced, unread: list[Parameter]) -> Iterator[Related]:
    """Yield the other unread parameters, and the arguments that calls pass for each, for a few calls."""
    for parameter in unread[1:]:
        yield Related(traced.body.at(parameter.param.span), "not read either")
    for call in traced.calls[: SHOWN_CALLS if len(unread) == 1 else 1]:
        for parameter in unread:
            value = call.argument(parameter.name)
            if value is not None:
                yield Related(call.body.at(value), "passed here")


def _counts(traced: Traced, parameter: Parameter) -> bool:
    if traced.kind == "kernel":
        return not parameter.name.startswith("_") and parameter.param.by_name
    return parameter.kind in (Kind.TENSOR, Kind.NUMBER, Kind.POINTER) and not parameter.name.startswith("_")


def _is_common(tree: FlyTree, traced: Traced, parameter: Parameter) -> bool:
    """Whether another function of the file has the parameter, reads it, and shares most of the signature."""
    names = traced.passed_names
    others = _readers(tree).get((traced.body.file.path, traced.kind, parameter.name), ())
    return any(other is not traced and 2 * len(names & other.passed_names) > len(names) for other in others)


@cached_on_argument
def _readers(tree: FlyTree) -> dict[tuple[str, str, str], list[Traced]]:
    """The functions that read a parameter, by their file, their kind and its name."""
    found: dict[tuple[str, str, str], list[Traced]] = {}
    for traced in tree.traced:
        for item in traced.parameters:
            if is_read(traced, item):
                found.setdefault((traced.body.file.path, traced.kind, item.name), []).append(traced)
    return found
