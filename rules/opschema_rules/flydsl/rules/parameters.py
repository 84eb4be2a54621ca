"""Parameters and their arguments: trace-time constants and run-time values."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Edit, Place
from opschema_rules.flydsl.arguments import ON_DEVICE, Argument, call_arguments, fits, is_read
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.contract import Era
from opschema_rules.flydsl.dsl_types import clash, lacking
from opschema_rules.flydsl.host_arguments import is_none, what_is_no_stream, what_is_unfit
from opschema_rules.flydsl.key import has_computed_key, rewrites_blocks
from opschema_rules.flydsl.model import Call, FlyTree, Kind, Parameter, Traced
from opschema_rules.flydsl.proofs import TRACED
from opschema_rules.flydsl.tensors import is_address
from opschema_rules.flydsl.usage import is_meant_to_fail, is_unsure, of_sure_call

_COLLECTIONS = ("list", "set", "dict")


def _at(traced: Traced, parameter: Parameter) -> Place:
    return traced.body.at(parameter.param.full_span)


def _declared(item: Argument) -> tuple[Related, ...]:
    return (Related(_at(item.call.target, item.parameter), f"`{item.call.target.name}` takes it as this"),)


@rule("FLY216", "late-constexpr", pure=True)
def late_constexpr(file: FlyFile) -> Iterator[Diagnostic]:
    """A `Constexpr` parameter that is passed a value that is not a constant.

    A kernel's `Constexpr` is a Python value, passed to its body unchanged while the kernel is traced. If it is the
    launcher's `n: fx.Int32`, which has a value on the GPU only, the body uses a value of another function: a loop over it
    raises, and arithmetic with it fails when the module is verified. Make the launcher's parameter a `Constexpr` too, which
    compiles once for each value, or the kernel's an `fx.Int32`.

    Up to 0.4.2 a launcher's `Constexpr` becomes part of the compile cache's key, so it takes numbers, strings and tuples: a
    list, a set or a dict raises `TypeError`, and so does `None` from 0.2.0 on. FlyDSL 0.5.0 accepts them, so they are not
    reported where FlyDSL may be that new.

    Bad:

    ```python
    @flyc.kernel
    def copy(A: fx.Tensor, steps: fx.Constexpr[int]):
        for i in fx.range_constexpr(steps):
            A[i] = i


    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
        copy(A, n // 16).launch(grid=(1,), block=(64,), stream=stream)
    ```

    Bad:

    ```toml
    [flydsl]
    version = "0.4.2"
    ```

    ```python
    @flyc.jit
    def launch(A: fx.Tensor, order: fx.Constexpr[tuple]):
        print(order)


    def run(x):
        launch(x, [1, 0])
    ```

    Good:

    ```python
    @flyc.kernel
    def copy(A: fx.Tensor, steps: fx.Constexpr[int]):
        for i in fx.range_constexpr(steps):
            A[i] = i


    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
        copy(A, n // 16).launch(grid=(1,), block=(64,), stream=stream)
    ```
    """
    tree = file.tree
    for traced in tree.traced:
        for call in traced.calls:
            given = (item for item in call_arguments(tree, call) if item.parameter.kind is Kind.CONSTEXPR)
            found = (diagnostic for item in given for diagnostic in _unfit_constant(tree, item))
            yield from of_sure_call(tree, call, found)


def _unfit_constant(tree: FlyTree, item: Argument) -> Iterator[Diagnostic]:
    target, name = item.call.target, item.parameter.name
    if target.kind == "kernel":
        on_device = item.device or (item.own is not None and item.own.kind in ON_DEVICE)
        if on_device and is_read(target, item.parameter):
            yield Diagnostic(
                f"`{item.text}` is known at run time only, and `{target.name}` takes `{name}` as a `Constexpr`, which it "
                "needs while it is traced: give both the same kind",
                item.place,
                (*_origin(item), *_declared(item)),
                ops=(target.title,),
            )
    elif has_computed_key(tree) and _is_host(tree, item.call):
        kind, nothing = item.value.kind, is_none(item)
        if kind in _COLLECTIONS or (nothing and tree.contract.surely(Era.SPLIT, Era.CURRENT)):
            what = "None" if nothing else f"a {kind}"
            yield Diagnostic(
                f"`{target.name}` takes `{name}` as a `Constexpr`, which is part of the compile cache's key and cannot be {what}: "
                "pass numbers, strings or a tuple of them",
                item.place,
                _declared(item),
                ops=(target.title,),
            )


def _origin(item: Argument) -> Iterator[Related]:
    """Yield the launcher's parameter that an argument names."""
    names = [part.text for part in item.expr.walk() if part.kind == "name"]
    around = item.around
    found = next((found for name in names if around is not None and (found := around.parameter(name))), None)
    if around is not None and found is not None:
        yield Related(_at(around, found), f"`{around.name}` gets it at run time")


def _is_host(tree: FlyTree, call: Call) -> bool:
    """Whether a call is in host code that is not traced, as far as the tree shows."""
    outermost = [body for body in call.body.outward() if body.function is not None]
    traced = any(tree.around(body) is not None for body in outermost)
    callers = [body for item in outermost for body, _ in tree.bodies.calls_of(item)]
    return not traced and all(tree.around(body) is None for body in callers)


