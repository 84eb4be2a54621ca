"""Fixes of a function's parameters: the default or the parameter that is missing, the order of the schema."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from opschema_cli.lint.diagnostic import FileEdit, Fix
from opschema_cli.schema.operator_schema import Argument, OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Param
from opschema_cli.source.text import Edit, Span
from opschema_rules.torchlib.model import Operator
from opschema_rules.torchlib.passing import Mismatch
from opschema_rules.torchlib.places import quoted


def fix_of(operator: Operator, function: Body, item: Mismatch, skip: int) -> Fix | None:
    """The edit that makes the function take what is passed; None where the right text is not certain."""
    if item.kind == "no-default":
        return _defaults(operator, function, item)
    if item.kind in ("missing", "shifted"):
        return _parameters(operator, function, item, skip)
    return _order(function, item) if item.kind == "reordered" else None


def default_of(operator: Operator, argument: Argument, function: Body) -> str | None:
    """An argument's default as Python text that means the same in the function's file; None when that is not sure."""
    if argument.default is None:
        return None
    definition = operator.definition
    if not definition.explicit and definition.function is not None and argument.default_span is not None:
        written = definition.function.file.text(argument.default_span)
        if is_literal(written) or definition.function.file.path == function.file.path:
            return written
    return argument.default if is_literal(argument.default) else None


def is_literal(text: str) -> bool:
    """Whether a text is a number, a string, ``None``, ``True`` or ``False``."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return value is None or isinstance(value, int | float | str)


def _defaults(operator: Operator, function: Body, item: Mismatch) -> Fix | None:
    texts = [default_of(operator, argument, function) for argument in item.arguments]
    last = [param for param in function.params if param.kind in ("posonly", "normal") and param.default is None]
    later = [param for param in last if param.start > item.params[0].start and param not in item.params]
    if None in texts or (later and item.params[0].kind != "kwonly"):
        return None
    edits = [_default_edit(param, text or "") for param, text in zip(item.params, texts, strict=True)]
    title = f"give {quoted(param.name for param in item.params)} the schema's default"
    return Fix(title, tuple(FileEdit(function.file.path, edit) for edit in edits))


def _default_edit(param: Param, text: str) -> Edit:
    return Edit(Span(param.full_end, param.full_end), f" = {text}" if param.annotation is not None else f"={text}")


def _parameters(operator: Operator, function: Body, item: Mismatch, skip: int) -> Fix | None:
    """The missing parameters, each behind the one before it in the schema; only where all others stand in that order."""
    schema = operator.definition.schema
    if not isinstance(schema, OperatorSchema):
        return None
    plain = [param for param in function.params if param.kind in ("posonly", "normal")][skip:]
    names = [argument.name for argument in schema.positional]
    others = [name for name in names if name not in {argument.name for argument in item.arguments}]
    if [param.name for param in plain] != others[: len(plain)]:
        return None
    edits: list[Edit] = []
    for argument in item.arguments:
        before = [param for param in plain if names.index(param.name) < names.index(argument.name)]
        text = _parameter_text(operator, argument, function)
        if text is None or not before:
            return None
        edits.append(Edit(Span(before[-1].full_end, before[-1].full_end), f", {text}"))
    title = f"take {quoted(argument.name for argument in item.arguments)} as the schema does"
    return Fix(title, tuple(FileEdit(function.file.path, edit) for edit in _joined(edits)))


def _joined(edits: Sequence[Edit]) -> list[Edit]:
    """Insertions at one place as one."""
    found: dict[Span, str] = {}
    for edit in edits:
        found[edit.span] = found.get(edit.span, "") + edit.replacement
    return [Edit(span, text) for span, text in found.items()]


def _parameter_text(operator: Operator, argument: Argument, function: Body) -> str | None:
    default = default_of(operator, argument, function)
    if argument.default is not None and default is None:
        return None
    declared = operator.definition.function
    annotated = any(param.annotation is not None for param in function.params)
    param = None if declared is None or declared.function is None else declared.function.param(argument.name)
    annotation = ""
    if annotated and param is not None and param.annotation is not None and declared is not None:
        annotation = f": {declared.file.text(param.annotation)}" if declared.file.path == function.file.path else ""
    if default is None:
        return argument.name + annotation
    return f"{argument.name}{annotation} = {default}" if annotation else f"{argument.name}={default}"


def _order(function: Body, item: Mismatch) -> Fix | None:
    """The parameters in the schema's order, annotations and all; not where a default would then stand before one without."""
    by_name = {param.name: param for param in item.params}
    wanted = [by_name[argument.name] for argument in item.arguments]
    if any(param.default is not None for param in item.params):
        return None
    edits = [
        FileEdit(function.file.path, Edit(old.full_span, function.file.text(new.full_span)))
        for old, new in zip(item.params, wanted, strict=True)
    ]
    why = "code that calls the function itself, by place, passes its arguments in the old order"
    return Fix(f"take {quoted(param.name for param in wanted)} in the schema's order", tuple(edits), "unsafe", why)
