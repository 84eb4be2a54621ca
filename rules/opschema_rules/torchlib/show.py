"""``opschema show ns::op``: an operator's schema beside its function, fakes, kernels and autograd, argument by argument."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from opschema_cli.lint.diagnostic import Place
from opschema_cli.lint.names import closest_names
from opschema_cli.lint.pack import Shown, ShowRow
from opschema_cli.project import Project
from opschema_cli.schema.operator_schema import Argument, OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Unresolved
from opschema_cli.source.python import Param
from opschema_rules.torchlib.model import Operator, Registration

if TYPE_CHECKING:
    from opschema_rules.torchlib.detection import TorchlibOptions


def show(project: Project, options: TorchlibOptions, name: str) -> Shown | Sequence[str]:
    """The operator of that name; the closest names when there is none."""
    from opschema_rules.torchlib.pack import read_tree

    tree = read_tree(project, options)
    found = [item for item in tree.operators if item.names is not None and name in item.names]
    if not found:
        return closest_names(name, {known for item in tree.operators for known in item.names or ()})
    operator = found[0]
    schema = operator.definition.schema
    text = f"unresolved: {schema.reason}" if isinstance(schema, Unresolved) else _signature(schema)
    return Shown(f"{name}{text}", list(_places(operator)), list(_rows(operator)), text=_notes(operator))


def _signature(schema: OperatorSchema) -> str:
    arguments: list[str] = []
    for item in schema.arguments:
        if item.kwarg_only and "*" not in arguments:
            arguments.append("*")
        arguments.append(str(item) if item.type.base else f"? {item.name}")
    returns = ", ".join(str(item) if item.type.base else "?" for item in schema.returns)
    return f"({', '.join(arguments)}) -> {returns if len(schema.returns) == 1 else f'({returns})'}"


def _places(operator: Operator) -> Iterator[tuple[str, str]]:
    yield operator.definition.api, _line(operator, operator.definition.place)
    for item in operator.registrations:
        keys = "" if not item.keys else f" ({', '.join(sorted(item.keys))})"
        doubt = ", perhaps" if item.conditional else ""
        yield item.role, f"{_line(operator, item.place)}{keys}{doubt}{_why(item)}"
    for call in operator.calls:
        yield "call", _line(operator, call.place)


def _why(item: Registration) -> str:
    return f": {item.function.reason}" if isinstance(item.function, Unresolved) else ""


def _line(operator: Operator, place: Place) -> str:
    source = operator.tree.project.source(place.path)
    return place.path if source is None else f"{place.path}:{source.position(place.span.start).line}"


def _rows(operator: Operator) -> Iterator[ShowRow]:
    schema = operator.definition.schema
    arguments = schema.arguments if isinstance(schema, OperatorSchema) else ()
    sides: list[tuple[str, object]] = [
        (item.role, item.function) for item in operator.registrations if item.role in ("fake", "kernel")
    ]
    if operator.definition.function is not None:
        sides.insert(0, ("function", operator.definition.function))
    for role, body in sides:
        if isinstance(body, Body):
            yield from _compared(role, arguments, body)


def _compared(role: str, arguments: Sequence[Argument], body: Body) -> Iterator[ShowRow]:
    """The parameters of a function in the places of the arguments that they are passed."""
    plain = [item for item in body.params if item.kind in ("posonly", "normal")]
    rest = next((item for item in body.params if item.kind == "vararg"), None)
    named = {item.name: item for item in body.params}
    used: set[str] = set()
    for index, argument in enumerate(arguments):
        place = plain[index] if index < len(plain) else rest
        param = named.get(argument.name) if argument.kwarg_only else place
        used.add(param.name if param is not None else "")
        note = "" if param is None or param.name == argument.name or not param.by_name else f"named `{param.name}`"
        yield ShowRow(argument.name, str(argument), f"{role}: {_written(body, param)}", note)
    for param in body.params:
        if param.name not in used and param.by_name:
            yield ShowRow(param.name, "-", f"{role}: {_written(body, param)}")


def _written(body: Body, param: Param | None) -> str:
    if param is None:
        return "absent"
    stars = {"vararg": "*", "kwarg": "**"}.get(param.kind, "")
    return stars + " ".join(body.file.text(param.full_span).split())


def _notes(operator: Operator) -> str:
    notes = [f"torch refuses: {item.kind} {item.name or item.written}" for item in operator.definition.problems]
    if operator.names is not None and len(operator.names) > 1:
        notes.append(f"one of {len(operator.names)} operators that one factory makes")
    if not operator.complete:
        notes.append("more may be registered for it than can be followed")
    return "\n".join(notes)
