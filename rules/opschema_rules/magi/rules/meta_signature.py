"""The parameters of ``infer_output_meta_fn``."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace as with_fields

from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Param
from opschema_rules.magi.as_torch import as_operator
from opschema_rules.magi.given import Lambda, Meta
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.proofs import CALLS
from opschema_rules.magi.reporting import (
    by_keyword,
    defined,
    is_known,
)
from opschema_rules.magi.rules.meta import is_judged
from opschema_rules.torchlib.rules.signatures import fake_signature


@rule("MAG323", "meta-signature", fixable="safe", proof=CALLS)
def meta_signature(op: MagiOp) -> Iterator[Diagnostic]:
    """A meta function that does not accept the arguments that it is called with.

    Where no parameter of the op is a dataclass, torch calls the meta function like a fake: by position, without trailing
    arguments that equal their defaults; its names do not matter, order and defaults do. With a dataclass it is called by
    name, with every original parameter of the op: the names must be the same.

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    def scale_meta(a, options):
        return torch.empty_like(a)


    @magi_register_custom_op("kit::scale", infer_output_meta_fn=scale_meta)
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Bad (no default, where the op has one):

    ```python
    def shift_meta(x, by):
        return torch.empty_like(x)


    @magi_register_custom_op("kit::shift", infer_output_meta_fn=shift_meta)
    def shift(x: Tensor, by: float = 1.0) -> Tensor:
        return x + by
    ```

    Bad:

    ```python
    @magi_register_custom_op("kit::pad", infer_output_meta_fn=lambda x: torch.empty_like(x))
    def pad(x: Tensor, size: int) -> Tensor:
        return x + size
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    def scale_meta(config, x, **more):
        return torch.empty_like(x)


    @magi_register_custom_op("kit::scale", infer_output_meta_fn=scale_meta)
    def scale(x: Tensor, config: Config, bias: float = 0.0) -> Tensor:
        return x * config.scale + bias


    @magi_register_custom_op("kit::pad", infer_output_meta_fn=lambda input, n: torch.empty_like(input))
    def pad(x: Tensor, size: int) -> Tensor:
        return x + size
    ```
    """
    meta = op.meta
    if not is_judged(op) or not isinstance(meta, Meta) or meta.function is None or not is_known(op):
        return
    if isinstance(meta.function, Lambda):
        yield from _lambda(op, meta.function)
    elif by_keyword(op):
        yield from _named(op, meta.function)
    else:
        operator = as_operator(op)
        if operator is not None:
            for found in fake_signature(operator):
                yield with_fields(found, message=_worded(found.message))


def _worded(message: str) -> str:
    """A message of torch's rule in the words of this decorator."""
    words = {
        "the fake of": "the meta function of", "which the schema passes": "which is passed",
        "where the schema passes": "where the op passes", "the schema's default": "the op's default",
        "and the schema passes it": "and is passed",
    }  # fmt: skip
    for old, new in words.items():
        message = message.replace(old, new)
    return message


def _named(op: MagiOp, function: Body) -> Iterator[Diagnostic]:
    names = [item.name for item in op.params]
    taken = {item.name for item in function.params if item.kind in ("normal", "kwonly")}
    open_end = any(item.kind == "kwarg" for item in function.params)
    lost = [] if open_end else [name for name in names if name not in taken]
    more = [item for item in function.params if item.by_name and item.default is None and not _is_passed(item, names)]
    if (lost or more) and function.function is not None:
        told = [f"requires {quoted(item.name for item in more)}"] if more else []
        told += [f"does not take {quoted(lost)}"] if lost else []
        yield Diagnostic(
            f"the meta function of `{op.title}` {' and '.join(told)}: it is called by name with {quoted(names)}",
            function.at((more[0] if more else function.function).span),
            defined(op.body, "the op's parameters"),
            ops=(op.title,),
        )


def _is_passed(item: Param, names: list[str]) -> bool:
    return item.kind != "posonly" and item.name in names


def _lambda(op: MagiOp, function: Lambda) -> Iterator[Diagnostic]:
    """A lambda whose parameters are all plain and required."""
    head = function.written.body.file.text(function.written.expr).partition(":")[0]
    names = [item.name for item in op.params]
    if "*" in head or "=" in head or "/" in head or any(item.kind == "kwonly" for item in op.params):
        return
    by_name = by_keyword(op)
    wrong = set(function.params) != set(names) if by_name else len(function.params) != len(names)
    if wrong and (by_name or not any(item.default is not None for item in op.params)):
        how = "by name" if by_name else "by position"
        place: Place = function.written.place
        taken = quoted(function.params) or "nothing"
        message = f"the meta function of `{op.title}` takes {taken}, and is called {how} with {quoted(names)}"
        yield Diagnostic(message, place, defined(op.body, "the op's parameters"), ops=(op.title,))
