"""Launches of kernels: arguments, blocks and streams."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from packaging.version import Version

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Edit, Place, Span
from opschema_cli.suggestions import near_names
from opschema_rules.flydsl.arguments import ATTRIBUTES, signature
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.device_values import device_values
from opschema_rules.flydsl.model import Call, FlyTree, Kind, Traced
from opschema_rules.flydsl.number_types import FLOAT, NumberTypes
from opschema_rules.flydsl.proofs import TRACED
from opschema_rules.flydsl.usage import is_meant_to_fail, is_unsure

LAUNCH = ("grid", "block", "smem", "stream", "cluster", *ATTRIBUTES)
"""Keywords of ``.launch``."""

SIZES = ("grid", "block", "cluster")

_DIVISION = re.compile(r"[^/\n]/[^/=]")

UNPROMISED = 256
"""The most threads of a block without ``known_block_size`` before that release."""

INFERRED = Version("0.3.1")
"""The first release that takes ``known_block_size`` from the launch."""


@rule("FLY214", "launch-configuration", pure=True)
def launch_configuration(file: FlyFile) -> Iterator[Diagnostic]:
    """A `.launch` with invalid arguments.

    It takes `grid`, `block`, `cluster`, `smem`, `stream` and, since 0.1.8, `unit_attrs` and `value_attrs`, all by keyword:
    any other keyword and any argument by position raise `TypeError`. A size has one to three entries: an empty one raises,
    and of four the last is dropped silently. Its entries are integers: a run-time value divided by `/` is a float, which
    the verifier rejects (use `//`). A `stream` is a launcher's parameter or `None`; a number raises.

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
    for call, launch in _launches(tree):
        for keyword, value in launch.args:
            what = _refused(tree, call, keyword, value)
            if what:
                yield Diagnostic(what, call.body.at(value), (signature(call.target),), ops=(call.target.title,))


def _launches(tree: FlyTree) -> Iterator[tuple[Call, Expr]]:
    for traced in tree.traced:
        for call in traced.calls:
            if call.launches and not is_unsure(tree, call.body, call.expr):
                yield from ((call, launch) for launch in call.launches)


def _refused(tree: FlyTree, call: Call, keyword: str, value: Expr) -> str:
    """The reason why `.launch` does not take an argument; empty when it does, or nobody knows."""
    if keyword in ("*", "**"):
        return ""
    if not keyword:
        return "`.launch` takes its arguments by keyword only: `grid=`, `block=`, `stream=`"
    if keyword not in LAUNCH:
        close = near_names(keyword, LAUNCH, 1)
        return f"`.launch` takes no `{keyword}`" + (
            f", but `{close[0]}`" if close else f": it takes {quoted(list(LAUNCH))}"
        )
    if keyword == "stream" and value.kind == "const" and isinstance(value.value, int | float | str):
        return "a `stream` is a launcher's parameter or `None`, not a constant: it raises"
    if keyword in SIZES and value.kind in ("tuple", "list") and value.elements is not None:
        if not value.items:
            return f"`{keyword}` has no entry: it raises"
        if len(value.items) > 3:
            return f"`{keyword}` has {len(value.items)} entries, and `.launch` takes the first three"
    return _divided(tree, call, keyword, value) if keyword in SIZES else ""


def _divided(tree: FlyTree, call: Call, keyword: str, value: Expr) -> str:
    """Whether an entry of a size is a value of run time divided by ``/``."""
    around = tree.around(call.body)
    if around is None or _DIVISION.search(around.body.file.text(around.function.outer)) is None:
        return ""
    types = NumberTypes(device_values(tree, around))
    for entry in value.items if value.kind in ("tuple", "list") else (value,):
        if types.of(call.body, entry) == FLOAT and types.values.of(call.body, entry) == "number":
            return f"`{call.body.file.text(entry)}` is a float, but entries of `{keyword}` are integers: write `//`"
    return ""


