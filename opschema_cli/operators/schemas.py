"""Operator schemas of PyTorch as parts of the table."""

from __future__ import annotations

from collections.abc import Callable

from opschema_cli.operators.model import Argument, Return
from opschema_cli.schema.operator_schema import AliasInfo, OperatorSchema
from opschema_cli.schema.operator_schema import Argument as SchemaArgument
from opschema_cli.schema.operator_schema import Return as SchemaReturn
from opschema_cli.source.text import Place

UNKNOWN = "its type is not known"


def arguments_of(
    schema: OperatorSchema, place: Callable[[SchemaArgument], Place | None] = lambda _: None
) -> tuple[Argument, ...]:
    """The arguments of a schema, each at its ``place``; a type without a name is not known."""
    return tuple(_argument(item, place(item)) for item in schema.arguments)


def returns_of(
    schema: OperatorSchema, place: Callable[[SchemaReturn], Place | None] = lambda _: None
) -> tuple[Return, ...]:
    """The returns of a schema, each at its ``place``."""
    return tuple(
        Return(item.name or "", _type(item), _alias(item.alias), place=place(item), unresolved=_unresolved(item))
        for item in schema.returns
    )


def schema_text(schema: OperatorSchema) -> str:
    """Return arguments and returns in one line, with a question mark for an unknown type."""
    arguments: list[str] = []
    for item in schema.arguments:
        if item.kwarg_only and "*" not in arguments:
            arguments.append("*")
        arguments.append(_text(item))
    arguments += ["..."] if schema.vararg else []
    returns = [str(item) if item.type.base else "?" for item in schema.returns] + (["..."] if schema.varret else [])
    joined = ", ".join(returns)
    return f"({', '.join(arguments)}) -> {joined if len(returns) == 1 and joined[0] != '(' else f'({joined})'}"


def _argument(item: SchemaArgument, place: Place | None) -> Argument:
    return Argument(
        item.name,
        _type(item),
        "kwonly" if item.kwarg_only else "normal",
        default=item.default,
        optional=item.type.optional,
        mutated=item.is_write,
        alias=_alias(item.alias),
        text=_text(item),
        place=place,
        unresolved=_unresolved(item),
    )


def _text(item: SchemaArgument) -> str:
    return str(item) if item.type.base else f"? {item.name}"


def _type(item: SchemaArgument | SchemaReturn) -> str:
    return str(item.type) if item.type.base else ""


def _unresolved(item: SchemaArgument | SchemaReturn) -> str:
    return "" if item.type.base else UNKNOWN


def _alias(alias: AliasInfo | None) -> str:
    return str(alias).removeprefix("(").removesuffix(")") if alias is not None else ""
