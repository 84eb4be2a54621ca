"""Specs against the annotations of their parameters, and against the fields of their classes."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, listed
from opschema_cli.source.python import Expr
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.pypto.model import EntryParam, SpecEntry, SpecItem, SpecMisfit

_TORCH = {
    "FP32": "float32",
    "FP16": "float16",
    "BF16": "bfloat16",
    "INT64": "int64",
    "INT32": "int32",
    "INT16": "int16",
    "INT8": "int8",
    "UINT8": "uint8",
    "BOOL": "bool",
}
"""Types of pypto's language, with torch's names for them."""


@rule("PTO134", "spec-type", severity="warning")
def spec_type(entry: SpecEntry) -> Iterator[Diagnostic]:
    """A spec whose type or rank differs from the annotation of its parameter.

    A `@pl.jit` function is compiled for the tensors that it gets, so `TensorSpec("x", [8], torch.float16)` tests another kernel
    than the one that is declared with `pl.Tensor[[8], pl.FP32]`, and its golden function computes with another precision. With
    another number of dimensions a test runs other code, or fails. A `@pl.program` is compiled for its annotations, so that it
    reads the memory of such a tensor as another type.

    Types count that are written as `torch.float32` and `pl.FP32`, and ranks of lists without unpacked parts. Ranks are not compared
    where a spec reaches the function through a `@pl.jit.host` entry, which may take a tensor apart.

    Bad:

    ```python examples/scale.py
    import pypto.language as pl
    import torch
    from golden import TensorSpec, run_jit


    @pl.jit
    def scale(x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]]): ...


    run_jit(
        fn=scale,
        specs=[
            TensorSpec("x", [8], torch.bfloat16, init_value=torch.randn),
            TensorSpec("y", [8], torch.float32, is_output=True),
        ],
    )
    ```

    Good, the type is that of a constant:

    ```python examples/scale.py
    import pypto.language as pl
    import torch
    from golden import TensorSpec, run_jit

    KIND = pl.BF16


    @pl.jit
    def scale(x: pl.Tensor[[8], KIND], y: pl.Out[pl.Tensor[[8], pl.FP32]]): ...


    run_jit(
        fn=scale,
        specs=[
            TensorSpec("x", [8], torch.bfloat16, init_value=torch.randn),
            TensorSpec("y", [8], torch.float32, is_output=True),
        ],
    )
    ```
    """
    for param in entry.params:
        for spec in (item for item in param.specs if not item.is_scalar):
            yield from _types(entry, param, spec)
            if not entry.host and not param.hosts:
                yield from _ranks(entry, param, spec)


def _types(entry: SpecEntry, param: EntryParam, spec: SpecItem) -> Iterator[Diagnostic]:
    written = spec.call.argument("dtype", 2)
    owner, _, name = written.text.rpartition(".") if written is not None and written.kind == "name" else ("", "", "")
    annotation = param.param.annotation
    names = [part for part in annotation.walk() if part.kind == "name"] if annotation is not None else []
    declared = [part for part in names if part.text.startswith("pl.") and part.member in _TORCH]
    others = [part for part in names if "." not in part.text and part.text.isupper()]
    if written is None or owner != "torch" or name not in _TORCH.values() or len(declared) != 1:
        return
    if _TORCH[declared[0].member] != name and not _may_be_type(annotation, others):
        message = f"the spec `{spec.name}` has the type `{name}`, and `{entry.name}` declares `{declared[0].text}`"
        related = Related(entry.at(declared[0]), "declared here")
        yield Diagnostic(message, Place(spec.file.path, written.span), (related,), ops=(entry.name,))


def _may_be_type(annotation: Expr | None, names: list[Expr]) -> bool:
    """Whether a constant in an annotation, outside of its shape, may be the type."""
    shapes = [part for part in annotation.walk() if part.kind == "list"] if annotation is not None else []
    return any(not any(shape.start <= name.start < shape.end for shape in shapes) for name in names)


def _is_shape(annotation: Expr, shape: Expr) -> bool:
    """Whether a list is the written shape of a tensor, and not part of an expression."""
    for part in annotation.walk():
        if part.kind == "subscript" and part.items[0].text.endswith("Tensor"):
            index = part.items[1]
            if shape in (index, *(index.items if index.kind == "tuple" else ())):
                return True
    return False


def _ranks(entry: SpecEntry, param: EntryParam, spec: SpecItem) -> Iterator[Diagnostic]:
    written, annotation = spec.call.argument("shape", 1), param.param.annotation
    shapes = [part for part in annotation.walk() if part.kind == "list"] if annotation is not None else []
    if annotation is None or not all(_is_shape(annotation, item) for item in shapes):
        return
    declared, given = (
        shapes[0].elements if len(shapes) == 1 else None,
        written.elements if written is not None else None,
    )
    if written is not None and declared is not None and given is not None and len(declared) != len(given):
        message = (
            f"the spec `{spec.name}` has {count(len(given), 'dimension')}, and `{entry.name}` declares"
            f" {count(len(declared), 'dimension')}"
        )
        related = Related(entry.at(shapes[0]), "declared here")
        yield Diagnostic(message, Place(spec.file.path, written.span), (related,), ops=(entry.name,))


@rule("PTO136", "spec-argument")
def spec_argument(entry: SpecEntry) -> Iterator[Diagnostic]:
    """A spec with an argument that its class does not take, or without one that it needs.

    `TensorSpec(..., init_values=torch.randn)` raises a `TypeError` when the specs are built, which many examples do only after the
    entry was compiled.

    The arguments are compared with the fields of `TensorSpec` and `ScalarSpec` where these are dataclasses of the tree. Calls in
    files that expect errors are left alone.

    Bad:

    ```python golden/__init__.py
    from .spec import TensorSpec
    ```

    ```python golden/spec.py
    from dataclasses import dataclass


    @dataclass
    class TensorSpec:
        name: str
        shape: list[int]
        dtype: object
        init_value: object = None
        is_output: bool = False
    ```

    ```python examples/scale.py
    import pypto.language as pl
    import torch
    from golden import TensorSpec, run_jit


    @pl.jit
    def scale(x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]]): ...


    run_jit(
        fn=scale,
        specs=[
            TensorSpec("x", [8], torch.float32, init_values=torch.randn),
            TensorSpec("y", [8], torch.float32, is_output=True),
        ],
    )
    ```

    Good, the tree does not show the class:

    ```python examples/scale.py
    import pypto.language as pl
    import torch
    from golden import TensorSpec, run_jit


    @pl.jit
    def scale(x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]]): ...


    run_jit(
        fn=scale,
        specs=[
            TensorSpec("x", [8], torch.float32, init_values=torch.randn),
            TensorSpec("y", [8], torch.float32, is_output=True),
        ],
    )
    ```
    """
    for item in entry.misfits:
        yield Diagnostic(_misfit(item), item.place, ops=(entry.name,))


def _misfit(item: SpecMisfit) -> str:
    if item.fault == "missing":
        return f"`{item.cls}` needs an argument `{item.name}`"
    if item.fault == "surplus":
        return f"`{item.cls}` takes {count(len(item.known), 'argument')}, and this is one too many"
    if item.fault == "twice":
        return f"`{item.cls}` gets `{item.name}` twice"
    hint = did_you_mean(near_name(item.name, item.known, 0.6)) or f"; it takes {listed(item.known)}"
    return f"`{item.cls}` takes no `{item.name}`{hint}"
