"""Calls of FlyDSL's own functions against their signatures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TypeAlias

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.bodies import Body
from opschema_cli.source.call_misfits import misfits
from opschema_cli.source.python import Expr, Param, PythonFile
from opschema_cli.source.word_index import called_word
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.flydsl.api_guards import names_version
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.detection import ROOT
from opschema_rules.flydsl.model import FlyTree
from opschema_rules.flydsl.rebinding import may_be_another
from opschema_rules.flydsl.usage import is_unsure
from opschema_rules.flydsl.value_classes import bodies_with_values, value_classes
from opschema_rules.flydsl.value_table import counts, methods

_Signature: TypeAlias = "tuple[str, tuple[Param, ...]]"

_TRANSPARENT = frozenset(
    {"dsl_loc_tracing", "dsl_wrap_result", "dsl_math_wrap_result", "coerce_int_tuple_args", "contextmanager"}
)
"""Decorators that pass all arguments on."""

_REPORTED_ONCE = frozenset({"missing", "surplus"})


@rule("FLY228", "api-arguments", pure=True)
def api_arguments(file: FlyFile) -> Iterator[Diagnostic]:
    """A call of a function of FlyDSL with an argument that it does not take.

    The call raises `TypeError`. For functions the rule needs FlyDSL's sources in the workspace. It checks keywords and the number
    of arguments of functions without decorators, or with decorators of FlyDSL that pass on all arguments. Of methods it checks
    those that are called on their class, as `fx.Vector.filled()`, those that mark a tensor where it is wrapped, and, also without
    FlyDSL's sources, those of values whose type is sure: `tiled_copy.get_slice()` needs an index.

    Bad:

    ```python python/flydsl/__init__.py
    ```

    ```python python/flydsl/compiler/jit_argument.py
    class TensorAdaptor:
        def __init__(self, tensor): ...
    ```

    ```toml
    ```

    ```python python/flydsl/expr/__init__.py
    def copy_rows(source, target, *, rows=1):
        return source, target, rows
    ```

    ```python
    @flyc.kernel
    def copy(A: fx.Tensor, B: fx.Tensor):
        fx.copy_rows(A, B, row=4)
    ```

    Bad:

    ```python python/flydsl/__init__.py
    ```

    ```python python/flydsl/compiler/jit_argument.py
    class TensorAdaptor:
        def __init__(self, tensor): ...
    ```

    ```toml
    ```

    ```python python/flydsl/expr/__init__.py
    def copy_rows(source, target, *, rows=1):
        return source, target, rows
    ```

    ```python
    @flyc.kernel
    def copy(A: fx.Tensor, B: fx.Tensor):
        fx.copy_rows(A, rows=4)
    ```

    Bad:

    ```python
    @flyc.kernel
    def total(A: fx.Tensor):
        parts = fx.Vector.filled(4, 0.0, fx.Float32)
        A[0] = parts.reduce()
        A[1] = parts.reduce(fx.ReductionOp.ADD, fast_math=True)
    ```

    Good:

    ```python
    @flyc.kernel
    def total(A: fx.Tensor):
        parts = fx.Vector.filled(4, 0.0, fx.Float32)
        A[0] = parts.reduce(fx.ReductionOp.ADD)
        parts = [1, 2]
        parts.reverse()
    ```

    Good:

    ```python python/flydsl/__init__.py
    ```

    ```python python/flydsl/compiler/jit_argument.py
    class TensorAdaptor:
        def __init__(self, tensor): ...
    ```

    ```toml
    ```

    ```python python/flydsl/expr/__init__.py
    def copy_rows(source, target, *, rows=1, **options):
        return source, target, rows


    def fill(target, value):
        return target, value
    ```

    ```python
    @flyc.kernel
    def copy(A: fx.Tensor, B: fx.Tensor, *pairs):
        fx.copy_rows(A, B, row=4)
        fx.fill(*pairs)
    ```
    """
    tree = file.tree
    for each in tree.files:
        if tree.bodies.program.module_name(each.path).partition(".")[0] == ROOT:
            continue
        known: dict[str, _Signature | None] = {}
        uses = {*tree.words.indexes[each.path].uses, *_imported(tree, each)}
        names = {item.partition(".")[0] for item in uses}
        for body in tree.bodies.calling(each, {item.rpartition(".")[2] for item in uses}):
            for call in body.scope.calls:
                first = call.callee.partition(".")[0]
                if first not in names:
                    continue
                if first in body.visible:
                    signature = _signature(tree, body, call.callee)
                elif call.callee in known:
                    signature = known[call.callee]
                else:
                    signature = known[call.callee] = _signature(tree, body, call.callee)
                if signature is not None:
                    yield from _misfitting(tree, body, call, *signature)
    yield from _marks(tree)
    for body in bodies_with_values(tree):
        yield from _methods(tree, body)


def _imported(tree: FlyTree, each: PythonFile) -> Iterator[str]:
    """Yield the names of functions and classes that a file imports from FlyDSL and calls."""
    calls = tree.bodies.words(each).calls
    for item in each.body.imports if tree.contract.own else ():
        if item.attr and item.name in calls and item.module.partition(".")[0] == ROOT:
            yield item.name


def _methods(tree: FlyTree, body: Body) -> Iterator[Diagnostic]:
    """Yield findings on method calls on values of known types."""
    for call in body.scope.calls:
        word = called_word(call.items[0])
        taken = counts(word)
        if not taken or (len(call.keywords) in taken and not any(call.keywords)):
            continue
        owner, signatures = call.items[0].owner, methods(word)
        if owner is None or not all(map(partial(_misfits, call), signatures.values())):
            continue
        params = signatures.get(value_classes(tree).of(body, owner))
        if params is None or (tree.contract.own and not tree.answers.refuses(word, call)):
            continue
        yield from _misfitting(tree, body, call, word, params)


def _misfits(call: Expr, params: tuple[Param, ...]) -> bool:
    return any(item.fault != "twice" for item in misfits(call, params))


def _marks(tree: FlyTree) -> Iterator[Diagnostic]:
    """Yield findings on the marks that are chained to the wrapping of a tensor."""
    for wrap in tree.wraps if tree.contract.own else ():
        mark = wrap.marks[0] if wrap.marks else None
        word = mark.items[0].member if mark is not None else ""
        found = tree.answers.mark(wrap.api, word) if mark is not None else None
        if mark is not None and found is not None and not may_be_another(tree, wrap.body, wrap.expr.items[0]):
            yield from _misfitting(tree, wrap.body, mark, word, found[1])


def _signature(tree: FlyTree, body: Body, callee: str) -> _Signature | None:
    """Return the name and the parameters of a FlyDSL function, unless a decorator may change its parameters."""
    full = tree.names.member(body, callee)
    found = tree.answers.signature(full) if full else None
    return (full.rpartition(".")[2], found[1]) if found is not None and found[0] <= _TRANSPARENT else None


def _misfitting(tree: FlyTree, body: Body, call: Expr, name: str, params: tuple[Param, ...]) -> Iterator[Diagnostic]:
    found = [item for item in misfits(call, params) if item.fault != "twice"]
    if not found or is_unsure(tree, body, call) or names_version(tree, body, call.start):
        return
    missing = [item.name for item in found if item.fault == "missing"]
    reported: set[str] = set()
    for item in found:
        if item.fault not in reported:
            reported |= {item.fault} & _REPORTED_ONCE
            yield Diagnostic(
                f"`{name}({', '.join(param.name for param in params)})` in this FlyDSL "
                f"{_fault(item.fault, item.name, params, missing)}",
                body.at(item.argument or call.items[0]),
                ops=(name,),
            )


def _fault(fault: str, name: str, params: tuple[Param, ...], missing: list[str]) -> str:
    if fault == "surplus":
        count = sum(item.kind in ("posonly", "normal") for item in params)
        return f"takes at most {count} positional argument{'s' * (count != 1)}"
    if fault == "missing":
        return f"needs {quoted(missing)}"
    if fault == "position-only":
        return f"takes `{name}` by position only"
    return f"has no parameter `{name}`{did_you_mean(near_name(name, [item.name for item in params]))}"
