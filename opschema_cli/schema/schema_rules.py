"""Constraints between the parts of a schema, in either dialect."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.schema.operator_schema import OperatorSchema, SchemaType
from opschema_cli.schema.schema_defaults import VALUES
from opschema_cli.schema.schema_tokens import SchemaError


def faults_of_schema(schema: OperatorSchema) -> list[SchemaError]:
    """Yield the errors of an entire schema, or of the part that could be parsed."""
    return [*_default_order(schema), *_duplicates(schema), *_aliased_values(schema)]


def _default_order(schema: OperatorSchema) -> Iterator[SchemaError]:
    """Yield the positional arguments without a default after one with a default. Torch allows this for lists."""
    before = ""
    for item in schema.positional:
        if item.default is not None:
            before = before or item.name
        elif before and not item.type.is_list:
            message = f"`{item.name}` has no default and follows `{before}`, which has one"
            yield SchemaError("default-order", message, item.span)


def _duplicates(schema: OperatorSchema) -> Iterator[SchemaError]:
    seen: set[str] = set()
    for item in schema.arguments:
        if item.name in seen:
            message = f"two arguments are called `{item.name}`"
            yield SchemaError("duplicate-argument", message, item.name_span, refused=False)
        seen.add(item.name)


def writes_a_value(of: SchemaType) -> bool:
    """Whether a number or a string is annotated as written. A list of them can be."""
    if of.annotation is None or not of.annotation.write or of.base not in VALUES:
        return False
    return any(part.alias is not None and not part.is_list for part in of.parts())


def _aliased_values(schema: OperatorSchema) -> Iterator[SchemaError]:
    """A number or a word cannot be written; torch aliases storages. (TorchScript's dictionaries do alias their keys.)"""
    for item in schema.slots:
        if writes_a_value(item.type):
            message = f"a value of type `{item.type}` cannot be written"
            yield SchemaError("alias-type", message, item.type_span, refused=False)
