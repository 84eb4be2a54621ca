"""Fixes of a function's parameters: the default or the parameter that is missing, the order of the schema."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence

from opschema_cli.lint.diagnostic import FileEdit, Fix
from opschema_cli.phrases import quoted
from opschema_cli.schema.operator_schema import Argument, OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Param
from opschema_cli.source.text import Edit, Span
from opschema_rules.torchlib.default_values import default_text
from opschema_rules.torchlib.delegation import passing_on
from opschema_rules.torchlib.model import Operator, Role
from opschema_rules.torchlib.passing import Mismatch
from opschema_rules.torchlib.spelling import optional_of

_IGNORES = (
    "the fake takes {} and does not use it: right only if nothing about the outputs but their values depends on it"
)
_REST = re.compile(r"(?:[ \t]*,[ \t]*(?:#[^\r\n]*)?)?(?=\r?\n)")
"""The rest of the line after a parameter at its end, unless it contains a comment and no comma."""
_ADMITS_NONE = re.compile(r"\b(?:None|Optional|Any|object)\b")


def fix_of(operator: Operator, function: Body, item: Mismatch, skip: int, role: Role) -> Fix | None:
    """Return the edit that makes the function accept the arguments; None if the right text is not certain."""
    if item.kind == "no-default":
        return _defaults(operator, function, item)
    if item.kind in ("missing", "shifted"):
        return _taking(operator, function, item, skip, role)
    return _order(function, item) if item.kind == "reordered" else None


def _defaults(operator: Operator, function: Body, item: Mismatch) -> Fix | None:
    pairs = zip(item.arguments, item.params, strict=True)
    texts = [default_text(operator, argument, function, param.start) for argument, param in pairs]
    last = [param for param in function.params if param.kind in ("posonly", "normal") and param.default is None]
    later = [param for param in last if param.start > item.params[0].start and param not in item.params]
    if None in texts or (later and item.params[0].kind != "kwonly"):
        return None
    given = zip(item.params, texts, strict=True)
    edits = [edit for param, text in given for edit in _default_edits(operator, function, param, text or "")]
    title = f"give {quoted(param.name for param in item.params)} the schema's default"
    return Fix(title, tuple(FileEdit(function.file.path, edit) for edit in edits))


def _default_edits(operator: Operator, function: Body, param: Param, text: str) -> list[Edit]:
    """Return the edits that give a parameter a default, and with None a type that admits it, if one is certain to work."""
    if param.annotation is None:
        return [Edit(Span(param.full_end, param.full_end), f"={text}")]
    edits = [Edit(Span(param.full_end, param.full_end), f" = {text}")]
    written = function.file.text(param.annotation)
    if text == "None" and not _ADMITS_NONE.search(written):
        optional = optional_of(operator.tree, function.parent or function, written)
        edits += [Edit(param.annotation.span, optional)] if optional is not None else []
    return edits


def _taking(operator: Operator, function: Body, item: Mismatch, skip: int, role: Role) -> Fix | None:
    """Add the missing parameters, and pass them on: a function that accepts an argument without using it computes something else.

    Only a fake may ignore an argument, since most change values alone.
    """
    names = quoted(argument.name for argument in item.arguments)
    edits = _parameters(operator, function, item, skip)
    if not edits or any(_is_used(function, argument.name) for argument in item.arguments):
        return None
    further = passing_on(operator, function, item.arguments)
    if further is None and role != "fake":
        return None
    all_edits = tuple(FileEdit(function.file.path, edit) for edit in (*edits, *((further,) if further else ())))
    if further is not None:
        return Fix(f"take {names} as the schema does, and pass it on", all_edits)
    return Fix(f"take {names} as the schema does", all_edits, "unsafe", _IGNORES.format(names))


def _is_used(function: Body, name: str) -> bool:
    """Whether a function binds or reads a name, which a parameter would hide."""
    used = any(use.name.partition(".")[0] == name for scope in function.scope.walk() for use in scope.uses)
    return used or any(item.target == name for scope in function.scope.walk() for item in scope.assigns)


def _parameters(operator: Operator, function: Body, item: Mismatch, skip: int) -> list[Edit]:
    """Return edits that add the missing parameters, each after its predecessor in the schema; none unless all others are in that
    order.
    """
    schema = operator.definition.schema
    if not isinstance(schema, OperatorSchema):
        return []
    plain = [param for param in function.params if param.kind in ("posonly", "normal")][skip:]
    places = {argument.name: place for place, argument in enumerate(schema.positional)}
    missing = {argument.name for argument in item.arguments}
    if missing & {param.name for param in function.params} or not all(map(_can_be_added, item.arguments)):
        return []
    others = [name for name in places if name not in missing]
    if [param.name for param in plain] != others[: len(plain)]:
        return []
    edits: list[Edit] = []
    for argument in item.arguments:
        before = [param for param in plain if places[param.name] < places[argument.name]]
        text = _parameter_text(operator, argument, function, before[-1].end) if before else None
        if text is None:
            return []
        edits.append(_behind(function, before[-1], text))
    return _joined(edits)


def _can_be_added(argument: Argument) -> bool:
    """Whether an argument has a type that a schema can have, and a name that Python takes for a parameter."""
    return bool(argument.type.base) and not keyword.iskeyword(argument.name)


def _behind(function: Body, param: Param, text: str) -> Edit:
    """Return the edit that adds a parameter after another one, on a line of its own if that one has its own line."""
    source, end = function.file.source, param.full_end
    start = source.text.rfind("\n", 0, param.start) + 1
    indent = source.text[start : param.start]
    rest = _REST.match(source.text, end)
    if indent.strip() or rest is None:
        return Edit(Span(end, end), f", {text}")
    below = f"{source.newline}{indent}{text}"
    return Edit(Span(rest.end(), rest.end()), f"{below},") if rest[0] else Edit(Span(end, end), f",{below}")


def _joined(edits: Sequence[Edit]) -> list[Edit]:
    """Insertions at one place as one."""
    found: dict[Span, str] = {}
    for edit in edits:
        found[edit.span] = found.get(edit.span, "") + edit.replacement
    return [Edit(span, text) for span, text in found.items()]


def _parameter_text(operator: Operator, argument: Argument, function: Body, at: int) -> str | None:
    default = default_text(operator, argument, function, at)
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
    """Return the fix that puts the parameters in the schema's order, with annotations; None if a default would then precede a
    parameter without one.
    """
    by_name = {param.name: param for param in item.params}
    wanted = [by_name[argument.name] for argument in item.arguments]
    if any(param.default is not None for param in item.params):
        return None
    edits = [
        FileEdit(function.file.path, Edit(old.full_span, function.file.text(new.full_span)))
        for old, new in zip(item.params, wanted, strict=True)
    ]
    why = "code that calls the function itself, by position, passes its arguments in the old order"
    return Fix(f"take {quoted(param.name for param in wanted)} in the schema's order", tuple(edits), "unsafe", why)
