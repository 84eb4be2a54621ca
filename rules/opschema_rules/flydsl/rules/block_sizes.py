"""Blocks of launches against what their kernels promise."""

from __future__ import annotations

import math
from collections.abc import Iterator

from packaging.version import Version

from opschema_cli.evaluation.statements import is_variable
from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Place
from opschema_rules.flydsl.arguments import signature
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.model import Call, FlyTree, Traced
from opschema_rules.flydsl.usage import is_meant_to_fail, of_sure_call

UNPROMISED = 256
"""The most threads of a block without ``known_block_size`` before that release."""

MOST = 1024
"""The most threads of a block on the GPUs that FlyDSL compiles for: LLVM's largest `amdgpu_flat_work_group_size`."""

INFERRED = Version("0.3.1")
"""The first release that derives the size from the launch."""


@rule("FLY215", "block-size", pure=True)
def block_size(file: FlyFile) -> Iterator[Diagnostic]:
    """A `block` that contradicts the kernel's `known_block_size`, or is too large for the release without one.

    `known_block_size` is a promise about every launch: three positive integers, else the decorator raises. A launch whose
    `block` is known while tracing and differs raises `ValueError`, and so does one without `block`, which means one thread.

    No GPU takes a block of more than 1024 threads. Up to 0.3.0 one of more than 256 threads raises too, unless the kernel
    declares its `known_block_size`. From 0.3.1 on the size is taken from the launch.

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
        what = _fault(tree, traced, known) if known is not None else ""
        if known is not None and what and not is_meant_to_fail(tree, traced.body):
            yield Diagnostic(
                f"`known_block_size` is three positive integers, x, y and z, and this {what}: the decorator raises",
                traced.body.at(known),
                ops=(traced.title,),
            )
    for call, launch in tree.launches:
        yield from of_sure_call(tree, call, _contradicting(tree, call, launch))


def _known(traced: Traced) -> Expr | None:
    found = traced.decorator.keyword("known_block_size") if traced.kind == "kernel" else None
    return None if found is None or (found.kind == "const" and found.value is None) else found


def _fault(tree: FlyTree, traced: Traced, known: Expr) -> str:
    """Return what is wrong with a ``known_block_size`` itself; empty if it is right or not known."""
    sizes = _sizes(tree, traced.body.parent or traced.body, known)
    if known.kind == "const":
        return "is not a sequence"
    if known.kind in ("tuple", "list") and known.elements is not None and len(known.elements) != 3:
        return f"has {len(known.items)} entries"
    return "has an entry that is not positive" if any(item is not None and item <= 0 for item in sizes or ()) else ""


def _sizes(tree: FlyTree, body: Body, expr: Expr) -> list[int | None] | None:
    """Return a size's entries, None for those that are not known; None if their number is not known."""
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
        yield from _broken(tree, call, known, place, given, sizes if given is not None else None)
    elif sizes is not None and all(sizes) and math.prod(item or 0 for item in sizes) > MOST:
        total = math.prod(item or 0 for item in sizes)
        message = f"a block of {total} threads exceeds the limit of any GPU, {MOST}: the launch fails"
        yield Diagnostic(message, place, (signature(call.target),), ops=(call.target.title,))
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
    tree: FlyTree, call: Call, known: Expr, place: Place, given: Expr | None, sizes: list[int | None] | None
) -> Iterator[Diagnostic]:
    """Yield a finding on a launch whose block differs from the declared one; ``sizes`` is None without a block, which means one
    thread.
    """
    traced = call.target
    declared = None if _fault(tree, traced, known) else _sizes(tree, traced.body.parent or traced.body, known)
    pairs = zip(sizes or [1, 1, 1], declared or [], strict=False)
    related = (Related(traced.body.at(known), "the promise"),)
    if any(one != other for one, other in pairs if one is not None and other is not None):
        what = "no `block` is one thread" if sizes is None else f"this block is {_told_size(sizes)}"
        message = f"{what}, and `{traced.name}` promises {_told_size(declared or [])}: it raises"
        yield Diagnostic(message, place, related, ops=(traced.title,))
    elif given is not None and declared is not None:
        entries = zip(given.elements or (), known.elements or (), strict=False)
        for one, other in [pair for pair in entries if _differs(call, *pair)][:1]:
            message = (
                f"this block has `{call.body.file.text(one)}` where `{traced.name}` promises `{other.text}`: it raises"
            )
            yield Diagnostic(message, place, related, ops=(traced.title,))


def _differs(call: Call, given: Expr, known: Expr) -> bool:
    """Whether an entry of a block is known to differ from the declared one: a multiple or a sum of the same variable."""
    other = next((item for item in given.items if item.kind == "const"), None)
    by = other.value if other is not None and type(other.value) is int else 0
    changes = (given.text == "*" and by > 1) or (given.text in "+-" and by > 0)
    if given.kind != "binary" or not changes or not is_variable(known):
        return False
    names = [item.text for item in given.items if item.kind == "name"]
    return names == [known.text] and given.items[1] is not known and _is_kept(call, known.text)


def _is_kept(call: Call, name: str) -> bool:
    """Whether a name is a variable with the same value where a kernel is defined and where it is launched."""
    around = call.target.body.parent
    binder = around.binder(name) if around is not None else None
    if binder is None or call.body.binder(name) is not binder or name in binder.file.rebound:
        return False
    assigned = [item.sure for item in binder.scope.assigns if item.target == name]
    parameter = any(item.name == name for item in binder.params)
    return assigned == [True] * (not parameter) and not any(item.name == name for item in binder.scope.imports)


def _told_size(sizes: list[int | None]) -> str:
    return " x ".join("?" if item is None else str(item) for item in sizes)


def _needs_promise(tree: FlyTree) -> bool:
    """Whether all FlyDSL releases in question reject more than 256 threads without ``known_block_size``."""
    contract = tree.contract
    if not contract.own:
        return bool(contract.releases) and max(contract.releases) < INFERRED
    return tree.answers.compiler_holds("kernel_function.py", "exceeds the AMDGPU default") is True
