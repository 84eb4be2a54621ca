"""Launches of kernels: arguments and streams."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.bodies import Body
from opschema_cli.source.call_edits import with_arguments
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Span
from opschema_cli.suggestions import near_names
from opschema_rules.flydsl.arguments import ATTRIBUTES, signature
from opschema_rules.flydsl.body_index import index_of
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.device_values import device_values
from opschema_rules.flydsl.model import Call, FlyTree, Kind
from opschema_rules.flydsl.number_types import FLOAT, NumberTypes
from opschema_rules.flydsl.proofs import TRACED
from opschema_rules.flydsl.usage import is_unsure, of_sure_call

LAUNCH = ("grid", "block", "smem", "stream", "cluster", *ATTRIBUTES)
"""Keywords of ``.launch``."""

SIZES = ("grid", "block", "cluster")

_STREAMS = frozenset(f"torch.cuda.{name}" for name in ("current_stream", "default_stream", "Stream", "ExternalStream"))
"""Functions and classes of torch that make streams."""

_DIVISION = re.compile(r"[^/\n]/[^/=]")


@rule("FLY214", "launch-configuration", pure=True)
def launch_configuration(file: FlyFile) -> Iterator[Diagnostic]:
    """A `.launch` with invalid arguments.

    It takes `grid`, `block`, `cluster`, `smem`, `stream` and, since 0.1.8, `unit_attrs` and `value_attrs`, all by keyword:
    any other keyword and any argument by position raise `TypeError`. A size has one to three entries: an empty one raises,
    and of four the last is dropped silently. Its entries are integers: a run-time value divided by `/` is a float, which
    the verifier rejects (use `//`). `None`, strings and tuples are no entries, and with an entry of 0 no thread runs. A `stream`
    is a launcher's parameter or `None`: a number raises, and so does a stream of torch.

    It is a method of what the call of a kernel returns, and not of the kernel: `fill.launch(A, grid=(1,))` raises
    `AttributeError`. What the call returns is not called itself: `fill(A)(grid=(1,))` raises `TypeError`.

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor):
        A[0] = 1


    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
        fill(A).launch(grids=(1,), block=(64,), stream=stream)
        fill(A).launch((1,), (64,), stream=stream)
        fill(A).launch(grid=(1, 1, 1, 2), block=(), stream=0)
        fill(A).launch(grid=(n / 64,), block=(64,), stream=stream)
        fill(A).launch(grid=(n, None, 1), block=(64,), stream=stream)
        fill(A).launch(grid=(n, 0, 1), block=(64,), stream=torch.cuda.current_stream())
        fill.launch(A, grid=(n,), block=(64,), stream=stream)
        filled = fill(A)
        filled(grid=(n,), block=(64,), stream=stream)
    ```

    Good:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor):
        A[0] = 1


    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
        fill(A).launch(grid=n // 64, block=[64, 1, 1], smem=0, stream=stream, cluster=(1, 1))
    ```
    """
    tree = file.tree
    for call, launch in tree.launches:
        yield from of_sure_call(tree, call, _refusals(tree, call, launch))
    for body in (body for each in tree.files for body in tree.bodies.calling(each, ["launch"])):
        yield from _uncalled(tree, body)
    for body, made in _launchers(tree).items():
        yield from _called_again(tree, body, made)


def _launchers(tree: FlyTree) -> dict[Body, dict[Span, Call]]:
    """Return the calls of kernels whose result a variable holds, by function and span."""
    found: dict[Body, dict[Span, Call]] = {}
    for call in (call for traced in tree.traced if traced.kind == "kernel" for call in traced.calls):
        if call.expr.span in index_of(call.body).targets:
            found.setdefault(call.body, {})[call.expr.span] = call
    return found


def _called_again(tree: FlyTree, body: Body, made: Mapping[Span, Call]) -> Iterator[Diagnostic]:
    """Yield findings on calls of the result of a kernel call."""
    names = {name for span in made for name in index_of(body).targets[span]}
    for other in body.scope.calls:
        callee = other.items[0]
        is_held = callee.kind == "name" and callee.text in names
        given = index_of(body).value_before(callee.text, other.start) if is_held else None
        call = made.get(given.span) if given is not None else None
        if call is not None and not is_unsure(tree, body, other):
            message = (
                f"`{callee.text}` is a launcher of `{call.target.name}`, which is not called: it raises `TypeError`"
            )
            place = body.at(callee)
            yield Diagnostic(f"{message}; write `{callee.text}.launch(...)`", place, ops=(call.target.title,))


def _uncalled(tree: FlyTree, body: Body) -> Iterator[Diagnostic]:
    """Yield findings on `.launch` of a traced function itself, instead of its call's result."""
    for launch in body.scope.calls:
        name, _, method = launch.callee.rpartition(".")
        function = tree.bodies.called(body, name) if method == "launch" and name else None
        target = tree.traced_of(function) if function is not None else None
        if target is None or target.function.decorators != (target.decorator,):
            continue
        if not is_unsure(tree, body, launch) and not _is_set(tree, body, name):
            how = f"call it first: `{name}(...).launch(...)`" if target.kind == "kernel" else "call it"
            yield Diagnostic(
                f"`{name}` has no `launch`: it raises `AttributeError`; {how}",
                body.at(launch.items[0]),
                (Related(target.place, "the function"),),
                ops=(target.title,),
            )


