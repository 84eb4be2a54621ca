"""Calls of the tree's own helpers, and names, in code that is traced."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.bodies import Body
from opschema_cli.source.call_misfits import Misfit, misfits
from opschema_cli.source.python import Expr, Function, Param, PythonFile, Scope
from opschema_cli.source.text import SpanSet
from opschema_cli.suggestions import near_names
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.dead_code import may_pass
from opschema_rules.flydsl.detection import ROOT
from opschema_rules.flydsl.model import FlyTree
from opschema_rules.flydsl.rebinding import is_bound_around
from opschema_rules.flydsl.traced_code import calls_by_name, traced_code
from opschema_rules.flydsl.unbound_names import sets_namespace
from opschema_rules.flydsl.usage import is_meant_to_fail, is_unsure, may_be_absent

_PASSING = frozenset({"dsl_loc_tracing", "lru_cache", "cache", "contextmanager", "staticmethod"})
"""Decorators that pass all arguments on."""

_SPECIAL = re.compile(r"\b([A-Za-z_]\w*)\.__")

_PASSING_MODULES = ("functools.", "contextlib.")
"""The modules of Python's decorators."""

_OTHERS = frozenset({ROOT, "torch", "math", "functools", "itertools", "typing", "os", "pytest", "numpy"})
"""Packages that are not the tree's own."""

_Helper: TypeAlias = "tuple[str, tuple[Param, ...]] | None"
"""The name and the parameters of a function; None if there is no function."""


@rule("FLY240", "helper-arguments", pure=True)
def helper_arguments(file: FlyFile) -> Iterator[Diagnostic]:
    """A call of a helper, in code that is traced, that does not match its signature.

    Kernels call plain functions of the tree: for loads and stores, reductions, layouts. A missing or additional argument, or a
    keyword that the function does not have, raises `TypeError`, but only when a kernel is traced that gets there: for one dtype,
    one shape or one GPU perhaps. The rule checks the calls in traced functions, in functions inside them, and in the helpers
    that these call in the same file.

    Functions with decorators that may change their parameters are not checked, and no methods.

    Bad:

    ```python
    def store(tensor, index, value, *, cached=True):
        tensor[index] = value


    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        store(A, 0, n, cache=False)
        store(A, n)
    ```

    Good:

    ```python
    def store(tensor, index, value, *, cached=True):
        tensor[index] = value


    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32, pairs: fx.Constexpr[tuple] = ()):
        store(A, 0, n, cached=False)
        store(A, *pairs)

        def store_all(store):
            store(A)

        store_all(print)
    ```
    """
    tree = file.tree
    for bodies in traced_code(tree).values():
        known: dict[str, _Helper] = {}
        for body in bodies:
            for name, calls in calls_by_name(body).items():
                found = _signature(tree, body, name, known)
                for call in calls if found is not None else ():
                    yield from _of_call(tree, body, call, found)


def _signature(tree: FlyTree, body: Body, name: str, known: dict[str, _Helper]) -> _Helper:
    """Return the helper that a name refers to in a body; ``known`` holds those of module names."""
    first, dot, _ = name.partition(".")
    if first in body.visible:
        binder = body.binder(first)
        return _defined(binder.scope, name) if binder is not None and not dot else None
    if name not in known:
        known[name] = _of_module(tree, body, name)
    return known[name]


def _defined(scope: Scope, name: str) -> _Helper:
    """Return the function that a scope defines under a name, if it binds the name only once."""
    bound = scope.named.get(name, ())
    one = bound[0] if len(bound) == 1 else None
    return (name, one.params) if isinstance(one, Function) else None


def _of_module(tree: FlyTree, body: Body, name: str) -> _Helper:
    """Return the helper that a module's name refers to: a function of this module, or of another module of the tree."""
    first, dot, _ = name.partition(".")
    own = body.file.body
    imported = [item for item in own.imports if item.name == first]
    if not imported:
        return _defined(own, name) if not dot and name not in body.file.rebound else None
    if any(item.module.partition(".")[0] in _OTHERS for item in imported) or tree.names.full(body, name):
        return None
    found = tree.names.parameters(body, name)
    return found if found is not None and tree.names.meaning(body, name).kind == "function" else None


def _of_call(tree: FlyTree, body: Body, call: Expr, found: _Helper) -> Iterator[Diagnostic]:
    wrong = [item for item in misfits(call, found[1]) if item.fault != "twice"] if found is not None else []
    if found is None or not wrong or not _is_plain(tree, body, call.callee) or is_unsure(tree, body, call):
        return
    missing = [item.name for item in wrong if item.fault == "missing"]
    if missing:
        yield _misfit(body, found[0], f"nothing is passed for {quoted(missing)}", call.items[0])
    for item in wrong:
        if item.argument is not None and item.fault != "missing":
            yield _misfit(body, found[0], _fault(item, found[1]), item.argument)


