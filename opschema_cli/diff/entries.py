"""The contract of an operator: the parts of its entry in the operator table that others depend on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from opschema_cli.operators.model import Argument, Implementation, Operator, Return, Role
from opschema_cli.source.python import ParamKind
from opschema_cli.source.text import Place

_KERNELS: tuple[Role, ...] = ("kernel", "decomposition", "fallthrough")
_SEMANTICS: tuple[Role, ...] = ("fake", "autograd", "vmap", "autocast")

ALL_KEYS = "*"
"""Stands for a kernel that is not registered for certain dispatch keys."""

LOWERED = "lowered"
"""The role of a parameter of a derived signature."""


class Parameter(msgspec.Struct, frozen=True, omit_defaults=True):
    """An argument, or a parameter of a Python function; see :class:`~opschema_cli.operators.model.Argument`."""

    name: str
    type: str = ""
    kind: ParamKind = "normal"
    role: str = ""
    default: str | None = None
    optional: bool = False
    mutated: bool | None = None
    dtypes: tuple[str, ...] = ()
    shape: str = ""
    place: Place | None = None

    @property
    def is_required(self) -> bool:
        """Whether a call must pass it."""
        return self.default is None and not self.optional and self.kind not in ("vararg", "kwarg")


class Output(msgspec.Struct, frozen=True, omit_defaults=True):
    """A returned value of a declaration."""

    name: str = ""
    type: str = ""
    dtypes: tuple[str, ...] = ()
    shape: str = ""
    place: Place | None = None


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """The Python signature of a function that callers call: ``forward``."""

    name: str
    parameters: tuple[Parameter, ...] = ()
    place: Place | None = None


class Workload(msgspec.Struct, frozen=True, omit_defaults=True):
    """A declared workload."""

    label: str = ""
    dtypes: tuple[str, ...] = ()
    values: dict[str, str] = {}
    place: Place | None = None


class Kernel(msgspec.Struct, frozen=True, omit_defaults=True):
    """The only kernel of a dispatch key: its ``symbol`` in a dispatch table, or the ``types`` of its C++ parameters."""

    key: str
    symbol: str = ""
    types: tuple[str, ...] | None = None
    place: Place | None = None


class Condition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A condition of a declaration; see :class:`~opschema_cli.operators.model.Constraint`."""

    text: str
    place: Place | None = None


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """The contract of one operator.

    ``schema`` is that of a dialect with schema strings; else ``arguments`` and ``returns`` are those of the declaration, and
    ``calls`` the Python signatures of its class or function. ``places`` are those of a schema's arguments, ``aliases`` further
    names. It is ``foreign`` if an installed package declares it, not the workspace. ``keys`` are the dispatch keys by role,
    without those that are not known. Nothing is reported about the ``unknown`` parts.
    """

    name: str
    pack: str = ""
    schema: str = ""
    arguments: tuple[Parameter, ...] = ()
    returns: tuple[Output, ...] = ()
    calls: tuple[Call, ...] = ()
    status: str = ""
    planned: bool = False
    generated: bool = False
    tags: tuple[str, ...] = ()
    keys: dict[str, tuple[str, ...]] = {}
    backends: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()
    workloads: tuple[Workload, ...] = ()
    symbol: str = ""
    unknown: tuple[str, ...] = ()
    place: Place | None = None
    places: dict[str, Place] = {}
    aliases: tuple[str, ...] = ()
    constraints: tuple[Condition, ...] = ()
    combinations: tuple[Condition, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    foreign: bool = False


def entry_of(operator: Operator) -> Entry:
    """Return the contract of an operator of the table. For one that an installed package declares, only the workspace's
    additions.
    """
    declared = operator.declaration
    is_foreign = declared.place is not None and declared.place.is_foreign
    if is_foreign:
        own = (item for item in operator.implementations if not _is_foreign(item))
        operator = replace(operator, implementations=tuple(own))
    python = not declared.schema and any(item.text for item in declared.arguments or ())
    arguments = tuple(_parameter(leaf) for leaf in declared.arguments or ()) if not declared.schema else ()
    calls = tuple(_calls(operator))
    if python:
        calls = (Call("", arguments, declared.place), *calls)
    return Entry(
        operator.name,
        operator.pack,
        declared.schema,
        () if python else arguments,
        () if declared.schema else tuple(map(_output, declared.returns or ())),
        calls,
        declared.status,
        declared.planned,
        declared.form == "generated",
        tuple(sorted({item.name for item in declared.tags})),
        dict(_keys(operator)),
        tuple(sorted({key for item in operator.registrations if item.role == "backend" for key in item.keys or ()})),
        tuple(sorted(_traits(operator))),
        tuple(Workload(row.label, tuple(row.dtypes), row.values, row.place) for row in operator.rows),
        next((item.symbol for item in operator.implementations if item.role in ("class", "kernel")), ""),
        tuple(dict.fromkeys(_unknown(operator))),
        _place(operator),
        {item.name: item.place for item in declared.arguments or () if item.place is not None}
        if declared.schema
        else {},
        () if is_qualified(operator.name) else operator.aliases,
        tuple(Condition(item.text, item.place) for item in declared.constraints),
        tuple(Condition(item.text, item.place) for item in declared.combinations),
        tuple(_kernels(operator)),
        is_foreign,
    )


def _is_foreign(item: Implementation) -> bool:
    place = item.place or item.registered
    return place is not None and place.is_foreign


def _place(operator: Operator) -> Place | None:
    """The declaration in the workspace, else the first other place there; one in an installed package if there is no other."""
    declared = operator.declaration.place
    if declared is not None and not declared.is_foreign:
        return declared
    return next((place for place in operator.places() if not place.is_foreign), declared)


def entries_of(operators: Iterable[Operator]) -> list[Entry]:
    """Return the contracts of the operators that the workspace defines at least in part, one for each qualified name."""
    found: list[Entry] = []
    for item in operators:
        if not item.is_foreign:
            entry = entry_of(item)
            found.append(entry)
            names = item.aliases if is_qualified(item.name) else ()
            found += (replace(entry, name=name) for name in names if is_qualified(name))
    return found


def is_qualified(name: str) -> bool:
    """Whether a name is qualified as in torch: ``ns::name``, which identifies one operator."""
    return "::" in name


def _parameter(item: Argument) -> Parameter:
    return Parameter(
        item.name,
        item.type,
        item.kind,
        item.role,
        item.default,
        item.optional,
        item.mutated,
        tuple(sorted(item.dtypes)),
        item.shape,
        item.place,
    )


def _output(item: Return) -> Output:
    return Output(item.name, item.type, tuple(sorted(item.dtypes)), item.shape, item.place)


def _calls(operator: Operator) -> Iterator[Call]:
    """Yield the signatures of an op's class, and the one derived from the declaration, whose types graphs depend on."""
    for item in operator.implementations:
        for signature in item.signatures if item.role in ("class", "lowering") else ():
            if signature.parameters is not None:
                parameters = tuple(map(_parameter, signature.parameters))
                if item.role == "lowering":
                    parameters = tuple(replace(one, role=LOWERED) for one in parameters)
                yield Call(signature.name, parameters, signature.place)


def _keys(operator: Operator) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The dispatch keys of the kernels, and of each role that semantics depend on."""
    for roles in (_KERNELS, *((role,) for role in _SEMANTICS)):
        found = [item for item in operator.implementations if item.role in roles]
        if found:
            every = (ALL_KEYS,) if any(item.keys == () for item in found) else ()
            yield roles[0], (*every, *sorted({key for item in found for key in item.keys or ()}))


def _kernels(operator: Operator) -> Iterator[Kernel]:
    """Yield the kernels of the keys with a single one. Generated kernels, Python functions, and the kernels of a variant that an
    operator delegates to are not a contract of its own.
    """
    found: dict[str, list[Kernel]] = {}
    for item in operator.implementations:
        is_listed = item.registered is None and not item.generated
        types = [tuple(one.type for one in written.parameters or ()) for written in item.signatures]
        is_cpp = item.registered is not None and item.place is None and len(types) == 1
        for key in item.keys or () if item.role == "kernel" else ():
            place = item.place if is_listed else item.signatures[0].place if is_cpp else None
            symbol = item.symbol if is_listed and not item.symbol.endswith(")") else ""
            found.setdefault(key, []).append(Kernel(key, symbol, types[0] if is_cpp else None, place))
    for kernels in found.values():
        if len(kernels) == 1 and (kernels[0].symbol or kernels[0].types is not None):
            yield kernels[0]


def _traits(operator: Operator) -> Iterator[str]:
    """Yield words on how the operator is implemented that backends depend on."""
    if any(item.role == "decomposition" for item in operator.implementations):
        yield "composite"
    own = operator.name.removeprefix("aten::")
    if any(item.relation == "out" and item.name == f"{own}, structured" for item in operator.related):
        yield "structured"


def _unknown(operator: Operator) -> Iterator[str]:
    """The parts of an operator that are not known."""
    declared = operator.declaration
    if declared.unresolved or (declared.arguments is None and not declared.schema):
        yield "declaration"
    yield from (item.part for item in operator.unresolved)
    for item in operator.implementations:
        if item.keys is None or item.conditional or (item.unresolved and item.role in _SEMANTICS):
            yield item.role
    yield from ("registrations" for item in operator.registrations if item.keys is None)
