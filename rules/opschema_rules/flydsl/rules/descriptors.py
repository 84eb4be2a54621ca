"""Buffer descriptors: how many bytes the GPU may read and write."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.expected_errors import expects_failure
from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Edit, Place, Span
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.contract import Era
from opschema_rules.flydsl.model import Descriptor, FlyTree, Kind
from opschema_rules.flydsl.proofs import SAME
from opschema_rules.flydsl.tensors import TensorArgument, Tensors, value_of

_NARROW = frozenset(f"{sign}Int{width}" for sign in ("", "U") for width in (8, 16, 32))
_ARITHMETIC = frozenset(["+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^"])
SHOWN = 3
"""Maximum number of callers shown in a finding."""


@rule("FLY201", "static-size-descriptor", pure=True)
def static_size_descriptor(file: FlyFile) -> Iterator[Diagnostic]:
    """`max_size=False` without a number of bytes, where the size does not follow the tensors that are passed.

    Up to FlyDSL 0.1.8 a tensor's shape is a constant of the compiled kernel but not part of the cache key: a call with
    another shape runs the kernel that the first one compiled. So a buffer of `make_buffer_tensor(t, max_size=False)` ends
    where the first tensor ended: reads beyond that give 0, and writes beyond that are dropped, without an error.
    Where every known caller wraps the tensor with `mark_layout_dynamic()`, the size is right as long as all callers do, so
    this is a warning.

    `create_buffer_resource(t, max_size=False)` finds no size in a tensor, and describes 4 GiB as with `max_size=True`: the
    results are right, but reads and writes behind the tensor are not stopped. This is a warning too. From 0.2.0 on
    nothing is reported.

    Bad:

    ```toml
    [flydsl]
    version = "0.1.8"
    ```

    ```python
    @flyc.kernel
    def scale(W: fx.Tensor, M: fx.Int32):
        w = fx.rocdl.make_buffer_tensor(W, max_size=False)
    ```

    Bad:

    ```toml
    [flydsl]
    version = "0.1.8"
    ```

    ```python
    from flydsl.expr import buffer_ops


    @flyc.kernel
    def scale(W: fx.Tensor, M: fx.Int32):
        w = buffer_ops.create_buffer_resource(W, max_size=False)
    ```

    Good:

    ```toml
    [flydsl]
    version = "0.1.8"
    ```

    ```python
    from flydsl.expr import buffer_ops


    @flyc.kernel
    def scale(W: fx.Tensor, X: fx.Tensor, M: fx.Int32):
        w = buffer_ops.create_buffer_resource(W, max_size=False, num_records_bytes=M * 4)
        x = buffer_ops.create_buffer_resource(X)
    ```

    Good, as the layout's size is known at run time:

    ```toml
    [flydsl]
    version = "0.4.2"
    ```

    ```python
    @flyc.kernel
    def scale(W: fx.Tensor):
        w = fx.rocdl.make_buffer_tensor(W, max_size=False)
    ```
    """
    tree = file.tree
    if not tree.contract.surely(Era.BAKED):
        return
    tensors = Tensors(tree)
    for item in tree.descriptors:
        size = item.max_size
        if size is None or size.kind != "const" or size.value is not False or _is_sized(item):
            continue
        if not _unpacks(item.expr) and not expects_failure(tree.bodies, item.body, item.expr.start):
            yield _unbounded(item, size) if item.api == "create_buffer_resource" else _static(tensors, item, size)


def _is_sized(item: Descriptor) -> bool:
    given = item.num_records or item.expr.keyword("num_records_bytes")
    return given is not None and not _is_none(given)


def _is_none(expr: Expr) -> bool:
    return expr.kind == "const" and expr.value is None


def _unpacks(call: Expr) -> bool:
    return any(word in ("*", "**") for word in call.keywords)


def _tensor(item: Descriptor) -> str:
    return f"`{item.body.file.text(item.tensor)}`" if item.tensor is not None else "the tensor"


def _unbounded(item: Descriptor, size: Expr) -> Diagnostic:
    message = (
        f"`max_size=False` has no effect without `num_records_bytes`: `{item.api}()` finds no size in a tensor and describes "
        f"4 GiB, so accesses beyond {_tensor(item)} are not stopped; pass `num_records_bytes`"
    )
    return Diagnostic(message, _argument(item.body, size), severity=Severity.WARNING)


def _static(tensors: Tensors, item: Descriptor, size: Expr) -> Diagnostic:
    passed = tensors.arguments(item.body, item.tensor) if item.tensor is not None else None
    always = bool(passed) and all(caller.is_dynamic for caller in passed or ())
    what = _tensor(item)
    instead = (
        "pass `num_records_bytes`"
        if item.takes_bytes
        else f"leave `max_size=False` out: this `{item.api}()` takes no bytes"
    )
    baked = f"this buffer has the size of {what} in the first call"
    if always:
        message = f"{baked}, unless every caller marks its layout dynamic, as the known ones do; {instead}"
    else:
        missed = "" if item.takes_bytes else ", or have every caller wrap it with `mark_layout_dynamic()`"
        message = (
            f"{baked}, and calls with other shapes run the same kernel: reads beyond its end give 0; {instead}{missed}"
        )
    shown = [caller for caller in passed or () if always or not caller.is_dynamic][:SHOWN]
    related = tuple(Related(caller.body.at(caller.expr), _caller(caller)) for caller in shown)
    severity = Severity.WARNING if always else Severity.ERROR
    return Diagnostic(message, _argument(item.body, size), related, severity=severity)


def _caller(caller: TensorArgument) -> str:
    return "a caller, with a dynamic layout" if caller.is_dynamic else "a caller, without a dynamic layout"


def _argument(body: Body, value: Expr) -> Place:
    """Return the place of an argument, including its keyword."""
    text = body.file.source.text
    before = text[: value.start].rstrip()
    if not before.endswith("=") or before.endswith(("==", "!=", "<=", ">=")):
        return body.at(value)
    word = before[:-1].rstrip()
    start = next((at + 1 for at in range(len(word) - 1, -1, -1) if not (word[at].isalnum() or word[at] == "_")), 0)
    return body.at(Span(start, value.end))


@rule("FLY202", "descriptor-contradiction", severity="warning", fixable="safe", proof=SAME, pure=True)
def descriptor_contradiction(file: FlyFile) -> Iterator[Diagnostic]:
    """`max_size=True` together with `num_records_bytes`, which overrides it.

    In every FlyDSL release with both parameters, `num_records_bytes` wins. The code reads as if the buffer had the largest
    possible size, but it is bounded.

    Bad:

    ```python
    @flyc.kernel
    def scale(W: fx.Tensor, M: fx.Int32):
        w = fx.rocdl.make_buffer_tensor(W, max_size=True, num_records_bytes=M * 4)
    ```

    Good:

    ```python
    @flyc.kernel
    def scale(W: fx.Tensor, X: fx.Tensor, M: fx.Int32):
        w = fx.rocdl.make_buffer_tensor(W, num_records_bytes=M * 4)
        x = fx.rocdl.make_buffer_tensor(X, max_size=False, num_records_bytes=M * 4)
    ```

    Good, as `None` is not a number of bytes:

    ```python
    @flyc.kernel
    def scale(W: fx.Tensor):
        w = fx.rocdl.make_buffer_tensor(W, max_size=True, num_records_bytes=None)
    ```
    """
    tree = file.tree
    for item in tree.descriptors:
        size, given = item.max_size, item.num_records
        if (
            size is None
            or size.kind != "const"
            or size.value is not True
            or given is None
            or not _is_constant_or_more(tree, item)
        ):
            continue
        place = _argument(item.body, size)
        message = (
            "`max_size=True` has no effect beside `num_records_bytes`, which bounds the buffer: leave one of them out"
        )
        yield Diagnostic(message, place, (Related(item.body.at(given), "the bytes"),), fix=_without(item, size, place))


def _is_constant_or_more(tree: FlyTree, item: Descriptor) -> bool:
    """Whether the byte count is known to be given: a parameter or a conditional expression may still be ``None``."""
    given = item.num_records
    if given is None or _unpacks(item.expr):
        return False
    if given.kind == "name" and "." not in given.text:
        value = value_of(tree, item.body, given.text)
        return value is not None and value.kind in ("binary", "const", "call") and not _is_none(value)
    return given.kind in ("binary", "call") or (given.kind == "const" and given.value is not None)


def _without(item: Descriptor, size: Expr, place: Place) -> Fix | None:
    """Return the fix that removes ``max_size``; None if a positional argument follows it."""
    index = item.expr.items.index(size)
    if any(not word for word in item.expr.keywords[index:]):
        return None
    text = item.body.file.source.text
    before = text[: place.span.start].rstrip()
    if not before.endswith(","):
        return None
    edit = Edit(Span(len(before) - 1, place.span.end), "")
    return (
        Fix("leave `max_size` out", (FileEdit(place.path, edit),))
        if "#" not in text[edit.span.start : edit.span.end]
        else None
    )


@rule("FLY203", "i32-bytes", pure=True)
def i32_bytes(file: FlyFile) -> Iterator[Diagnostic]:
    """The size of a buffer is computed in 32 bits, and this FlyDSL does not widen it.

    The descriptor needs 64 bits. The FlyDSL between the commits fd6ff00c and e5f41ee5 widens plain numbers only: an
    `fx.Int32`, and what is computed from one, does not pass MLIR's verifier. Checked where the tree has such a FlyDSL itself.
    Every release widens.

    Bad:

    ```python flydsl/compiler/jit_argument.py
    class TensorAdaptor:
        def __init__(self, tensor):
            self.tensor = tensor
    ```

    ```python flydsl/__init__.py
    ```

    ```python flydsl/expr/__init__.py
    def make_buffer_tensor(tensor, max_size=True, *, num_records_bytes=None):
        if not hasattr(num_records_bytes, "ir_value"):
            num_records_bytes = Int64(num_records_bytes)
    ```

    ```python
    @flyc.kernel
    def scale(W: fx.Tensor, M: fx.Int32):
        w = fx.make_buffer_tensor(W, num_records_bytes=M * 128)
    ```

    ```toml
    ```

    Good:

    ```python flydsl/compiler/jit_argument.py
    class TensorAdaptor:
        def __init__(self, tensor):
            self.tensor = tensor
    ```

    ```python flydsl/__init__.py
    ```

    ```python flydsl/expr/__init__.py
    def make_buffer_tensor(tensor, max_size=True, *, num_records_bytes=None):
        if not hasattr(num_records_bytes, "ir_value"):
            num_records_bytes = Int64(num_records_bytes)
    ```

    ```python
    @flyc.kernel
    def scale(W: fx.Tensor, M: fx.Int32, K: fx.Constexpr[int]):
        w = fx.make_buffer_tensor(W, num_records_bytes=fx.Int64(M) * 128)
        k = fx.make_buffer_tensor(W, num_records_bytes=K * 128)
    ```

    ```toml
    ```
    """
    tree = file.tree
    if not tree.contract.own or not hands_on(tree):
        return
    for item in tree.descriptors:
        given = item.num_records
        if (
            item.api != "make_buffer_tensor"
            or given is None
            or expects_failure(tree.bodies, item.body, item.expr.start)
        ):
            continue
        if _is_narrow(tree, item.body, given, MAX_CALLS):
            written = item.body.file.text(given)
            message = (
                f"`{written}` has 32 bits, and this FlyDSL needs 64 for a buffer's bytes: begin with `fx.Int64(...)`"
            )
            yield Diagnostic(message, item.body.at(given), _definition(tree))


def hands_on(tree: FlyTree) -> bool:
    """Whether the tree's own FlyDSL only widens plain numbers."""
    own = tree.answers.definition("make_buffer_tensor")
    calls = own.function.body.calls if own is not None else ()
    asks = any(
        call.callee == "hasattr"
        and [item.text or item.value for item in call.positional()] == ["num_records_bytes", "ir_value"]
        for call in calls
    )
    return asks and not any(call.callee == "num_records_bytes.to" for call in calls)


