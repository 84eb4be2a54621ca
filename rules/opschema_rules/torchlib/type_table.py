"""Python types that ``infer_schema`` takes, and the schema type that it makes of each, by release of torch.

``types.json`` holds them as each release's own ``infer_schema`` answered (``python -m benchmarks.torch_types``): of each
release what is new, and what it refuses since (null).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec

from opschema_cli.requirements import Version, nearest_release, read_version
from opschema_cli.schema.operator_schema import SchemaType
from opschema_rules.torchlib.annotations import GROUP_NAME, NONE, NUMBER, PythonType, union


class TypeTable(msgspec.Struct, frozen=True):
    """The schema types of one release, for parameters and for results, by the spelling of the Python type."""

    parameters: dict[str, str]
    returns: dict[str, str]

    @property
    def takes_builtin_lists(self) -> bool:
        """Whether ``list[T]`` is taken, and not only ``typing.List[T]`` (pytorch#146594)."""
        return "list[Tensor]" in self.parameters

    @property
    def takes_optional_tensor_lists(self) -> bool:
        """Whether ``Optional[List[Tensor]]`` is taken (pytorch#187012)."""
        return "Optional[List[Tensor]]" in self.parameters

    @property
    def takes_opaque(self) -> bool:
        """Whether a class that is registered as opaque is taken."""
        return "Opaque" in self.parameters


class _Changes(msgspec.Struct, frozen=True):
    parameters: dict[str, str | None] = {}
    returns: dict[str, str | None] = {}


@lru_cache(maxsize=1)
def _tables() -> dict[Version, TypeTable]:
    text = Path(__file__).with_name("types.json").read_bytes()
    found: dict[Version, TypeTable] = {}
    parameters: dict[str, str] = {}
    returns: dict[str, str] = {}
    for release, changes in msgspec.json.decode(text, type=dict[str, _Changes]).items():
        parameters, returns = _changed(parameters, changes.parameters), _changed(returns, changes.returns)
        version = read_version(release)
        assert version is not None
        found[version] = TypeTable(parameters, returns)
    return found


def _changed(types: dict[str, str], changes: dict[str, str | None]) -> dict[str, str]:
    return {name: schema for name, schema in {**types, **changes}.items() if schema is not None}


def known_releases() -> tuple[Version, ...]:
    """The releases of torch whose types are known, the oldest first."""
    return tuple(_tables())


def type_table(torch: Version) -> TypeTable:
    """The types that a release takes; for an unknown release, those of the nearest older one."""
    return _tables()[nearest_release(torch, known_releases())]


_BASES = {"torch.Tensor": "Tensor", "torch.dtype": "dtype", "torch.device": "device", GROUP_NAME: "GroupName"}
_WORDS = {"list": "List", "sequence": "Sequence", "builtin-list": "list", "builtin-sequence": "abc.Sequence"}


def parameter_type(type_: PythonType, torch: Version) -> SchemaType | None:
    """The schema type of a parameter; None when that release of torch refuses it."""
    return _schema(type_table(torch).parameters.get(_key(type_), ""))


def return_type(type_: PythonType, torch: Version) -> SchemaType | None:
    """The schema type of one returned value; None when that release of torch refuses it."""
    return _schema(type_table(torch).returns.get(_key(type_), ""))


def _key(type_: PythonType) -> str:
    """Return the table's spelling of a type; empty for one that no release accepts."""
    inner, optional = _without_none(type_)
    if optional:
        key = _key(inner)
        return key and f"Optional[{key}]"
    if type_.kind in _WORDS and len(type_.items) == 1:
        key = _key(type_.items[0])
        return key and f"{_WORDS[type_.kind]}[{key}]"
    name = _name(type_)
    return _BASES.get(name, name if name in ("int", "float", "bool", "str", "Number") else "")


@lru_cache(maxsize=64)
def _schema(text: str) -> SchemaType | None:
    """A schema type as the table writes it: ``Tensor?[]``."""
    if text.endswith("?"):
        return SchemaType("", _schema(text[:-1]), True)
    if text.endswith("[]"):
        return SchemaType("", _schema(text[:-2]))
    return SchemaType(text) if text else None


def list_instead(type_: PythonType) -> PythonType:
    """The list that takes the place of a tuple."""
    return PythonType("list", "", (union(type_.items),))


def spelled(type_: PythonType) -> PythonType:
    """A type with ``typing``'s forms in the place of builtin ones."""
    kinds = {"builtin-list": "list", "builtin-sequence": "sequence"}
    items = tuple(map(spelled, type_.items))
    kind = kinds.get(type_.kind)
    if type_.kind == "union":
        return union(items)
    if kind == "list":
        return PythonType("list", type_.name, items)
    return (
        PythonType("sequence", type_.name, items) if kind == "sequence" else PythonType(type_.kind, type_.name, items)
    )


def written(type_: PythonType) -> str:
    """A type as one writes it."""
    if type_.kind == "none":
        return "None"
    if type_.kind == "union":
        inner, optional = _without_none(type_)
        name = _name(inner)
        text = name or (f"Union[{', '.join(map(written, inner.items))}]" if inner.kind == "union" else written(inner))
        return f"Optional[{text}]" if optional else text
    if type_.items or type_.kind == "tuple":
        word = {
            "list": "List",
            "sequence": "Sequence",
            "builtin-list": "list",
            "builtin-sequence": "Sequence",
            "tuple": "Tuple",
        }[type_.kind]
        return f"{word}[{', '.join(map(written, type_.items))}]"
    return type_.name


def _without_none(type_: PythonType) -> tuple[PythonType, bool]:
    if type_.kind != "union" or NONE not in type_.items:
        return type_, False
    return union(tuple(item for item in type_.items if item != NONE)), True


def _name(type_: PythonType) -> str:
    if type_.kind == "union" and tuple(item.name for item in type_.items) == NUMBER:
        return "Number"
    return type_.name if type_.kind == "name" else ""
