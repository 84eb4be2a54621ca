"""Calls of operators in Python."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count
from opschema_rules.paddle.python_calls import PythonCall


@rule("PDL501", "python-argument-count", severity="warning")
def python_argument_count(call: PythonCall) -> Iterator[Diagnostic]:
    """A call of `_C_ops` with a wrong number of arguments.

    The generated functions take all inputs and attributes by position and do not check how many are passed. Extra arguments are
    ignored. If arguments are missing, the function reads past the end of the argument list: the defaults in the YAML apply only to
    C++. If several entries define the operator, the number of any of them is accepted.

    Bad:

    ```yaml
    - op : half
      args : (Tensor x, int axis = -1)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
    ```

    ```python math.py
    from paddle import _C_ops


    def half(x, axis=-1, keepdim=False):
        return _C_ops.half(x, axis, keepdim)
    ```

    Good (a function that is written by hand, and arguments that are unpacked):

    ```yaml
    - op : half
      args : (Tensor x, int axis = -1)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
      inplace : (x -> out)
    ```

    ```python math.py
    from paddle import _C_ops


    def half_(x, axis=-1, *rest):
        \"\"\"Call `_C_ops.half(x)`.\"\"\"
        _C_ops.sync_calc_stream(x, axis, 0)
        return _C_ops.half_(x, max(axis, 0)) if not rest else _C_ops.half(*rest)
    ```
    """
    numbers = {len(entry.signature.args) for entry in call.entries}
    if call.call.count in numbers:
        return
    entry = call.entries[0]
    takes = " or ".join(map(str, sorted(numbers)))
    effect = (
        "the extra ones are ignored"
        if call.call.count > max(numbers)
        else "arguments with defaults must be passed, too"
    )
    given = count(call.call.count, "argument")
    message = f"`_C_ops.{call.call.name}()` is called with {given}, but `{entry.name}` takes {takes}; {effect}"
    yield Diagnostic(message, call.place, (entry.declared(),), ops=(entry.name,))