def _is_set(tree: FlyTree, body: Body, name: str) -> bool:
    """Whether a file sets an attribute `launch`, or the file of a body assigns the attribute of an instance."""
    own = (item.target for scope in body.file.body.walk() for item in scope.assigns)
    if "." in name and name in own:
        return True
    files = (scope for each in tree.files for scope in each.body.walk())
    holders = (item.target.rpartition(".") for scope in files for item in scope.assigns)
    return any(word == "launch" and holder not in ("", "self", "cls") for holder, _, word in holders)


def _refusals(tree: FlyTree, call: Call, launch: Expr) -> Iterator[Diagnostic]:
    for keyword, value in launch.args:
        what = _refused(tree, call, keyword, value)
        if what:
            yield Diagnostic(what, call.body.at(value), (signature(call.target),), ops=(call.target.title,))


def _refused(tree: FlyTree, call: Call, keyword: str, value: Expr) -> str:
    """Return why `.launch` does not accept an argument; empty if it does, or if that is not known."""
    if keyword in ("*", "**"):
        return ""
    if not keyword:
        return "`.launch` takes its arguments by keyword only: `grid=`, `block=`, `stream=`"
    if keyword not in LAUNCH:
        close = near_names(keyword, LAUNCH, 1)
        return f"`.launch` takes no `{keyword}`" + (
            f", but `{close[0]}`" if close else f": it takes {quoted(list(LAUNCH))}"
        )
    if keyword == "stream":
        return _refused_stream(tree, call, value)
    return _refused_size(tree, call, keyword, value) if keyword in SIZES else ""


def _refused_stream(tree: FlyTree, call: Call, value: Expr) -> str:
    """Return why an argument is not a stream; empty if it may be one."""
    if value.kind == "const" and isinstance(value.value, int | float | str):
        return "a `stream` is a launcher's parameter or `None`, not a constant: it raises"
    if value.kind == "call" and tree.names.external(call.body, value.callee) in _STREAMS and tree.around(call.body):
        return "a `stream` is a launcher's parameter or `None`, not one of torch: it raises; take it as an `fx.Stream`"
    return ""


def _refused_size(tree: FlyTree, call: Call, keyword: str, value: Expr) -> str:
    """Return why a size is rejected; empty if it may be right."""
    entries = value.elements if value.kind in ("tuple", "list") else None
    if any(map(_is_no_size, entries if entries is not None else ())):
        return f"an entry of `{keyword}` must be a number, not `None`, a string or a tuple: it raises"
    small = [item for item in (entries if entries is not None else (value,)) if _is_no_count(item)]
    if small:
        return f"`{call.body.file.text(small[0])}` in `{keyword}` is not positive: no thread runs"
    if keyword != "cluster" and value.kind == "const" and not isinstance(value.value, int | float):
        return f"`{keyword}` takes one to three numbers, not a constant of another type: it raises"
    if entries is not None:
        if not value.items:
            return f"`{keyword}` has no entry: it raises"
        if len(value.items) > 3:
            return f"`{keyword}` has {len(value.items)} entries, and `.launch` takes the first three"
    return _divided(tree, call, keyword, value)