@rule("FLY215", "block-size", pure=True)
def block_size(file: FlyFile) -> Iterator[Diagnostic]:
    """A `block` that contradicts the kernel's `known_block_size`, or is too large for the release without one.

    `known_block_size` is a promise about every launch: three positive integers, else the decorator raises. A launch whose
    `block` is known while tracing and differs raises `ValueError`, and so does one without `block`, which means one thread.

    Up to 0.3.0 a block of more than 256 threads raises too, unless the kernel declares its `known_block_size`. From 0.3.1
    on the size is taken from the launch.

    Bad:

    ```python
    @flyc.kernel(known_block_size=[256, 1, 1])
    def fill(A: fx.Tensor):
        A[0] = 1


    @flyc.jit
    def launch(A: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
        fill(A).launch(grid=(1,), block=(512, 1, 1), stream=stream)
    ```

    Bad:

    ```python
    @flyc.kernel(known_block_size=[256, 1])
    def fill(A: fx.Tensor):
        A[0] = 1
    ```

    Bad, before 0.3.1:

    ```toml
    [flydsl]
    version = "0.3.0"
    ```

    ```python
    THREADS = 512


    @flyc.kernel
    def fill(A: fx.Tensor):
        A[0] = 1


    @flyc.jit
    def launch(A: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
        fill(A).launch(grid=(1,), block=(THREADS, 1, 1), stream=stream)
    ```

    Good:

    ```python
    @flyc.kernel(known_block_size=[256, 1, 1])
    def fill(A: fx.Tensor):
        A[0] = 1


    @flyc.kernel
    def clear(A: fx.Tensor):
        A[0] = 0


    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
        fill(A).launch(grid=(1,), block=256, stream=stream)
        fill(A).launch(grid=(1,), block=(n, 1, 1), stream=stream)
        clear(A).launch(grid=(1,), block=(512, 1, 1), stream=stream)
    ```
    """
    tree = file.tree
    for traced in tree.traced:
        known = _known(traced)
        if known is not None and not is_meant_to_fail(tree, traced.body):
            yield from _malformed(tree, traced, known)
    for call, launch in _launches(tree):
        yield from _contradicting(tree, call, launch)


def _known(traced: Traced) -> Expr | None:
    found = traced.decorator.keyword("known_block_size") if traced.kind == "kernel" else None
    return None if found is None or (found.kind == "const" and found.value is None) else found


def _malformed(tree: FlyTree, traced: Traced, known: Expr) -> Iterator[Diagnostic]:
    what = _fault(tree, traced, known)
    if what:
        yield Diagnostic(
            f"`known_block_size` is three positive integers, x, y and z, and this {what}: the decorator raises",
            traced.body.at(known),
            ops=(traced.title,),
        )


def _fault(tree: FlyTree, traced: Traced, known: Expr) -> str:
    """The fault of a ``known_block_size`` itself; empty if it is right or not known."""
    sizes = _sizes(tree, traced.body.parent or traced.body, known)
    if known.kind == "const":
        return "is not a sequence"
    if known.kind in ("tuple", "list") and known.elements is not None and len(known.elements) != 3:
        return f"has {len(known.items)} entries"
    return "has an entry that is not positive" if any(item is not None and item <= 0 for item in sizes or ()) else ""


def _sizes(tree: FlyTree, body: Body, expr: Expr) -> list[int | None] | None:
    """A size's entries, None for those that are not known; None when not even their number is."""
    if expr.kind not in ("tuple", "list"):
        only = _integer(tree, body, expr)
        return [only, 1, 1] if only is not None else None
    if not 1 <= len(expr.items) <= 3 or expr.elements is None:
        return None
    found = [_integer(tree, body, item) for item in expr.items]
    return [*found, *([1] * (3 - len(found)))]


