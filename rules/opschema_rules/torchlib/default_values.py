"""Defaults as a schema's type reads them, and as Python text that means the same.

torch's parser makes ``[1, 1]`` of ``int[2] k=1``, a float of ``float x=1`` and dtypes of their other names (probed on 2.13); the
dispatcher compares what is passed with that.
"""

from __future__ import annotations

import ast
import re

from opschema_cli.schema import dtypes
from opschema_cli.schema.operator_schema import Argument, SchemaType
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Param
from opschema_cli.source.text import Span
from opschema_rules.torchlib.model import Operator

_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
"""A number that torch's parser and Python read alike: no ``0x10``, which is 0 to torch, and no ``1_000``."""

_ENUMERATIONS = frozenset({"ScalarType", "Layout", "MemoryFormat"})
"""Types whose values a schema may also write as numbers."""


def written_default(operator: Operator, argument: Argument) -> Folded | None:
    """Return the value of a default in a schema string; None if there is none, or it is not known."""
    text = argument.default
    if text is None or not _is_schema_text(operator):
        return None
    if argument.type.base == "ScalarType" and text.isidentifier() and text != "None":
        return Folded(symbol=f"torch.{text}")
    return Folded(ast.literal_eval(text)) if _is_literal(text) and _reads_alike(text) else None


def _is_schema_text(operator: Operator) -> bool:
    return operator.definition.explicit or operator.definition.api == "cpp"


def read_as(type_: SchemaType, found: Folded) -> Folded | None:
    """Return a default as an argument of a type gets it; None if that is not known."""
    if found.symbol:
        return Folded(symbol="torch." + dtypes.canonical(found.symbol.removeprefix("torch.")))
    inner = type_.inner if type_.optional and type_.inner is not None else type_
    value = found.value
    if inner.base in _ENUMERATIONS and isinstance(value, int):
        return None
    if not inner.is_list or value is None:
        return found
    if not isinstance(value, list | tuple):
        if inner.size is None or type_.optional:  # of `int[2]?` torch makes no list
            return None
        value = [value] * inner.size
    return Folded(list(value))


def declared_value(operator: Operator, argument: Argument) -> Folded | None:
    """Return the value of an argument's default in the schema; None if there is none, or it is not known."""
    function = operator.definition.function
    if _is_schema_text(operator):
        found = written_default(operator, argument)
        return None if found is None else read_as(argument.type, found)
    param = function.function.param(argument.name) if function is not None and function.function is not None else None
    return None if function is None or param is None else value_of(operator, argument, function, param)


def value_of(operator: Operator, argument: Argument, function: Body, param: Param) -> Folded | None:
    """Return the value of the default of an argument's parameter; None if there is none, or it is not known."""
    if param.default is None:
        return None
    found = operator.tree.evaluator.fold(function.parent or function.file, param.default)
    return read_as(argument.type, found) if isinstance(found, Folded) else None


def is_same_default(operator: Operator, argument: Argument, function: Body, param: Param) -> bool:
    """Whether a parameter is known to have the schema's default."""
    ours = value_of(operator, argument, function, param)
    return ours is not None and ours == declared_value(operator, argument)


def default_text(operator: Operator, argument: Argument, function: Body, at: int) -> str | None:
    """Return an argument's default as Python text that has the same meaning at a place of a function's file; None if that is not
    certain.
    """
    if argument.default is None:
        return None
    if not _is_schema_text(operator):
        return _copied(operator, argument, function, at)
    written = written_default(operator, argument)
    found = read_as(argument.type, written) if written is not None else None
    return None if found is None or found.symbol else _spelled(argument.type, found.value)


def _copied(operator: Operator, argument: Argument, function: Body, at: int) -> str | None:
    """Return the default in the operator's own function: a literal, or its text if it precedes the place in the same scope."""
    own, span = operator.definition.function, argument.default_span
    text = own.file.text(span) if own is not None and span is not None else argument.default or ""
    if _is_literal(text):
        return text
    if own is not None and span is not None and own.parent is function.parent and span.end < at:
        return text
    return argument.default if _is_literal(argument.default or "") else None


def _spelled(type_: SchemaType, value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_spelled(type_, item) for item in value)}]"
    whole = isinstance(value, int) and not isinstance(value, bool) and type_.base == "float"
    return f"{value}.0" if whole else repr(value)


def _is_literal(text: str) -> bool:
    """Whether a text is a number, a string, ``None``, ``True`` or ``False``, or a list of these."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    items = value if isinstance(value, list | tuple) else [value]
    return all(item is None or isinstance(item, int | float | str) for item in items)


def _reads_alike(text: str) -> bool:
    """Whether torch's parser reads a literal as Python does."""
    if text[:1] in "\"'":
        return True
    parts = [part.strip() for part in text.strip("[] ").split(",")]
    return all(part in ("", "None", "True", "False") or _NUMBER.fullmatch(part) for part in parts)


def default_span(text: str, head_end: int, full_end: int) -> Span:
    """The span of a parameter's default, brackets included; ``head_end`` ends its name and annotation."""
    match = re.compile(r"[^=]*=\s*").match(text, head_end, full_end)
    return Span(match.end() if match is not None else head_end, full_end)