@rule("FLY218", "argument-kind", fixable="safe", proof=TRACED, pure=True)
def argument_kind(file: FlyFile) -> Iterator[Diagnostic]:
    """An argument of another kind than its parameter.

    A kernel's parameter that is not a `Constexpr` is an operand of the launch, so the call has to pass a FlyDSL value: with
    a Python number, also the variable of a loop over `range_constexpr`, `None` or a launcher's `Constexpr`, it raises
    `TypeError: Cannot derive IR types`, and so does a default that is a Python number. Write `fx.Int32(4)`, or declare the
    parameter a `Constexpr`. The variable of a loop over `range` raises, too: write `fx.Int32(i)`.

    A launcher's arguments come from the host, which may pass Python numbers, but no `None`, string, list, tuple or dict for a
    tensor or a number, also not by default, no `x.shape` or `x.dtype`, no tensor of complex numbers, and no tensor of several
    elements for a number. `x.data_ptr()` is a number, and no tensor. A stream is one of torch, an integer or `None`. The fraction
    of a `float` for an `fx.Int32` is lost silently.

    A tensor that is passed where a number or an `fx.TiledCopy` is declared, or the reverse, causes an error only when the
    body reads an attribute of it that the argument does not have: annotations are not enforced, and the argument decides. An
    `fx.Int32` that is passed where the kernel declares `fx.Int64` makes the kernel compute in 32 bits. Where no such
    attribute is read, these are warnings.

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        A[0] = n


    @flyc.jit
    def launch(A: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
        fill(A, 4).launch(grid=(1,), block=(64,), stream=stream)
    ```

    Bad, the arguments have changed places:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        A[0] = n


    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
        fill(n, A).launch(grid=(1,), block=(64,), stream=stream)
    ```

    Bad, the tensor and the copy have changed places:

    ```python
    @flyc.kernel
    def move(A: fx.Tensor, copy: fx.TiledCopy):
        part = copy.get_slice(fx.thread_idx.x).partition_S(A)


    @flyc.jit
    def launch(A: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
        copy = fx.make_tiled_copy_tv(atom, fx.make_layout((4, 16), (16, 1)), fx.make_layout((1, 4), (4, 1)))
        move(copy, A).launch(grid=(1,), block=(64,), stream=stream)
    ```

    Bad, a default that a call relies on:

    ```python
    @flyc.jit
    def launch(A: fx.Tensor, bias: fx.Tensor = None, stream: fx.Stream = fx.Stream(None)):
        print(A, bias)


    def run(x):
        launch(x)
    ```

    Good:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32, m: fx.Int32, tile: fx.Constexpr[int] = 4):
        A[0] = n + m + tile


    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32, tile: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
        fill(A, n, fx.Int32(4), tile).launch(grid=(1,), block=(64,), stream=stream)


    def run(x):
        launch(x, 12, 4)
    ```
    """
    tree = file.tree
    for traced in tree.traced:
        bare = list(_bare_defaults(tree, traced))
        if bare and not is_meant_to_fail(tree, traced.body):
            yield from bare
        for call in traced.calls:
            judge = _to_kernel if traced.kind == "kernel" else _to_launcher
            found = (diagnostic for item in call_arguments(tree, call) for diagnostic in judge(tree, item))
            yield from of_sure_call(tree, call, found)


def _bare_defaults(tree: FlyTree, traced: Traced) -> Iterator[Diagnostic]:
    """Yield findings on defaults that no parameter of the kind can have, if a call relies on them."""
    for parameter in traced.call_parameters:
        default = parameter.param.default
        if default is None or not _is_unfit_default(traced, parameter, default):
            continue
        counting = [call for call in traced.calls if _counts_on(tree, call, parameter)]
        what = (
            "a Python value, but a kernel takes FlyDSL values"
            if traced.kind == "kernel"
            else "not a tensor or a number"
        )
        if counting:
            yield Diagnostic(
                f"the default of `{parameter.name}` is {what}: it raises if a call of `{traced.name}` relies on it",
                traced.body.at(default),
                tuple(Related(call.place, "relies on it") for call in counting[:3]),
                _wrapped(tree, parameter, traced.body, traced.body, default),
                (traced.title,),
            )


def _is_unfit_default(traced: Traced, parameter: Parameter, default: Expr) -> bool:
    if traced.kind == "kernel":
        return parameter.kind in ON_DEVICE and _is_plain_value(default)
    nothing = default.kind == "const" and traced.body.file.text(default) == "None"
    return nothing and parameter.kind in (Kind.TENSOR, Kind.NUMBER, Kind.POINTER)


def _counts_on(tree: FlyTree, call: Call, parameter: Parameter) -> bool:
    """Whether a call relies on a parameter's default, and the function is not only called while another one is traced."""
    if call.unpacks or call.argument(parameter.name) is not None or not fits(tree, call):
        return False
    return (call.target.kind == "kernel" or _is_host(tree, call)) and not is_unsure(tree, call.body, call.expr)


