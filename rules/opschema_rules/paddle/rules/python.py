"""Calls of the generated functions in Python (``_C_ops.f(x, 1)``), which take their arguments by position."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.evaluation.expected_errors import allows_any_error
from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count
from opschema_cli.readings import Reading
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.call_text import CallText, counted_calls
from opschema_cli.source.guarded_code import expects_error
from opschema_cli.source.program import Program
from opschema_rules.paddle.model import OpEntry, Tree

_CALL = re.compile(r"(?<![\w.])(?:paddle\s*\.\s*)?_C_ops\s*\.\s*(\w+)\s*\(")
_CALLS: Reading[str, list[CallText]] = Reading(
    "paddle calls of Python", lambda text: list(counted_calls(text, _CALL)), list[CallText]
)


@rule("PDL501", "python-argument-count", severity="warning")
def python_argument_count(tree: Tree) -> Iterator[Diagnostic]:
    """A call of `_C_ops` with a wrong number of arguments.

    The generated functions take all inputs and attributes by position and do not check how many are passed. Extra arguments are
    ignored. If arguments are missing, the function reads past the end of the argument list: the defaults in the YAML apply only to
    C++. If several entries define the operator, the number of any of them is accepted. Calls whose errors are caught, that a test
    expects to fail, or that depend on the release are not reported.

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
    bodies = Bodies(Program(tree.project.workspace.files, tree.project.python, ()), ())
    for path, call, entries in _calls(tree):
        numbers = {len(entry.signature.args) for entry in entries}
        if call.count not in numbers and not _may_fail(bodies, path, call.span.start):
            takes = " or ".join(map(str, sorted(numbers)))
            surplus = call.count > max(numbers)
            effect = "the extra ones are ignored" if surplus else "arguments with defaults must be passed, too"
            name = entries[0].name
            message = f"`_C_ops.{call.name}()` is called with {count(call.count, 'argument')}, but `{name}` takes {takes}; {effect}"
            yield Diagnostic(message, Place(path, call.span), (entries[0].declared(),), ops=(name,))


def _may_fail(bodies: Bodies, path: str, start: int) -> bool:
    """Whether a call is tried, a test expects it to fail, or other releases leave it out; true if the file does not parse."""
    file = bodies.program.load(path)
    if file is None or file.facts.error:
        return True
    body = bodies.at(file, start)
    return allows_any_error(bodies, body, start) or expects_error(file.source.text, start)


def _calls(tree: Tree) -> Iterator[tuple[str, CallText, list[OpEntry]]]:
    """The calls with the entries that they may mean, whose arguments are known; an in-place one takes the same as its operator."""
    peek = tree.project.workspace.peek
    paths = [path for path in tree.project.workspace.files if path.endswith(".py") and b"_C_ops" in peek(path)]
    for path, calls in tree.project.readings(_CALLS, paths).items():
        for call in calls:
            name = call.name.rstrip("_")
            found = tree.by_name.get(name, ()) or tree.by_name.get(name.removeprefix("sparse_"), ())
            entries = [entry for entry in found if not entry.is_legacy]
            if entries and all(entry.is_sound for entry in entries):
                yield path, call, entries