def _is_no_size(entry: Expr) -> bool:
    """Whether an entry of a size is written as something other than a number."""
    plain = entry.kind == "const" and not isinstance(entry.value, int | float)
    return plain or entry.kind in ("tuple", "list", "dict", "fstring")


def _is_no_count(entry: Expr) -> bool:
    """Whether an entry of a size is written as a number that is not positive."""
    if entry.kind == "unary" and entry.text == "-":
        return isinstance(entry.items[0].value, int)
    return entry.kind == "const" and type(entry.value) is int and entry.value < 1


def _divided(tree: FlyTree, call: Call, keyword: str, value: Expr) -> str:
    """Return why a size is rejected that divides a run-time value by ``/``; empty if it does not."""
    around = tree.around(call.body)
    if around is None or not _divides(around.body):
        return ""
    types = NumberTypes(device_values(tree, around))
    for entry in value.items if value.kind in ("tuple", "list") else (value,):
        if types.of(call.body, entry) == FLOAT and types.values.of(call.body, entry) == "number":
            return f"`{call.body.file.text(entry)}` is a float, but entries of `{keyword}` are integers: write `//`"
    return ""


@cached_on_argument
def _divides(body: Body) -> bool:
    """Whether the text of a function may divide by ``/``."""
    return body.function is not None and _DIVISION.search(body.file.text(body.function.outer)) is not None


@rule("FLY219", "ignored-stream", severity="warning", fixable="safe", proof=TRACED, pure=True)
def ignored_stream(file: FlyFile) -> Iterator[Diagnostic]:
    """A launcher that takes a stream and does not launch on it.

    A launcher without an `fx.Stream` parameter gets one, and all its launches use it. A launcher that declares one must
    pass it to each `.launch(stream=stream)`: a launch without it starts on the default stream, unordered with the caller's
    own work, so results may be read before they are written.

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor):
        A[0] = 1


    @flyc.jit
    def launch(A: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
        fill(A).launch(grid=(1,), block=(64,))
    ```

    Good:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor):
        A[0] = 1


    @flyc.jit
    def launch(A: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
        fill(A).launch(grid=(1,), block=(64,), stream=stream)


    @flyc.jit
    def launch_on_its_own(A: fx.Tensor):
        fill(A).launch(grid=(1,), block=(64,))
    ```
    """
    tree = file.tree
    for call, launch in tree.launches:
        yield from of_sure_call(tree, call, _ignored(tree, call, launch))


def _ignored(tree: FlyTree, call: Call, launch: Expr) -> Iterator[Diagnostic]:
    """Yield a finding on a launch that does not use the launcher's stream."""
    around = tree.around(call.body)
    streams = [item for item in around.call_parameters if item.kind is Kind.STREAM] if around is not None else []
    if around is None or not streams or "**" in launch.keywords or launch.keyword("stream") is not None:
        return
    stream = streams[0]
    yield Diagnostic(
        f"`{around.name}` takes `{stream.name}`, and this launch of `{call.target.name}` is on the default stream: pass "
        f"`stream={stream.name}`",
        call.body.at(Span(launch.items[0].end - len("launch"), launch.items[0].end)),
        (Related(around.body.at(stream.param.full_span), "the stream"),),
        _passing(call.body, launch, stream.name) if call.body.binder(stream.name) is around.body else None,
        (around.title,),
    )


def _passing(body: Body, launch: Expr, stream: str) -> Fix | None:
    """Return the fix that adds the stream to the arguments of a launch."""
    edit = with_arguments(body.file.source.text, launch, [f"stream={stream}"])
    return Fix(f"launch on `{stream}`", (FileEdit(body.file.path, edit),)) if edit is not None else None