def _is_plain(tree: FlyTree, body: Body, name: str) -> bool:
    """Whether a function accepts the parameters of its definition: it is not a method, and no decorator changes them."""
    target = tree.bodies.called(body, name)
    if target is None or target.function is None or (target.parent is not None and target.parent.cls is not None):
        return False
    wrapping = tree.names.wrapping(body, name)
    if (wrapping is not None and not wrapping <= _PASSING) or tree.traced_of(target) is not None:
        return False
    name = target.function.name
    if any(_sets_namespace(file) or name in _special_attributes(file) for file in (target.file, body.file)):
        return False
    return all(_is_passing(tree, target, item) for item in target.function.decorators)


@cached_on_argument
def _sets_namespace(file: PythonFile) -> bool:
    return sets_namespace(file.source.text)


@cached_on_argument
def _special_attributes(file: PythonFile) -> frozenset[str]:
    """The names whose special attributes, such as a function's `__defaults__`, a file mentions."""
    return frozenset(_SPECIAL.findall(file.source.text))


def _is_passing(tree: FlyTree, target: Body, decorator: Expr) -> bool:
    """Whether a function's decorator is one of Python's or FlyDSL's that pass all arguments on."""
    name = (decorator.items[0] if decorator.kind == "call" else decorator).text
    word, around = name.rpartition(".")[2], target.parent or target
    if word not in _PASSING:
        return False
    if name == word == "staticmethod":
        return not tree.bodies.module(target.file).binds(name)
    known = {f"{module}{word}" for module in _PASSING_MODULES}
    return tree.names.external(around, name) in known or bool(tree.names.full(around, name))


def _misfit(body: Body, name: str, what: str, at: Expr) -> Diagnostic:
    return Diagnostic(
        f"this call of `{name}` does not match its signature: {what}; tracing raises `TypeError`",
        body.at(at),
        ops=(name,),
    )


def _fault(item: Misfit, params: tuple[Param, ...]) -> str:
    if item.fault == "surplus":
        return (
            f"at most {sum(param.kind in ('posonly', 'normal') for param in params)} positional arguments are accepted"
        )
    if item.fault == "position-only":
        return f"`{item.name}` is positional-only"
    near = near_names(item.name, [param.name for param in params], 1)
    return f"it has no parameter `{item.name}`" + (f", but `{near[0]}`" if near else "")


@rule("FLY241", "undefined-name", pure=True)
def undefined_name(file: FlyFile) -> Iterator[Diagnostic]:
    """A name, in code that is traced, that nothing defines.

    A traced function runs when it is launched for the first time, so a module that is not imported, or a variable that was renamed,
    raises `NameError` only there, and in code for one dtype or GPU perhaps only years later. `torch` is often imported inside
    the functions of the host, which does not define it for kernels.

    So does a name that is imported only under `if TYPE_CHECKING:`. Files that import `*`, and those that bind names by `exec()` or
    `globals()`, are not checked.

    Bad:

    ```python
    def run(x):
        import math

        return math.prod(x.shape)


    @flyc.kernel
    def scale(A: fx.Tensor, n: fx.Constexpr[int]):
        A[0] = math.log2(n)
    ```

    Good:

    ```python
    import math


    @flyc.kernel
    def scale(A: fx.Tensor, n: fx.Constexpr[int]):
        A[0] = math.log2(n)
        A[1] = late(n)
        A[2] = sum(part for part in (1, 2))


    def late(n):
        return n
    ```
    """
    tree = file.tree
    for path, bodies in (
        traced_code(tree).items() if any(tree.words.indexes[each.path].unbound for each in tree.files) else ()
    ):
        unbound = frozenset(tree.words.indexes[path].unbound)
        for body in bodies if unbound else ():
            first = {use.name.partition(".")[0]: use for use in reversed(body.scope.uses)}
            for name in sorted(name for name in unbound.intersection(first) if name not in body.visible):
                at = first[name].start
                if not _may_be_bound(tree, body, name, at):
                    message = f"nothing defines `{name}` here: it raises `NameError` when this is traced"
                    yield Diagnostic(message, body.at(Expr("name", at, at + len(name), name)))


@cached_on_argument
def _annotations(body: Body) -> SpanSet:
    """The annotations in a function and its nested functions, which need not be evaluated."""
    found = [item.annotation for item in body.scope.assigns]
    for function in body.scope.functions:
        found += [*(param.annotation for param in function.params), function.returns]
    return SpanSet(item.span for item in found if item is not None)


_GIVEN = frozenset({"const_expr", "range_constexpr"})
"""Names that FlyDSL knows in the functions that it traces, and in their modules, even if nothing imports them."""


def _may_be_bound(tree: FlyTree, body: Body, name: str, at: int) -> bool:
    """Whether a name may be bound in another way, or its use is never reached."""
    if name in _GIVEN:
        return True
    inner = [item for item in body.outward() if item.definition is not None]
    around = any(name in item.bound or any(cls.name == name for cls in item.scope.classes) for item in inner)
    if around or is_bound_around(body, name, at) or tree.words.is_replaced(name) or at in _annotations(body):
        return True
    return may_pass(tree, body, at) or may_be_absent(tree, body, at) or is_meant_to_fail(tree, body)