def _is_plain_value(expr: Expr) -> bool:
    return expr.kind == "const" or (expr.kind == "unary" and all(part.kind == "const" for part in expr.items))


def _to_kernel(tree: FlyTree, item: Argument) -> Iterator[Diagnostic]:
    target, parameter = item.call.target, item.parameter
    if parameter.kind in (Kind.CONSTEXPR, Kind.TYPE, Kind.UNKNOWN):
        return
    if item.python:
        how = "a `Constexpr`" if item.own is not None else "a Python value"
        yield Diagnostic(
            f"`{item.text}` is {how}, and `{target.name}` takes `{parameter.name}` at run time: it raises; pass a FlyDSL "
            "value, or declare the parameter a `Constexpr`",
            item.place,
            (
                *_declared(item),
                *((Related(_at(item.around, item.own), "the `Constexpr`"),) if item.around and item.own else ()),
            ),
            _wrapped(tree, parameter, target.body, item.call.body, item.expr),
            (target.title,),
        )
        return
    if item.device == "raw" and rewrites_blocks(tree):
        yield Diagnostic(
            f"`{item.text}` is the variable of a GPU loop, not a FlyDSL value: it raises `TypeError`; write "
            f"`fx.Int32({item.text})`",
            item.place,
            _declared(item),
            ops=(target.title,),
        )
        return
    yield from _other_type(tree, item)


def _other_type(tree: FlyTree, item: Argument) -> Iterator[Diagnostic]:
    """Yield a finding on an argument of another FlyDSL type, which raises if the body reads an attribute that it lacks."""
    types, target, parameter = clash(item), item.call.target, item.parameter
    if types is None:
        return
    given, declared = types
    attribute = lacking(tree, target, parameter, given)
    raises = f"`{parameter.name}.{attribute}` raises `AttributeError`" if attribute else ""
    own = (
        (Related(_at(item.around, item.own), f"`fx.{given}`"),)
        if item.around is not None and item.own is not None
        else ()
    )
    yield Diagnostic(
        f"`{item.text}` is `fx.{given}`, and `{target.name}` takes `{parameter.name}` as `fx.{declared}`; annotations are not "
        f"enforced, so {raises or f'the function works with `fx.{given}`'}",
        item.place,
        (*_declared(item), *own),
        ops=(target.title,),
        severity=Severity.ERROR if raises else Severity.WARNING,
    )


def _wrapped(tree: FlyTree, parameter: Parameter, written: Body, body: Body, expr: Expr) -> Fix | None:
    """Return the fix that converts a constant to the parameter's type, if that type has a name at the constant's place."""
    annotation = parameter.param.annotation
    if parameter.kind is not Kind.NUMBER or annotation is None or annotation.kind != "name":
        return None
    name = annotation.text
    if expr.kind != "const" or isinstance(expr.value, str | None) or not tree.names.full(body, name):
        return None
    if tree.names.full(body, name) != tree.names.full(written.parent or written, name):
        return None
    if isinstance(expr.value, float) and "Float" not in parameter.dsl:
        return None
    text = f"{name}({body.file.text(expr)})"
    return Fix(f"write `{text}`", (FileEdit(body.file.path, Edit(expr.span, text)),))


def _to_launcher(tree: FlyTree, item: Argument) -> Iterator[Diagnostic]:
    parameter, target = item.parameter, item.call.target
    if item.around is not None and Kind.NUMBER not in (parameter.kind, item.own.kind if item.own else None):
        yield from _other_type(tree, item)
    no_stream = what_is_no_stream(tree, item) if parameter.kind is Kind.STREAM and _is_host(tree, item.call) else ""
    if no_stream:
        message = f"`{target.name}` takes `{parameter.name}` as a stream, and {no_stream}; the launch raises"
        yield Diagnostic(message, item.place, _declared(item), ops=(target.title,))
    if parameter.kind not in (Kind.TENSOR, Kind.NUMBER) or not _is_host(tree, item.call):
        return
    value, what = item.value, what_is_unfit(tree, item)
    if what and (what == "`None`" or tree.contract.surely(Era.SPLIT, Era.CURRENT)):
        yield Diagnostic(
            f"`{target.name}` takes `{parameter.name}` as `fx.{parameter.dsl}`, which cannot be {what}: it raises `TypeError` "
            "or `ValueError`",
            item.place,
            _declared(item),
            ops=(target.title,),
        )
    elif isinstance(value.value, float) and "nt" in parameter.dsl:
        yield Diagnostic(
            f"`{target.name}` takes `{parameter.name}` as `fx.{parameter.dsl}`, so the fraction of `{item.text}` is lost",
            item.place,
            _declared(item),
            ops=(target.title,),
            severity=Severity.WARNING,
        )
    elif parameter.kind is Kind.TENSOR and is_address(tree, item.call.body, value):
        yield Diagnostic(
            f"`{target.name}` takes `{parameter.name}` as `fx.Tensor`, and `{item.text}` is an address, which becomes an "
            "`fx.Int32`: pass the tensor",
            item.place,
            _declared(item),
            ops=(target.title,),
        )