def _integer(tree: FlyTree, body: Body, expr: Expr) -> int | None:
    for part in expr.walk():
        binder = body.binder(part.text.partition(".")[0]) if part.kind == "name" else None
        if binder is not None and any(item.name == part.text.partition(".")[0] for item in binder.params):
            return None
    found = tree.evaluator.fold(body, expr)
    value = found.value if isinstance(found, Folded) and not found.symbol else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _contradicting(tree: FlyTree, call: Call, launch: Expr) -> Iterator[Diagnostic]:
    given, known = launch.keyword("block"), _known(call.target)
    if "**" in launch.keywords and given is None:
        return
    sizes: list[int | None] | None = _sizes(tree, call.body, given) if given is not None else [1, 1, 1]
    place = call.body.at(given) if given is not None else call.body.at(launch.items[0])
    if sizes is not None and known is not None:
        yield from _broken(tree, call, known, place, sizes if given is not None else None)
    elif sizes is not None and "**" not in call.target.decorator.keywords and _needs_promise(tree):
        total = math.prod(item or 0 for item in sizes)
        if total > UNPROMISED:
            yield Diagnostic(
                f"a block of {total} threads needs `known_block_size={sizes}` of `{call.target.name}` in this release: it raises",
                place,
                (signature(call.target),),
                ops=(call.target.title,),
            )


def _broken(
    tree: FlyTree, call: Call, known: Expr, place: Place, sizes: list[int | None] | None
) -> Iterator[Diagnostic]:
    """A launch whose block is not the promised one; None stands for none, which is one thread."""
    traced = call.target
    declared = None if _fault(tree, traced, known) else _sizes(tree, traced.body.parent or traced.body, known)
    pairs = zip(sizes or [1, 1, 1], declared or [], strict=False)
    if any(one != other for one, other in pairs if one is not None and other is not None):
        what = "no `block` is one thread" if sizes is None else f"this block is {_told_size(sizes)}"
        yield Diagnostic(
            f"{what}, and `{traced.name}` promises {_told_size(declared or [])}: it raises",
            place,
            (Related(traced.body.at(known), "the promise"),),
            ops=(traced.title,),
        )


def _told_size(sizes: list[int | None]) -> str:
    return " x ".join("?" if item is None else str(item) for item in sizes)


def _needs_promise(tree: FlyTree) -> bool:
    """Whether every FlyDSL that the kernels may meet refuses more than 256 threads without ``known_block_size``."""
    contract = tree.contract
    if not contract.own:
        return bool(contract.releases) and max(contract.releases) < INFERRED
    return tree.answers.compiler_holds("kernel_function.py", "exceeds the AMDGPU default") is True


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
    for call, launch in _launches(tree):
        around = tree.around(call.body)
        stream = (
            next((item for item in around.call_parameters if item.kind is Kind.STREAM), None)
            if around is not None
            else None
        )
        if around is None or stream is None or "**" in launch.keywords or launch.keyword("stream") is not None:
            continue
        yield Diagnostic(
            f"`{around.name}` takes `{stream.name}`, and this launch of `{call.target.name}` is on the default stream: pass "
            f"`stream={stream.name}`",
            call.body.at(Span(launch.items[0].end - len("launch"), launch.items[0].end)),
            (Related(around.body.at(stream.param.full_span), "the stream"),),
            _passing(call.body, launch, stream.name) if call.body.binder(stream.name) is around.body else None,
            (around.title,),
        )


def _passing(body: Body, launch: Expr, stream: str) -> Fix | None:
    """The launch with the stream behind what it passes."""
    before = body.file.source.text[launch.items[0].end : launch.end - 1].rstrip()
    if "#" in before.rpartition("\n")[2]:
        return None
    at = launch.items[0].end + len(before)
    comma = "" if before.endswith("(") else " " if before.endswith(",") else ", "
    return Fix(f"launch on `{stream}`", (FileEdit(body.file.path, Edit(Span(at, at), f"{comma}stream={stream}")),))
