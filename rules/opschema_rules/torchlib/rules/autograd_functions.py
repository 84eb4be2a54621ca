"""Subclasses of `torch.autograd.Function`: gradients, and values saved for `backward`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.file_kinds import is_python
from opschema_cli.lint.diagnostic import CPP, Diagnostic, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import LEAVING, Expr, Scope, Statement, written_in
from opschema_cli.word_search import WordSearch
from opschema_rules.torchlib.gradients import (
    CONTEXT,
    context_of,
    misfit_unpacks,
    saved,
    spread,
    unset_reads,
    written_on,
)
from opschema_rules.torchlib.model import AutogradFunction, Tree
from opschema_rules.torchlib.rules.autograd import times


@rule("REG309", "function-gradients", needs=(CPP,))
def function_gradients(function: AutogradFunction) -> Iterator[Diagnostic]:
    """A `torch.autograd.Function` whose `backward` returns or takes another number of gradients than `forward` has values.

    `backward` returns one value for each argument that `apply` passes, `None` for those without a gradient. If it returns fewer
    than `forward` requires, or than a call of `apply` in the same file passes, autograd raises "returned an incorrect number of
    gradients". This is a warning, since `torch.compile` accepts it if the others are no tensors. `None`s behind the last argument
    are accepted. `backward` takes a gradient for each value that `forward` returns in a tuple.

    Only `return` statements whose number of values is evident are checked: a tuple, or one of the gradients that `backward` is
    given. Classes are read in all files except tests, if `torch.autograd.Function` is their only base; functions with decorators
    that may change what is passed or returned are not compared, nor is what a `backward` takes that raises or returns only
    `None`. A class that is applied in the `forward` or `backward` of another one is not checked: autograd does not record such
    calls.

    Bad:

    ```python
    @torch.library.custom_op("kit::scale_fwd", mutates_args=())
    def scale_fwd(x: Tensor, factor: float) -> Tensor:
        return x * factor


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, clamp):
            ctx.factor = factor
            return scale_fwd(x, factor)

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::scale_fwd", mutates_args=())
    def scale_fwd(x: Tensor, factor: float) -> Tensor:
        return x * factor


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, clamp=False):
            ctx.factor = factor
            return scale_fwd(x, factor)

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None
    ```
    """
    if function.name in _unrecorded(function.tree):
        return
    yield from _taken(function)
    params = function.forward.params[0 if function.setup is not None else 1 :]
    if any(item.kind not in ("posonly", "normal") for item in params):
        return
    wanted, said, related = _wanted(function, sum(item.default is None for item in params), len(params))
    for value in function.backward.scope.returns:
        count = _count(function.backward, value)
        if count is not None and count < wanted and not _is_left(function.backward, value):
            yield Diagnostic(
                f"`backward` of `{function.name}` returns {times(count, 'gradient')}, and {said}: autograd raises in eager mode",
                function.backward.at(value),
                related=related,
                severity=Severity.WARNING,
            )


def _wanted(function: AutogradFunction, required: int, most: int) -> tuple[int, str, tuple[Related, ...]]:
    """Return the least number of gradients, the reason for it, and its places: the arguments that ``forward`` requires, or those of
    a call that passes more of ``most``.
    """
    related = _related(function.forward, "`forward`")
    call = _applied(function.tree).get(_key(function)) if required < most else None
    passed = len(call.items) - 1 if call is not None else 0
    if call is None or passed <= required:
        return required, f"`forward` requires {times(required, 'argument')}", related
    called = Related(function.forward.at(call), "called here")
    return passed, f"`apply` is called with {times(passed, 'argument')}", (called, *related)


@cached_on_argument
def _unrecorded(tree: Tree) -> frozenset[str]:
    """The names of subclasses that a ``forward`` or ``backward`` applies, where autograd does not record the call."""
    bodies = (body for item in tree.functions for body in (item.forward, item.backward))
    calls = (call.callee for body in bodies for scope in body.scope.walk() for call in scope.calls)
    return frozenset(name.split(".")[-2] for name in calls if name.endswith(".apply"))


def _is_left(body: Body, value: Expr) -> bool:
    """Whether a function always leaves before it returns a value, as by `assert False`."""
    return any(item.kind in LEAVING or _is_false_assert(item) for item in body.statements if item.end <= value.start)


def _is_false_assert(item: Statement) -> bool:
    return item.kind == "assert" and item.exprs[0].kind == "const" and not item.exprs[0].value


def _key(function: AutogradFunction) -> tuple[str, str]:
    return function.forward.file.path, f"{function.name}.apply"


@cached_on_argument
def _applied(tree: Tree) -> Mapping[tuple[str, str], Expr]:
    """The call of each ``Function.apply`` that visibly passes the most arguments, if the class and the call are in one file."""
    files = {item.forward.file.path: item.forward.file for item in tree.functions}
    names = Counter(map(_key, tree.functions))
    found: dict[tuple[str, str], Expr] = {}
    for path, file in files.items():
        calls = (call for body in tree.bodies.of(file) for scope in body.scope.walk() for call in scope.calls)
        for call in calls:
            key = path, call.callee
            plain = names[key] == 1 and not any(call.keywords)
            if plain and (key not in found or len(call.items) > len(found[key].items)):
                found[key] = call
    return found


def _taken(function: AutogradFunction) -> Iterator[Diagnostic]:
    """A ``backward`` that takes another number of gradients than ``forward`` returns values, where these are evident."""
    values = function.forward.scope.returns
    counts = {len(value.elements) if value.kind == "tuple" and value.elements is not None else None for value in values}
    count = counts.pop() if len(counts) == 1 else None
    params = function.backward.params[1:]
    backward = function.backward.function
    if count is None or backward is None or any(item.kind == "vararg" for item in params):
        return
    if _is_stub(function.backward) or _has_no_gradient(function):
        return
    plain = [item for item in params if item.kind in ("posonly", "normal")]
    if not sum(item.default is None for item in plain) <= count <= len(plain):
        yield Diagnostic(
            f"`backward` of `{function.name}` takes {times(len(plain), 'gradient')}, and `forward` returns"
            f" {times(count, 'value')}: it is called with a gradient for each",
            function.backward.at(backward.span),
            related=_related(function.forward, "`forward`"),
        )


def _is_stub(backward: Body) -> bool:
    """Whether a ``backward`` only raises, or returns no gradient."""
    raises = any(item.kind == "raise" for item in backward.statements)
    values = backward.scope.returns
    return raises or all(_is_none(item) for value in values for item in (value.elements or (value,)))


def _is_none(value: Expr) -> bool:
    return value.kind == "const" and value.value is None


def _has_no_gradient(function: AutogradFunction) -> bool:
    """Whether ``forward`` may mark all that it returns as not differentiable."""
    calls = [call for body in (function.forward, function.setup) if body is not None for call in body.scope.calls]
    marks = [call for call in calls if call.callee.endswith(".mark_non_differentiable")]
    returned = [len(value.elements or ()) for value in function.forward.scope.returns]
    return any("*" in call.keywords or len(call.items) > min(returned) for call in marks)


def _count(backward: Body, value: Expr) -> int | None:
    """Return the number of gradients that a value is known to hold."""
    elements = spread(value)
    if elements is not None:
        return len(elements)
    given = {item.name for item in backward.params[1:] if item.kind in ("posonly", "normal")}
    written = any(item.target == value.text for scope in backward.scope.walk() for item in scope.assigns)
    return 1 if value.kind == "name" and value.text in given and not written else None


@rule("REG310", "function-saved", needs=(CPP,))
def function_saved(function: AutogradFunction) -> Iterator[Diagnostic]:
    """The `backward` of a `torch.autograd.Function` that reads from the context what `forward` does not store there.

    `backward` unpacks another number of `ctx.saved_tensors` than `forward` or `setup_context` saves, or reads an attribute that
    is never set. Nothing is reported if the context is passed to other code, or if the errors are caught. See
    [REG309](REG309.md) for the classes that are read.

    Bad:

    ```python
    @torch.library.custom_op("kit::mul", mutates_args=())
    def mul(x: Tensor, y: Tensor) -> Tensor:
        return x * y


    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            return mul(x, y)

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad * y, grad * x
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::mul", mutates_args=())
    def mul(x: Tensor, y: Tensor) -> Tensor:
        return x * y


    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            ctx.shape = x.shape
            return mul(x, y)

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return (grad * y).view(ctx.shape), grad * x
    ```
    """
    saver = function.setup or function.forward
    here, there = context_of(saver), context_of(function.backward)
    left = written_on(saver, here) if here else None
    own = written_on(function.backward, there) if there else None
    if left is None or own is None:
        return
    named = "`setup_context`" if function.setup is not None else "`forward`"
    left |= own | CONTEXT | _set_elsewhere(function)
    for use in unset_reads(function.tree.bodies, function.backward, there, left):
        if _is_inherited(function):
            return  # by a class whose `forward` may store more
        yield Diagnostic(
            f"`backward` of `{function.name}` reads `{use.name}`, which {named} does not set",
            function.backward.at(use.span),
            related=_related(saver, named),
        )
    call = saved(saver, here)
    if call is None:
        return
    count = len(call.items) - 1
    for unpack in misfit_unpacks(function.tree.bodies, function.backward, there, count):
        if _is_inherited(function):
            return
        yield Diagnostic(
            f"`backward` of `{function.name}` unpacks {times(len(unpack.targets), 'saved tensor')}; {named} saves {count}",
            function.backward.at(unpack.span),
            related=(Related(saver.at(call), "saved here"),),
        )


def _is_inherited(function: AutogradFunction) -> bool:
    """Whether a class in another file may inherit from this one."""
    return any(path != function.forward.file.path for path in _inheriting(function.tree).get(function.name, ()))


@cached_on_argument
def _inheriting(tree: Tree) -> Mapping[str, set[str]]:
    """The files with classes that have a base of the name of each subclass of ``Function``."""
    project = tree.project
    words = frozenset(item.name for item in tree.functions)
    search = WordSearch(project, "subclasses of autograd functions", words)
    found: dict[str, set[str]] = {}
    for path, names in search.files(path for path in project.workspace.files if is_python(path)).items():
        for bases in _BASES.findall(project.workspace.peek(path)):
            for name in names.intersection(re.findall(r"\w+", bases.decode(errors="replace"))):
                found.setdefault(name, set()).add(path)
    return found


_BASES = re.compile(rb"^[ \t]*class\s+\w+\s*\(([^)]*)\)", re.MULTILINE)


def _set_elsewhere(function: AutogradFunction) -> frozenset[str]:
    """Return the attributes that the file sets, except those of other ``Function`` subclasses: on ``out.grad_fn``, in classes
    that inherit from this one, in ``jvp``.
    """
    file = function.forward.file
    own = [target for cls in file.body.classes if cls.name == function.name for target in written_in(cls.body)]
    return _set_outside(function.tree)[file.path] | _attributes(own)


@cached_on_argument
def _set_outside(tree: Tree) -> Mapping[str, frozenset[str]]:
    """The attributes that are set outside the subclasses of ``Function``, by the paths of their files."""
    names: dict[str, set[str]] = {}
    files: dict[str, Scope] = {}
    for item in tree.functions:
        names.setdefault(item.forward.file.path, set()).add(item.name)
        files[item.forward.file.path] = item.forward.file.body
    found: dict[str, frozenset[str]] = {}
    for path, body in files.items():
        targets = [item.target for item in body.assigns] + [name for item in body.functions for name in item.written]
        targets += [name for cls in body.classes if cls.name not in names[path] for name in written_in(cls.body)]
        found[path] = _attributes(targets)
    return found


def _attributes(targets: Iterable[str]) -> frozenset[str]:
    return frozenset(target.rpartition(".")[2] for target in targets)


def _related(body: Body, named: str) -> tuple[Related, ...]:
    return (Related(body.at(body.function.span), named),) if body.function is not None else ()
