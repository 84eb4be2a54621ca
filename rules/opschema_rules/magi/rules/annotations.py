"""Annotations that torch's schemas have no type for."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.namespaces import postponed
from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.reporting import (
    annotation_place,
    called,
    is_plain,
    is_sound,
    problems_of,
    refusals,
    registered,
    taken,
    type_place,
)
from opschema_rules.magi.signature import Branch, Leaf, ProblemKind
from opschema_rules.magi.types_of_torch import dataclass_of, is_listed, is_returned, is_taken
from opschema_rules.torchlib.annotations import Annotations
from opschema_rules.torchlib.inference import Inferrer, Mutates
from opschema_rules.torchlib.type_table import known_releases


@rule("MAG303", "annotation")
def annotation(op: MagiOp) -> Iterator[Diagnostic]:
    """A parameter, a field or a return value without an annotation, or with one that torch schemas do not support.

    The op's schema is made from the annotations, so every parameter and the return value need one, and `*args` and
    `**kwargs` have no place in it. A field whose annotation is a string with names that its module does not have is
    rejected, too, as is a dataclass that contains itself; and, before commit e68e0b0, every dataclass. A type that torch
    does not know, such as `dict`, `Any` or `nn.Module`, raises as well: take the tensors of a module one by one. So
    does a `Literal` or an enumeration inside another type, such as `Optional[Literal["left"]]`: only a bare one becomes `str`.

    Bad:

    ```python
    @magi_register_custom_op("kit::add")
    def add(x, *more: Tensor):
        return x + more[0]
    ```

    Bad (a type that no schema has):

    ```python
    from typing import Any


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, options: Any, names: list[str]) -> Tensor:
        return x * options.scale
    ```

    Bad (a module in a field):

    ```python
    from torch import nn


    class Gate(nn.Module):
        pass


    @dataclass(frozen=True)
    class Config:
        gate: Gate
        norm: Optional[nn.Module] = None


    @magi_register_custom_op("kit::gate")
    def gate(x: Tensor, config: Config) -> Tensor:
        return x * 2
    ```

    Bad (a dataclass, before they were supported):

    ```toml
    [magi]
    magi = "plain"
    ```

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Good:

    ```python
    from collections.abc import Sequence


    @magi_register_custom_op("kit::add")
    def add(x: "Tensor", sizes: Sequence[int], more: list[Tensor], other: Optional[Tensor] = None) -> Tensor:
        return x + more[0]
    ```
    """
    words: dict[ProblemKind, str] = {
        "variadic": "is variadic, and a schema has no such parameters: write them out",
        "no-annotation": "has no annotation, and the schema needs its type",
        "no-return": "has no annotation, and the schema needs its type",
        "text-field": "has an annotation that stays a string: the module of its class does not have the names in it",
        "recursive": "is a dataclass that holds itself: it is flattened without an end",
    }
    for problem in problems_of(op, "variadic", "no-annotation", "no-return", "text-field", "recursive"):
        yield Diagnostic(
            f"{problem.where} {words[problem.kind]}", annotation_place(op, problem), registered(op), ops=(op.title,)
        )
    if is_sound(op):
        yield from _unknown_types(op)
        yield from _plain_dataclasses(op)


def _unknown_types(op: MagiOp) -> Iterator[Diagnostic]:
    known = {problem.place for problem in refusals(op)}
    for leaf in op.lowering.leaves:
        form = leaf.lowered_type
        if form is not None and leaf.place not in known and not is_listed(form.origin) and is_taken(op, form) is False:
            reason = "torch's schemas have no such type"
            if form.kind == "text":
                reason = "that names nothing where the op is registered: it stays a string"
            message = f"{called(leaf)} is `{form}`, and {reason}"
            yield Diagnostic(message, type_place(leaf), taken(op, leaf) or registered(op), ops=(op.title,))
    returns, function = op.returns, op.body.function
    if returns is not None and function is not None and function.returns is not None and is_returned(returns) is False:
        message = f"`{op.function_name}()` returns `{returns}`, and torch's schemas have no such type of return value"
        yield Diagnostic(message, op.body.at(function.returns), registered(op), ops=(op.title,))
    if is_plain(op):
        yield from _unresolved(op)


def _unresolved(op: MagiOp) -> Iterator[Diagnostic]:
    """Further refusals of torch, which resolves annotations in another way, where it gets them unchanged."""
    nodes = [node for node in op.lowering.nodes if isinstance(node, Leaf)]
    typed = [(node, node.type) for node in nodes if node.type is not None]
    judged = {type_place(node): is_taken(op, form) for node, form in typed if node.enum is None}
    judged.update((type_place(node), True) for node, _ in typed if node.enum is not None and _is_quoted_twice(op, node))
    inferrer = Inferrer(Annotations(op.tree.evaluator), known_releases()[-1])
    for problem in inferrer.infer(op.body, Mutates({})).problems:
        if problem.kind in ("type", "string-annotation") and judged.get(problem.place):
            message = (
                f"parameter `{problem.name}` is `{problem.written}` as torch gets it, and its schemas have no such type"
            )
            yield Diagnostic(message, problem.place, registered(op), ops=(op.title,))
        elif problem.kind in ("return-type", "string-annotation") and not problem.name and _is_returned(op):
            message = f"`{op.function_name}()` returns `{problem.written}` as torch gets it, and its schemas have no such type"
            yield Diagnostic(message, problem.place, registered(op), ops=(op.title,))


def _is_returned(op: MagiOp) -> bool:
    return op.returns is not None and is_returned(op.returns) is True


def _is_quoted_twice(op: MagiOp, leaf: Leaf) -> bool:
    """Whether an annotation stays a string when the string that it is, is evaluated."""
    annotation = leaf.source.annotation
    return postponed(op.body.file) and annotation is not None and isinstance(annotation.value, str)


def _plain_dataclasses(op: MagiOp) -> Iterator[Diagnostic]:
    """Dataclasses as parameters where the decorator does not lower them."""
    for node in op.lowering.nodes if is_plain(op) else ():
        found = node.dataclass if isinstance(node, Branch) else dataclass_of(op, node.type)
        param = op.body.function.param(node.name) if op.body.function is not None else None
        if found is not None and param is not None and param.annotation is not None:
            yield Diagnostic(
                f"parameter `{node.name}` is the dataclass `{found.name}`: this MagiCompiler hands it to torch, which takes none",
                op.body.at(param.annotation),
                (Related(found.place, "the dataclass"),),
                ops=(op.title,),
            )
