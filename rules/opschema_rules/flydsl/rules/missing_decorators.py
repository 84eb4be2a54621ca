"""Kernels and launchers without their decorators."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.evaluation.statements import all_statements, is_variable
from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, PythonFile, Statement
from opschema_cli.source.text import Span, places_of
from opschema_cli.source.word_index import called_word
from opschema_rules.flydsl.annotations import parameter
from opschema_rules.flydsl.body_index import index_of
from opschema_rules.flydsl.candidates import words
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.dead_code import may_not_run
from opschema_rules.flydsl.model import FlyTree, Kind
from opschema_rules.flydsl.usage import is_unsure

_SIZES = ("grid", "block")
_YIELDS = ("yield", "await")
_LEAVING = re.compile(r"raise|exit|quit|abort|fail|skip|kill|exec|throw|unsupported|unreachable|not_", re.IGNORECASE)
"""Names of functions that may not return."""

_ENDLESS = frozenset({"count", "cycle", "repeat", "iter"})
"""Iterators that may be infinite."""

_DSL = frozenset({Kind.TENSOR, Kind.NUMBER, Kind.STREAM, Kind.POINTER, Kind.CONSTEXPR})


@rule("FLY227", "missing-decorator", pure=True)
def missing_decorator(file: FlyFile) -> Iterator[Diagnostic]:
    """A kernel without `@flyc.kernel`, or a launcher without `@flyc.jit`.

    Without `@flyc.kernel`, calling the function runs its body and returns `None`, which has no `launch`. That is reported of
    functions with parameters of FlyDSL's types, and not of methods. A kernel can only be
    called while a function with `@flyc.jit` is traced; any other call raises `RuntimeError`.

    A function without a decorator may launch kernels if functions with `@flyc.jit` call it. So a missing `@flyc.jit` is
    reported only if the function has parameters of FlyDSL's types, if host code calls it (directly, or as the result of a
    factory), and if it is never passed as a value.

    Bad (`fill` has no `@flyc.kernel`):

    ```python
    def fill(A: fx.Tensor):
        A[0] = 1


    @flyc.jit
    def launch(A: fx.Tensor):
        fill(A).launch(grid=(1,), block=(64,))
    ```

    Bad (`launch` has no `@flyc.jit`):

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor):
        A[0] = 1


    def launch(A: fx.Tensor):
        fill(A).launch(grid=(1,), block=(64,))


    def run(x):
        launch(x)
    ```

    Good:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor):
        A[0] = 1


    def start(A: fx.Tensor):
        fill(A).launch(grid=(1,), block=(64,))


    @flyc.jit
    def launch(A: fx.Tensor):
        start(A)
    ```
    """
    tree = file.tree
    for body in (body for each in tree.files for body in tree.bodies.calling(each, ["launch"])):
        for launch, call in _launched(body):
            target = tree.bodies.called(body, call.callee)
            found = list(_missing(tree, body, launch, call, target)) if target is not None else []
            if found and not is_unsure(tree, body, call) and not may_not_run(tree, body, launch.start):
                yield from found


def _missing(tree: FlyTree, body: Body, launch: Expr, call: Expr, target: Body) -> Iterator[Diagnostic]:
    """Yield a finding on a launched function, or the one around the launch, without its decorator."""
    if tree.traced_of(target) is None:
        yield from _no_kernel(tree, body, launch, call, target)
    elif _is_plain(tree, body) and (caller := _host_call(tree, body)) is not None:
        yield _no_launcher(body, call, target, caller)


def _launched(body: Body) -> Iterator[tuple[Expr, Expr]]:
    """Yield the calls of `.launch` on a call, or on a variable that is known to hold its result, each with that call."""
    launches = [call for call in body.scope.calls if any(call.keyword(word) is not None for word in _SIZES)]
    for launch in launches:
        callee = launch.items[0]
        if callee.kind == "attribute" and callee.text == "launch" and callee.items[0].callee:
            yield launch, callee.items[0]
    if any(launch.callee.endswith(".launch") for launch in launches):
        for block in (body.statements, *(inner for item in all_statements(body.statements) for inner in item.blocks)):
            yield from _launched_variables(body, block)


def _launched_variables(body: Body, block: Sequence[Statement]) -> Iterator[tuple[Expr, Expr]]:
    """Yield the launches of variables in the block that assigns them, if no statement in between names them."""
    held: dict[str, Expr] = {}
    for item in block:
        value = item.exprs[-1] if item.kind in ("expr", "assign") else None
        name, _, method = value.callee.rpartition(".") if value is not None else ("", "", "")
        if value is not None and item.kind == "expr" and method == "launch" and name in held:
            yield value, held[name]
            continue
        for word in held.keys() & words(body, item):
            del held[word]
        target = item.exprs[0] if value is not None and value.callee and len(item.exprs) == 2 else None
        if target is not None and value is not None and is_variable(target) and target.text not in body.file.rebound:
            held[target.text] = value


def _no_kernel(tree: FlyTree, body: Body, launch: Expr, call: Expr, target: Body) -> Iterator[Diagnostic]:
    """Yield a finding on a launch of the result of an undecorated function that certainly returns `None`."""
    function = target.function
    if function is None or function.decorators or function.stub or target.scope.returns or not _ends(tree, target):
        return
    if target.parent is None or target.parent.cls is not None or not _takes_values(tree, target):
        return
    yield Diagnostic(
        f"`{function.name}` is launched, but has no `@flyc.kernel`: its call returns `None`, which has no `launch`",
        body.at(Span(launch.items[0].end - len("launch"), launch.items[0].end)),
        (Related(target.at(function.span), "the function"),),
        ops=(function.name,),
    )


def _ends(tree: FlyTree, target: Body, hops: int = MAX_CALLS) -> bool:
    """Whether a function may return normally: it is no generator or coroutine, and does not always raise or loop forever."""
    function = target.function
    if function is None or hops <= 0 or target.file.text(function.outer).startswith("async"):
        return False
    if any(map(_never_passes, function.statements)) or any(
        word in target.file.text(function.outer) for word in _YIELDS
    ):
        return False
    return all(_returns(tree, target, call, hops) for call in target.scope.calls)


def _never_passes(item: Statement) -> bool:
    """Whether the code after a statement may never run. For an `if`, both branches have to leave."""
    constant = bool(item.exprs) and item.exprs[0].kind == "const"
    leaving = [any(map(_never_passes, block)) for block in item.blocks]
    if item.kind == "if" and not constant:
        return all(leaving)
    endless = item.kind == "while" or (item.kind == "for" and called_word(item.exprs[1]) in _ENDLESS)
    return item.kind == "raise" or endless or (item.kind == "assert" and constant) or any(leaving)


def _returns(tree: FlyTree, body: Body, call: Expr, hops: int) -> bool:
    """Whether the function of a call returns, as far as its name and the tree show."""
    if _LEAVING.search(called_word(call.items[0])) is not None:
        return False
    called = tree.bodies.called(body, call.callee)
    return called is None or called.function is None or bool(called.scope.returns) or _ends(tree, called, hops - 1)


def _is_plain(tree: FlyTree, body: Body) -> bool:
    """Whether a body is that of a plain function that takes FlyDSL's types and is never passed as a value."""
    function, around = body.function, body.parent
    if function is None or around is None or function.decorators or tree.around(body) is not None:
        return False
    return _takes_values(tree, body) and not _is_passed(body.file, function.name)


