"""The pack's operators for the table: schema, function, fakes, kernels, gradient and callers of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from opschema_cli.operators import model as table
from opschema_cli.operators import schemas
from opschema_cli.operators.parameters import arguments_of
from opschema_cli.project import Project
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Unresolved
from opschema_cli.source.text import Place, Span
from opschema_rules.torchlib.cpp_signature import table_signature
from opschema_rules.torchlib.load import load
from opschema_rules.torchlib.model import AtenKernel, Definition, Operator, Registration

if TYPE_CHECKING:
    from opschema_rules.torchlib.detection import TorchlibOptions


def operators(project: Project, options: TorchlibOptions) -> Iterator[table.Operator]:
    """Yield the operators of the workspace, except those that another pack reads, and torch's own operators for which it has
    kernels.
    """
    subjects = load(project, options).subjects
    yield from (operator_of(item) for item in subjects if isinstance(item, Operator))
    kernels: dict[str, list[AtenKernel]] = {}
    for item in subjects:
        if isinstance(item, AtenKernel):
            kernels.setdefault(item.name, []).append(item)
    yield from map(_of_torch, kernels.values())


def _of_torch(kernels: Sequence[AtenKernel]) -> table.Operator:
    """Return an operator of torch itself with the tree's registrations for it."""
    found = kernels[0].tree.aten.operator(kernels[0].name)
    registrations = [item.registration for item in kernels]
    schema = found.schema if found is not None else Unresolved("torch has no operator of this name")
    return table.Operator(
        kernels[0].title,
        _stated(schema, found.place if found is not None else None),
        implementations=tuple(_implementation(item) for item in registrations if item.role != "fallthrough"),
        registrations=tuple(map(_registration, registrations)),
    )


def operator_of(operator: Operator) -> table.Operator:
    """One operator of torch.library."""
    names = sorted(operator.names or ())
    definition = operator.definition
    return table.Operator(
        operator.title,
        _declaration(definition),
        aliases=tuple(names[1:]),
        implementations=(*_function(definition), *map(_implementation, _implementing(operator))),
        registrations=(_definition(definition), *map(_registration, operator.registrations)),
        uses=tuple(table.Use("call", call.place) for call in operator.calls),
        details=tuple(_details(operator)),
        unresolved=tuple(_gaps(operator)),
    )


def _declaration(definition: Definition) -> table.Declaration:
    tags = tuple(map(table.Tag, sorted(definition.tags or ())))
    return _stated(definition.schema, definition.written, tags, _argument_places(definition))


def _stated(
    schema: OperatorSchema | Unresolved,
    written: Place | None,
    tags: tuple[table.Tag, ...] = (),
    places: Mapping[str, Place] | None = None,
) -> table.Declaration:
    if isinstance(schema, Unresolved):
        return table.Declaration("schema", written, None, None, tags, unresolved=schema.reason)
    arguments = schemas.arguments_of(schema, lambda item: (places or {}).get(item.name))
    text = schemas.schema_text(schema)
    return table.Declaration("schema", written, arguments, schemas.returns_of(schema), tags, text)


def _argument_places(definition: Definition) -> dict[str, Place]:
    """The places of arguments: the parameters of a Python function."""
    function = definition.function
    if definition.explicit or function is None:
        return {}
    return {item.name: function.at(item.span) for item in function.params}


def _definition(definition: Definition) -> table.Registration:
    keys = _keys(definition.device_types)
    return table.Registration(
        "definition", definition.api, definition.place, keys, definition.helper, definition.conditional
    )


def _function(definition: Definition) -> Iterator[table.Implementation]:
    """The function under a decorator, which is the operator's kernel."""
    body = definition.function
    if body is not None:
        keys = _keys(definition.device_types)
        yield _implemented("kernel", body, definition.place, keys, conditional=definition.conditional)


def _implementing(operator: Operator) -> Iterator[Registration]:
    return (item for item in operator.registrations if item.role != "fallthrough")


def _implementation(item: Registration) -> table.Implementation:
    if isinstance(item.function, Body):
        return _implemented(item.role, item.function, item.place, _keys(item.keys), conditional=item.conditional)
    followed = item.function if item.language == "python" else item.kernels
    reason = followed.reason if isinstance(followed, Unresolved) else ""
    signatures = item.kernels if isinstance(item.kernels, tuple) else ()
    return table.Implementation(
        item.role,
        item.symbol,
        keys=_keys(item.keys),
        signatures=tuple(map(table_signature, signatures)),
        registered=item.place,
        conditional=item.conditional,
        unresolved=reason,
    )


def _implemented(
    role: table.Role, body: Body, registered: Place, keys: tuple[str, ...] | None, *, conditional: bool
) -> table.Implementation:
    function = body.function
    name = function.name if function is not None else "lambda"
    place = body.at(function.span if function is not None else Span(0, 0))
    # A gradient, a batching rule and a context get more than the operator's arguments.
    compared = role in ("kernel", "fake")
    signature = table.Signature(name, place, arguments_of(body.file, body.params), by="position")
    return table.Implementation(
        role, name, place, keys, (signature,) if compared else (), registered, conditional=conditional
    )


def _registration(item: Registration) -> table.Registration:
    return table.Registration(item.role, item.form, item.place, _keys(item.keys), item.helper, item.conditional)


def _keys(keys: frozenset[str] | None) -> tuple[str, ...] | None:
    return tuple(sorted(keys)) if keys is not None else None


def _details(operator: Operator) -> Iterator[table.Detail]:
    for problem in operator.definition.problems:
        yield table.Detail("refused", f"{problem.kind} {problem.name or problem.written}", problem.place)
    names = len(operator.names or ())
    if names > 1:
        yield table.Detail("factory", f"one of {names} operators that one factory makes")


def _gaps(operator: Operator) -> Iterator[table.Gap]:
    if operator.names is None:
        yield table.Gap("name", "its qualified name is not known", operator.definition.name_place)
    if not operator.complete:
        yield table.Gap("registrations", "more may be registered for it than can be followed")
