"""Names and schemas in the strings of C++ definitions."""

from __future__ import annotations

import re

from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_string import ParsedSchema, parse_schema
from opschema_cli.source.cpp_strings import Literal
from opschema_cli.source.resolution import Unresolved
from opschema_rules.torchlib.cpp_facts import CppArgument

OPERATOR = re.compile(r"(?:\w+::)?\w+(?:\.\w+)?", re.ASCII)
"""The name of an operator, with or without its namespace and overload."""

NOT_TEXT = Unresolved("the schema is not a string literal")


def schema_text(
    text: Literal, argument: CppArgument
) -> tuple[str | None, OperatorSchema | Unresolved, ParsedSchema | None]:
    """The name of a definition, its schema, and the schema as it was parsed."""
    name = text.value.partition("(")[0].strip()
    whole = "(" in text.value
    if not OPERATOR.fullmatch(name) or (argument.partial and not whole):
        return None, NOT_TEXT, None
    if argument.partial:
        return name, Unresolved("a macro is part of the schema"), None
    if not whole:
        return name, Unresolved("torch takes the schema from the C++ function"), None
    parsed = parse_schema(text.value)
    return name, parsed.schema or Unresolved("the schema cannot be read"), parsed
