'''Recipes: a Python file in the repository that adds to the declaration of an op what the declaration cannot express.

Its path is set with ``[tool.opschema.verify] recipe = "tests/opschema_recipes.py"``. Each op that needs a recipe has a class::

    import torch
    from opschema_cli.verify.recipes import Recipe, Tolerance, recipe


    @recipe("BatchCenterFwdOp")
    class BatchCenter(Recipe):
        """All methods may be left out; the harness then does as the declaration says."""

        tolerance = Tolerance(ulps=2, reason="the mean is rounded to the input's dtype before it is subtracted")

        def skip(self, cell):
            return "needs tensor cores" if cell.dtype == "float8_e4m3fn" else ""

        def inputs(self, cell, tensors):
            return {**tensors, "running_mean": tensors["running_mean"].abs()}

        def arguments(self, cell, arguments):
            return {**arguments, "channels": cell.call.inputs[0].shape[1]}

        def call(self, op, tensors, params):
            return op(tensors["x"], tensors["running_mean"])

        def reference(self, tensors, params):
            x, running_mean = tensors["x"], tensors["running_mean"]
            mean = x.mean(0)
            running_mean += params.get("momentum", 0.1) * (mean - running_mean)
            return x - mean

The file is executed in the harness's worker processes only: by none of the other commands, and never in the process that judges.
It is executed before the op is imported, so that what a process must have first (a variable of the environment, a patch) stands at
its top. It may import what lies on the op's own import path, but the reference should not use the op that it is to judge.
'''

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from opschema_cli.errors import OpschemaError
from opschema_cli.verify.model import Cell, Input, Tolerance

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Recipe", "Tolerance", "find_recipe", "has", "ops_with_recipes", "recipe", "tensor"]


UNREADABLE = "the recipes cannot be read"
"""The beginning of an error of the recipes' file."""


class Recipe:
    """A way to run one op, and its expected result; each method replaces a part of the declaration."""

    tolerance: Tolerance | None = None
    deterministic: bool = True
    """False for an op whose results may differ in their bits between calls (atomics); its spread is measured instead."""

    exact_gradient: bool = True
    """False for an op whose autograd formula is not its derivative, on purpose: a straight-through estimator, say."""

    calls: Mapping[str, Mapping[str, object]] = {}
    """Calls of an operator of torch.library, by their labels: the arguments by name, :func:`tensor` for tensors."""

    def skip(self, cell: Cell) -> str:
        """The reason why a cell is not to be run; empty if it is."""
        return ""

    def inputs(self, cell: Cell, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the inputs, given the drawn ones. Called with CPU tensors in every process; it must return the same result each
        time.
        """
        return tensors

    def arguments(self, cell: Cell, arguments: dict[str, object]) -> dict[str, object]:
        """Return the constructor's arguments by name: the params and, if the constructor has them, ``dtype`` and ``device``.

        Cells with equal arguments share one op.
        """
        return arguments

    def call(self, op: Callable[..., object], tensors: dict[str, Tensor], params: dict[str, object]) -> object:
        """Call the op, and return its output, or a tuple of outputs, or a dict by name. Do not copy the tensors."""
        raise NotImplementedError

    def reference(self, tensors: dict[str, Tensor], params: dict[str, object]) -> object:
        """Compute the same in another way, on float64 inputs (and once more on float32 ones) and in their precision, which is
        torch's default dtype during the call. An op without inputs creates its output with ``torch.get_default_dtype()``.

        An input that the op changes is to be changed here too.
        """
        raise NotImplementedError


def tensor(
    *shape: int, dtype: str = "float32", low: float | None = None, high: float | None = None, ascending: bool = False
) -> Input:
    """A tensor in ``calls``. Its elements are drawn, from ``low`` to ``high`` if given (``high`` is excluded for integers).
    Integers that are ``ascending`` begin with the lowest value and end with the highest one, like offsets of parts.
    """
    return Input(name="", shape=shape, dtype=dtype.removeprefix("torch."), low=low, high=high, ascending=ascending)


_Class = TypeVar("_Class", bound=type[Recipe])

_registry: dict[str, Recipe] = {}
_kept: set[Path] = set()
"""Files that are not executed again."""


def recipe(*ops: str) -> Callable[[_Class], _Class]:
    """File a subclass of :class:`Recipe` under the names of ops.

    Raises:
        OpschemaError: an op has two recipes.
    """

    def file(kind: _Class) -> _Class:
        for op in ops:
            if op in _registry:
                raise OpschemaError(f"{op} has two recipes: {type(_registry[op]).__name__} and {kind.__name__}")
            _registry[op] = kind()
        return kind

    return file


def find_recipe(path: Path, op: str) -> Recipe:
    """Execute a recipe file and return the recipe for ``op``, or the default one, which follows the declaration.

    Raises:
        OpschemaError: there is no such file, or its recipe is malformed.
        Exception: whatever the file raises.
    """
    if path not in _kept:
        _execute(path)
    found = _registry.get(op, Recipe())
    if found.tolerance is not None and not found.tolerance.reason:
        raise OpschemaError(f"{path}: the tolerance of {op} is changed without a reason")
    return found


def execute_once(path: Path) -> None:
    """Execute a file of recipes now, and never again in this process and its forks.

    Raises:
        OpschemaError: there is no such file.
        Exception: whatever the file raises.
    """
    _execute(path)
    _kept.add(path)


def _execute(path: Path) -> None:
    if not path.is_file():
        raise OpschemaError(f"{path}: there is no such file of recipes")
    _registry.clear()
    spec = importlib.util.spec_from_file_location("opschema_recipes", path)
    if spec is None or spec.loader is None:
        raise OpschemaError(f"{path}: this is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)


def ops_with_recipes(path: Path) -> dict[str, int]:
    """Return the ops that ``@recipe(...)`` names in a file, as far as they can be read without executing it, each with its line.

    Raises:
        OpschemaError: the file is not there, or is not a Python.
    """
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise OpschemaError(f"{UNREADABLE}: {path}: {error.strerror or error}") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        says = error.msg if isinstance(error, SyntaxError) else str(error) or type(error).__name__
        raise OpschemaError(f"{UNREADABLE}: {path}{line}: {says}") from None
    marks = (mark for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for mark in node.decorator_list)
    calls = (mark for mark in marks if isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith("recipe"))
    names = (name for call in calls for name in call.args if isinstance(name, ast.Constant))
    return {name.value: name.lineno for name in names if isinstance(name.value, str)}


def has(found: Recipe, method: str) -> bool:
    """Whether a recipe says something of its own."""
    return getattr(type(found), method) is not getattr(Recipe, method)