@lru_cache(maxsize=256)
def _is_passed(file: PythonFile, word: str) -> bool:
    """Whether a file names a function in a place where it may be passed on."""
    text = file.source.text
    name = rf"\s*{word}\s*?"
    within = rf"[(,=:{{[]{name}[],)}}]|\*{name}\b|=[ \t]*{word}[ \t]*$"
    passed = re.compile(rf"(?m){within}|\breturn\b[^\n]*,{name}$|\breturn[ \t]+{word}[ \t]*,")
    return any(passed.search(text, *_lines_around(text, at, at + len(word))) for at in places_of(word, text))


def _lines_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span of the lines of a place, including the code around it."""
    while start and text[start - 1].isspace():
        start -= 1
    while end < len(text) and text[end].isspace():
        end += 1
    last = text.find("\n", end)
    return text.rfind("\n", 0, start) + 1, last if last >= 0 else len(text)


def _takes_values(tree: FlyTree, body: Body) -> bool:
    """Whether a function has parameters of FlyDSL's types."""
    around = body.parent
    kinds = {parameter(tree.names, around, item).kind for item in body.params} if around is not None else set()
    return not _DSL.isdisjoint(kinds)


def _host_call(tree: FlyTree, body: Body) -> tuple[Body, Expr] | None:
    """Return a call of a plain function from host code that is expected to succeed; None if traced code may call it as well."""
    calls = [*tree.bodies.calls_of(body), *tree.finder.calls_of_result(body)]
    for caller, call in calls:
        if _may_be_traced(tree, caller, {body}):
            return None
        if call.span in index_of(caller).arguments or call.start in index_of(caller).lambdas:
            return None
    return next((item for item in calls if not is_unsure(tree, *item)), None)


def _may_be_traced(tree: FlyTree, body: Body, seen: set[Body]) -> bool:
    """Whether code is or may be traced: a traced function calls it, directly or indirectly, or it is passed on."""
    if tree.around(body) is not None:
        return True
    if body in seen or body.function is None:
        return False
    seen.add(body)
    return _is_given_away(tree, body) or any(
        _may_be_traced(tree, caller, seen) for caller, _ in tree.bodies.calls_of(body)
    )


def _is_given_away(tree: FlyTree, body: Body) -> bool:
    """Whether a function is passed on, returned by the enclosing function, or decorated by the tree's own code; tests do not
    count.
    """
    function, around = body.function, body.parent
    if function is None or around is None or function.name.startswith("test"):
        return False
    own = any(not tree.names.external(around, name) for name in function.decorator_names)
    returned = any(item.text == function.name for item in around.scope.returns)
    return own or returned or _is_passed(body.file, function.name)


def _no_launcher(body: Body, call: Expr, target: Body, caller: tuple[Body, Expr]) -> Diagnostic:
    assert body.function is not None
    assert target.function is not None
    return Diagnostic(
        f"`{body.function.name}` launches the kernel `{target.function.name}`, but has no `@flyc.jit`: the host's call raises "
        "`RuntimeError`",
        body.at(call.items[0]),
        (
            Related(body.at(body.function.span), "the function"),
            Related(caller[0].at(caller[1].items[0]), "called here"),
        ),
        ops=(body.function.name,),
    )
