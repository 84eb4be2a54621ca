"""Parameters that FlyDSL does not compile as they are written."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Edit
from opschema_rules.flydsl.annotations import is_number
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.contract import Era
from opschema_rules.flydsl.device_values import device_values, launches
from opschema_rules.flydsl.helpers import is_compiled
from opschema_rules.flydsl.model import FlyTree, Kind, Parameter, Traced
from opschema_rules.flydsl.number_types import NumberTypes
from opschema_rules.flydsl.proofs import TRACED
from opschema_rules.flydsl.usage import is_meant_to_fail

_NUMBERS = {"int": "Int32", "float": "Float32", "bool": "Boolean"}
"""FlyDSL's types for Python numbers."""

STRINGS_SINCE = Version("0.2.3")
"""The first release since 0.2.0 that accepts ``Constexpr[str]``; the earlier ones raise where the function is defined."""


@rule("FLY206", "python-annotation", fixable="safe", proof=TRACED, pure=True)
def python_annotation(file: FlyFile) -> Iterator[Diagnostic]:
    """A parameter of a traced function that is annotated as a plain Python value.

    The annotation says how an argument is compiled: `fx.Constexpr[int]` keeps it as a Python value, part of the cache key;
    `fx.Int32` makes it a run-time value. FlyDSL ignores `int`, `float` and `bool`: what is passed to a launcher becomes an
    `fx.Int32`, `fx.Float32` or `fx.Boolean`, which no `range`, no shape and no `if` of Python can use, and a kernel gets values of
    the types that its launch passes. From 0.2.3 on it warns. A `str`
    can only be passed as `fx.Constexpr[str]`, which 0.2.0 to 0.2.2 do not have; otherwise the call raises `TypeError`.

    A function under `@flyc.jit` is reported if it launches a kernel, is returned by the function around it or called by the
    module. A function that traced functions call is a plain function to them, with plain arguments.

    Bad:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, n: int):
        print(n)


    @flyc.jit
    def launch(A: fx.Tensor, n: int):
        scale(A, n).launch(grid=(1, 1, 1), block=(64, 1, 1))
    ```

    Bad:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, mode: str):
        print(mode)
    ```

    Good:

    ```python
    @flyc.jit
    def row(width: int):
        return width * 2


    @flyc.kernel
    def scale(A: fx.Tensor, n: fx.Int32, mode: fx.Constexpr[str]):
        print(row(128), mode)


    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        scale(A, n, "fast").launch(grid=(1, 1, 1), block=(64, 1, 1))
    ```
    """
    tree = file.tree
    for traced in tree.traced:
        for item in traced.call_parameters if traced.kind == "kernel" or is_compiled(tree, traced) else ():
            if item.kind == Kind.PYTHON and item.param.annotation is not None:
                yield from _judged(tree, traced, item, item.param.annotation)


def _judged(tree: FlyTree, traced: Traced, item: Parameter, annotation: Expr) -> Iterator[Diagnostic]:
    written = annotation.value if isinstance(annotation.value, str) else annotation.text
    place, prefix = traced.body.at(annotation), _prefix(tree, traced)
    if written in _NUMBERS:
        of_kernel = traced.kind == "kernel"
        known = NumberTypes(device_values(tree, traced)).of_launches(item.name) if of_kernel else _NUMBERS[written]
        made = f"{prefix or 'fx'}.{known if is_number(known) else _NUMBERS[written]}"
        becomes = (
            f"becomes `{made}`; annotate that,"
            if not of_kernel
            else f"keeps its type; annotate that, such as `{made}`,"
        )
        message = (
            f"`{item.name}` of `{traced.title}` is annotated `{written}`, which FlyDSL does not use: what is passed "
            f"{becomes} or `{prefix or 'fx'}.Constexpr[{written}]` for a constant"
        )
        edit = FileEdit(place.path, Edit(annotation.span, made))
        fix = Fix(f"annotate `{made}`, as which it is compiled", (edit,)) if prefix and is_number(known) else None
        yield Diagnostic(message, place, (), fix, ops=(traced.title,), severity=Severity.WARNING)
    elif written == "str" and tree.contract.surely(Era.SPLIT, Era.CURRENT):
        message = f"`{item.name}` of `{traced.title}` is annotated `str`, which no call can pass at run time: "
        fix = None
        if any(release < STRINGS_SINCE for release in tree.contract.releases):
            message += f"capture it instead, as `Constexpr[str]` is only in {STRINGS_SINCE} and later"
        else:
            message += f"annotate `{prefix or 'fx'}.Constexpr[str]`"
            edit = FileEdit(place.path, Edit(annotation.span, f"{prefix}.Constexpr[str]"))
            fix = Fix(f"annotate `{prefix}.Constexpr[str]`", (edit,)) if prefix else None
        yield Diagnostic(message, place, (), fix, ops=(traced.title,))


def _prefix(tree: FlyTree, traced: Traced) -> str:
    """Return the file's name for ``flydsl.expr``; empty if it is not imported."""
    for item in traced.body.file.body.imports:
        module = ".".join(filter(None, [item.module, item.attr]))
        if module == "flydsl.expr" and not item.level and "." not in item.name and item.name != "flydsl":
            return item.name
    return ""


@rule("FLY242", "variadic-parameter", pure=True)
def variadic_parameter(file: FlyFile) -> Iterator[Diagnostic]:
    """A parameter of a traced function that takes any number of arguments.

    FlyDSL passes each parameter of a kernel by its name, and makes a GPU value of each parameter of a launcher. So `*rest`
    of a kernel or a launcher raises `TypeError` at every call, even if nothing is passed for it, and so does `**rest` of a
    launcher. Functions that are called while others are traced are plain functions, which may have such parameters.

    Bad:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, *rest):
        A[0] = 1


    @flyc.jit
    def launch(A: fx.Tensor, **options):
        scale(A).launch(grid=(1,), block=(64,))
    ```

    Good:

    ```python
    def total(*values):
        return sum(values)


    @flyc.jit
    def rows(*values):
        return len(values)


    @flyc.kernel
    def scale(A: fx.Tensor, **rest):
        A[0] = total(1, 2, rows(3, 4))
    ```
    """
    tree = file.tree
    for traced in tree.traced:
        taking = [item.param for item in traced.call_parameters if _takes_any(traced, item.param.kind)]
        if not taking or is_meant_to_fail(tree, traced.body) or (traced.kind == "jit" and not launches(tree, traced)):
            continue
        for param in taking:
            stars = "*" if param.kind == "vararg" else "**"
            message = (
                f"FlyDSL has no way to pass `{stars}{param.name}` of `{traced.title}`: every call raises `TypeError`"
            )
            yield Diagnostic(message, traced.body.at(param.full_span), ops=(traced.title,))


def _takes_any(traced: Traced, kind: str) -> bool:
    """Whether a parameter of that kind takes any number of arguments, which FlyDSL does not pass."""
    return kind == "vararg" or (kind == "kwarg" and traced.kind == "jit")
