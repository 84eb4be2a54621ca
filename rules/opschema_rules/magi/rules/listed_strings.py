"""Strings that a ``Literal`` or an enumeration does not list."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.statements import all_statements, own_expressions
from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.python import Statement
from opschema_rules.magi.dataclasses import Field
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.passed import meant_calls, passed
from opschema_rules.magi.registrations import Written
from opschema_rules.magi.reporting import called, is_sound, lowers, registered, type_place
from opschema_rules.magi.rules.strings import is_written
from opschema_rules.magi.signature import Leaf


@rule("MAG308", "literal-value", severity="warning")
def literal_value(op: MagiOp) -> Iterator[Diagnostic]:
    """A string that the `Literal` does not list: one that a call passes, a default, or one that the body compares with.

    The decorator turns a `Literal` into `str`, so nothing checks the value: the op accepts any string. Type checkers do not
    report a call, as the op's type is lost. A comparison with another string holds for none of the values; the strings of an
    enumeration are compared as well. Names that the body assigns are left out, and so are `assert` and an `if` that raises.

    Bad:

    ```python
    @magi_register_custom_op("kit::pad")
    def pad(x: Tensor, side: Literal["left", "right"]) -> Tensor:
        return x + 1 if side == "left" else x * 2


    def padded(x):
        return pad(x, "Left")
    ```

    Bad (a comparison and a default):

    ```python
    @magi_register_custom_op("kit::pad")
    def pad(x: Tensor, side: Literal["left", "right"] = "Left") -> Tensor:
        return x + 1 if side == "rigth" else x * 2
    ```

    Good:

    ```python
    @magi_register_custom_op("kit::pad")
    def pad(x: Tensor, side: Literal["left", "right"]) -> Tensor:
        return x + 1 if side == "left" else x * 2


    def padded(x, side):
        return pad(pad(x, "left"), side)
    ```
    """
    if not is_sound(op) or not lowers(op) or op.lowering.problems:
        return
    for leaf in op.lowering.leaves:
        listed = _listed(leaf)
        if listed and leaf.enum is None:
            for item in meant_calls(op):
                yield from _outside(op, leaf, passed(op, item, leaf), listed)
            yield from _default(op, leaf, listed)
        if listed and not is_written(op, leaf):
            yield from _compared(op, leaf, listed)


def _listed(leaf: Leaf) -> frozenset[str]:
    """Return the strings of a `Literal` or an enumeration; empty if they are not all known."""
    values: list[object] = []
    if leaf.enum is not None:
        values += [item.value.value if item.value is not None else None for item in leaf.enum.members]
    elif leaf.type is not None and leaf.type.kind == "literal":
        values += leaf.type.values or ()
    texts = [value for value in values if isinstance(value, str)]
    return frozenset(texts) if len(texts) == len(values) else frozenset()


def _default(op: MagiOp, leaf: Leaf, listed: frozenset[str]) -> Iterator[Diagnostic]:
    source, body = leaf.source, op.body
    if isinstance(source, Field):
        body = source.value_body or source.body
    value = source.default
    if value is not None and isinstance(value.value, str) and value.kind == "const" and value.value not in listed:
        yield Diagnostic(
            f"{called(leaf)} defaults to {value.value!r}, not one of `{leaf.type}`: nothing checks it",
            body.at(value),
            (Related(type_place(leaf), "its type"),),
            ops=(op.title,),
        )


def _compared(op: MagiOp, leaf: Leaf, listed: frozenset[str]) -> Iterator[Diagnostic]:
    name = ".".join(leaf.path)
    asking = (item for item in all_statements(op.body.statements) if not _refuses(item))
    for expr in (part for item in asking for part in own_expressions(item)):
        if expr.kind != "compare" or expr.text not in _COMPARISONS or len(expr.items) != 2:
            continue
        sides = [side for side in expr.items if not (side.kind == "name" and side.text == name)]
        if len(sides) != 1:
            continue
        values = sides if expr.text in ("==", "!=") else sides[0].elements or ()
        for value in values:
            if value.kind == "const" and isinstance(value.value, str) and value.value not in listed:
                kind = f"a value of `{leaf.enum.ref.name}`" if leaf.enum is not None else f"one of `{leaf.type}`"
                yield Diagnostic(
                    f"`{name}` is compared with {value.value!r}, which is not {kind}",
                    op.body.at(value),
                    (Related(type_place(leaf), "its type"),),
                    ops=(op.title,),
                )


def _refuses(item: Statement) -> bool:
    """Whether a statement checks an argument: an ``assert``, or an ``if`` that raises."""
    return item.kind == "assert" or any(inner.kind == "raise" for block in item.blocks for inner in block)


_COMPARISONS = ("==", "!=", "in", "not-in")


def _outside(op: MagiOp, leaf: Leaf, value: Written | None, listed: frozenset[str]) -> Iterator[Diagnostic]:
    found = op.tree.evaluator.texts(value.body, value.expr) if value is not None else None
    if value is not None and found and not found & listed:
        given = " or ".join(repr(item) for item in sorted(found))
        yield Diagnostic(
            f"`{'.'.join(leaf.path)}` of `{op.title}` is {given} here, not one of `{leaf.type}`: nothing checks it",
            value.place,
            (Related(type_place(leaf), "its type"), *registered(op)),
            ops=(op.title,),
        )