def _definition(tree: FlyTree) -> tuple[Related, ...]:
    own = tree.answers.definition("make_buffer_tensor")
    return (Related(Place(own.file.path, own.function.span), "takes what it is given"),) if own is not None else ()


def _is_narrow(tree: FlyTree, body: Body, expr: Expr, hops: int) -> bool:
    """Whether an expression is known to be a number of the DSL with at most 32 bits."""
    if hops <= 0:
        return False
    if expr.kind == "call":
        return tree.names.called(body, expr) in _NARROW
    if expr.kind == "binary" and expr.text in _ARITHMETIC:
        sides = [_is_narrow(tree, body, item, hops - 1) for item in expr.items]
        return all(sides) or (
            any(sides) and all(side or _is_number(item) for side, item in zip(sides, expr.items, strict=True))
        )
    if expr.kind != "name" or "." in expr.text:
        return False
    binder = body.binder(expr.text)
    traced = tree.traced_of(binder)
    found = traced.parameter(expr.text) if traced is not None else None
    if found is not None and binder is not None:
        written = any(item.target == expr.text for item in binder.scope.assigns)
        return found.kind is Kind.NUMBER and found.dsl in _NARROW and not written
    value = value_of(tree, body, expr.text)
    return value is not None and _is_narrow(tree, binder or body, value, hops - 1)


def _is_number(expr: Expr) -> bool:
    return expr.kind == "const" and isinstance(expr.value, int)
