"""Calls in entries of pypto's language, and the names that their golden functions read and their runs compare."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, listed
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.pypto.model import SpecEntry


@rule("PTO127", "language-call")
def language_call(entry: SpecEntry) -> Iterator[Diagnostic]:
    """A call of a function of pypto's language that passes another number of arguments than it takes.

    Functions under `@pl.jit.inline`, `@pl.jit.incore`, `@pl.jit.opaque` and `@pl.function` are called with all of their
    arguments, outputs too; otherwise the compiler stops: `Function 'proj' expects 3 argument(s), got 2`. That is seen when the
    entry is compiled, and not when its file is imported.

    The functions are followed from entries with specs. Calls with keywords or `*`, and functions with further
    decorators, are left alone. So are files that expect errors, and entries that all runs expect to fail. Both branches of
    an `if` are compiled, whatever its condition is. `pl.submit()` and the like may leave out outputs.

    Bad:

    ```python examples/double.py
    import pypto.language as pl
    import torch
    from golden import TensorSpec, run_jit


    @pl.jit.inline
    def scale(x: pl.Tensor[[8], pl.FP32], by: pl.Scalar[pl.FP32], y: pl.Tensor[[8], pl.FP32]): ...


    @pl.jit
    def double(x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]]):
        return scale(x, y)


    run_jit(
        fn=double,
        specs=[
            TensorSpec("x", [8], torch.float32, init_value=torch.randn),
            TensorSpec("y", [8], torch.float32, is_output=True),
        ],
    )
    ```

    Good:

    ```python examples/double.py
    import pypto.language as pl
    import torch
    from golden import TensorSpec, run_jit


    @pl.jit.inline
    def scale(x: pl.Tensor[[8], pl.FP32], by: pl.Scalar[pl.FP32], y: pl.Tensor[[8], pl.FP32]): ...


    @pl.jit
    def double(x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]]):
        return scale(x, 2.0, y)


    run_jit(
        fn=double,
        specs=[
            TensorSpec("x", [8], torch.float32, init_value=torch.randn),
            TensorSpec("y", [8], torch.float32, is_output=True),
        ],
    )
    ```
    """
    for call in entry.wrong_calls:
        yield Diagnostic(
            f"`{call.name}` takes {count(call.taken, 'argument')}, and this call passes {call.passed}: it does not compile",
            call.place,
            (Related(call.target, "the function"),),
            ops=(entry.name,),
        )


@rule("PTO128", "golden-name")
def golden_name(entry: SpecEntry) -> Iterator[Diagnostic]:
    """A golden function that reads a value by a name that no spec has.

    The harness passes the golden function a dict with one value for each spec, by the names of the specs. So after a spec was
    renamed or dropped, the golden function raises `KeyError`, after the kernel was compiled.

    Only what a golden function of one parameter reads whenever it runs is reported, where all specs of the call are known. It
    may write any name itself. Calls with `compile_only=True`, or with `golden_data` that is not an option of the command line, and
    files that handle or expect errors, are left alone.

    Bad:

    ```python examples/double.py
    import pypto.language as pl
    import torch
    from golden import TensorSpec, run_jit


    @pl.jit
    def double(x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]]): ...


    def golden_double(tensors):
        tensors["out"][:] = tensors["x"] * 2


    run_jit(
        fn=double,
        specs=[
            TensorSpec("x", [8], torch.float32, init_value=torch.randn),
            TensorSpec("y", [8], torch.float32, is_output=True),
        ],
        golden_fn=golden_double,
    )
    ```

    Good:

    ```python examples/double.py
    import pypto.language as pl
    import torch
    from golden import TensorSpec, run_jit


    @pl.jit
    def double(x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]]): ...


    def golden_double(tensors):
        tensors["twice"] = tensors["x"] * 2
        tensors["y"][:] = tensors["twice"]


    run_jit(
        fn=double,
        specs=[
            TensorSpec("x", [8], torch.float32, init_value=torch.randn),
            TensorSpec("y", [8], torch.float32, is_output=True),
        ],
        golden_fn=golden_double,
    )
    ```
    """
    for item in entry.unknown_keys:
        hint = did_you_mean(near_name(item.key, item.names, 0.6)) or f"; they are {listed(item.names)}"
        yield Diagnostic(
            f"the golden function reads `{item.key}`, and no spec of `{entry.name}` has that name{hint}",
            item.place,
            (Related(item.call, "the specs are passed here"),),
            ops=(entry.name,),
        )


@rule("PTO137", "compared-name", severity="warning")
def compared_name(entry: SpecEntry) -> Iterator[Diagnostic]:
    """A key of `compare_fn` that is not the name of an output.

    The harness calls the functions of `compare_fn` for the outputs of their names, and ignores others. So after an output was
    renamed it is compared with the tolerances of the run, and after a spec lost its `is_output=True` it is not compared at all.

    Only a dict that is written in the call is checked, where all specs of the call are known.

    Bad, the spec is no output:

    ```python examples/double.py
    import pypto.language as pl
    import torch
    from golden import TensorSpec, ratio_allclose, run_jit


    @pl.jit
    def double(x: pl.Tensor[[8], pl.FP32], y: pl.InOut[pl.Tensor[[8], pl.FP32]]): ...


    run_jit(
        fn=double,
        specs=[
            TensorSpec("x", [8], torch.float32, init_value=torch.randn, is_output=True),
            TensorSpec("y", [8], torch.float32),
        ],
        compare_fn={"y": ratio_allclose(atol=1e-4)},
    )
    ```

    Good:

    ```python examples/double.py
    import pypto.language as pl
    import torch
    from golden import TensorSpec, ratio_allclose, run_jit


    @pl.jit
    def double(x: pl.Tensor[[8], pl.FP32], y: pl.InOut[pl.Tensor[[8], pl.FP32]]): ...


    run_jit(
        fn=double,
        specs=[
            TensorSpec("x", [8], torch.float32, init_value=torch.randn),
            TensorSpec("y", [8], torch.float32, is_output=True),
        ],
        compare_fn={"y": ratio_allclose(atol=1e-4)},
    )
    ```
    """
    for item in entry.unused_comparisons:
        if item.spec is not None:
            related: tuple[Related, ...] = (Related(item.spec, "its spec"),)
            message = f"`{item.key}` is not an output of `{entry.name}`, so nothing compares it: `is_output` is not set"
        else:
            hint = did_you_mean(near_name(item.key, item.outputs, 0.6))
            related, message = (
                (),
                f"`{entry.name}` has no output `{item.key}`, so that this function is not called{hint}",
            )
        yield Diagnostic(message, item.place, related, ops=(entry.name,))
