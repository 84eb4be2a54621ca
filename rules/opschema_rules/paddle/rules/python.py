"""Calls of the generated functions in Python (``_C_ops.f(x, 1)``), which take their arguments by position."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count
from opschema_cli.readings import Reading
from opschema_cli.source.call_text import CallText, counted_calls
from opschema_cli.source.guarded_code import is_below
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
    C++. If several entries define the operator, the number of any of them is accepted. Calls whose errors are caught, or that a
    test expects to fail, are not reported.

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
    for path, call, entries in _calls(tree):
        numbers = {len(entry.signature.args) for entry in entries}
        source = tree.project.source(path) if call.count not in numbers else None
        if source is not None and not _may_fail(source.text, call.span.start):
            takes = " or ".join(map(str, sorted(numbers)))
            surplus = call.count > max(numbers)
            effect = "the extra ones are ignored" if surplus else "arguments with defaults must be passed, too"
            name = entries[0].name
            message = f"`_C_ops.{call.name}()` is called with {count(call.count, 'argument')}, but `{name}` takes {takes}; {effect}"
            yield Diagnostic(message, Place(path, call.span), (entries[0].declared(),), ops=(name,))


_ALLOWS_ERROR = re.compile(r"\s*(?:try\s*:|(?:async\s+)?with\b.*\b(?:raises|assertRaises\w*|suppress)\b)")
_ASSERTS_ERROR = re.compile(r"\b(?:assertRaises\w*|raises)\s*\(")


def _may_fail(text: str, start: int) -> bool:
    """Whether a call is tried, or a test expects it to fail."""
    line = text.rfind("\n", 0, start) + 1
    return _ASSERTS_ERROR.search(text, line, start) is not None or is_below(text, start, _ALLOWS_ERROR)


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
