"""``-o NAME=VALUE``: a migration's options, filled and checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import msgspec.inspect

from opschema_cli.config import convert
from opschema_cli.errors import OpschemaError
from opschema_cli.migrate.migration import Migration
from opschema_cli.suggestions import did_you_mean, near_name

_LISTS = (
    msgspec.inspect.ListType,
    msgspec.inspect.VarTupleType,
    msgspec.inspect.SetType,
    msgspec.inspect.FrozenSetType,
)


def fill(migrations: Sequence[Migration], given: Iterable[str]) -> dict[str, object]:
    """Return the options of each migration by its name. An option that several migrations have is passed to each of them.

    Values of options that are lists have commas between their items.

    Raises:
        OpschemaError: an option is malformed, unknown, given twice, missing or of the wrong type.
    """
    values: dict[str, str] = {}
    for name, value in map(_pair, given):
        if values.setdefault(name, value) != value:
            raise OpschemaError(f"-o {name}: given twice; the items of a list have commas between them")
    known = {field.encode_name for item in migrations for field in msgspec.structs.fields(item.options)}
    for name in values:
        if name not in known:
            raise OpschemaError(f"-o {name}: {_who(migrations)} no such option{_hint(name, sorted(known))}")
    return {item.name: _filled(item, values) for item in migrations}


def _pair(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark:
        raise OpschemaError(f"-o {text}: expected NAME=VALUE")
    return name.strip(), value


def _who(migrations: Sequence[Migration]) -> str:
    names = [f"`{item.name}`" for item in migrations]
    return f"{' and '.join(names)} {'has' if len(names) == 1 else 'have'}"


def _hint(name: str, known: Sequence[str]) -> str:
    listed = f"; known: {', '.join(f'`{item}`' for item in known)}" if known else ""
    return did_you_mean(near_name(name, known)) or listed


def _filled(migration: Migration, values: dict[str, str]) -> object:
    needed = missing(migration, values)
    if needed:
        listed = " ".join(f"-o {name}=…" for name in needed)
        raise OpschemaError(f"`{migration.name}` needs {listed}")
    mine: dict[str, object] = {}
    for field in msgspec.structs.fields(migration.options):
        value = values.get(field.encode_name)
        if value is not None:
            mine[field.encode_name] = [*_items(value)] if _is_list(field) else value
    options: object = convert(mine, migration.options, f"`{migration.name}`: ", strict=False)
    return options


def missing(migration: Migration, values: Iterable[str] = ()) -> list[str]:
    """The options without a default that ``values`` do not name."""
    fields = msgspec.structs.fields(migration.options)
    return [field.encode_name for field in fields if field.required and field.encode_name not in values]


def _is_list(field: msgspec.structs.FieldInfo) -> bool:
    found = msgspec.inspect.type_info(field.type)
    kinds = found.types if isinstance(found, msgspec.inspect.UnionType) else (found,)
    return any(isinstance(kind, _LISTS) for kind in kinds)


def _items(value: str) -> Iterator[str]:
    return (item.strip() for item in value.split(",") if item.strip())
