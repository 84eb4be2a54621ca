"""Which Python types ``infer_schema`` takes, and the schema type that it makes of each, by version of torch.

Source: ``derived_types``, ``get_supported_param_types`` and ``SUPPORTED_RETURN_TYPES`` in
``torch/_library/infer_schema.py`` of the releases.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from opschema_cli.schema.operator_schema import SchemaType
from opschema_rules.torchlib.annotations import GROUP_NAME, NONE, NUMBER, PythonType, union

Version: TypeAlias = "tuple[int, int]"

NEWEST: Version = (2, 13)
"""The version whose table is the last one known here."""

BUILTIN_GENERICS: Version = (2, 7)
"""Since then ``list[T]`` and ``collections.abc.Sequence[T]`` are taken; before, only those of ``typing`` (pytorch#146594)."""

OPTIONAL_TENSOR_LISTS: Version = (2, 14)
"""Since then ``Optional[List[Tensor]]`` and ``Optional[List[Optional[Tensor]]]`` are taken (pytorch#187012, not in 2.13)."""

OPAQUE_TYPES: Version = (2, 9)
"""Since then a class may be registered as opaque, and taken; 2.13 does so with ``torch.Generator`` and all enumerations."""


class Row(msgspec.Struct, frozen=True):
    """A type of the table: its schema type, and whether ``List[T]``, ``List[Optional[T]]`` and ``Optional[List[T]]`` are
    taken, too.
    """

    schema: str
    in_list: bool = False
    optional_in_list: bool = False
    optional_list: bool = False


_ROWS: dict[str, Row] = {
    "torch.Tensor": Row("Tensor", True, True, False),
    "int": Row("SymInt", True, False, True),
    "float": Row("float", True, False, True),
    "bool": Row("bool", True, False, True),
    "str": Row("str"),
    "Number": Row("Scalar", True),
    "torch.dtype": Row("ScalarType"),
    "torch.device": Row("Device"),
    GROUP_NAME: Row("str"),
}
_TENSOR_SINCE_OPTIONAL_LISTS = Row("Tensor", True, True, True)

_RETURNS = {"torch.Tensor": "Tensor", "int": "SymInt", "float": "float", "bool": "bool", "Number": "Scalar"}


def parameter_type(type_: PythonType, torch: Version) -> SchemaType | None:
    """The schema type of a parameter; None when that version of torch refuses it."""
    inner, optional = _without_none(type_)
    element = _element(inner, torch)
    if element is None:
        row = _row(inner, torch)
        found = SchemaType(row.schema) if row is not None else None
        return _optional(found) if optional and found is not None else found
    base, optional_element = _without_none(element)
    row = _row(base, torch)
    if row is None or not row.in_list:
        return None
    if (optional and not row.optional_list) or (optional_element and not row.optional_in_list):
        return None
    item = SchemaType(row.schema)
    listed = SchemaType("", _optional(item) if optional_element else item)
    return _optional(listed) if optional else listed


def return_type(type_: PythonType, torch: Version) -> SchemaType | None:
    """The schema type of one returned value; None when that version of torch refuses it."""
    if type_.kind == "list" or (type_.kind == "builtin-list" and torch >= BUILTIN_GENERICS):
        tensors = type_.items == (PythonType("name", "torch.Tensor"),)
        return SchemaType("", SchemaType("Tensor")) if tensors else None
    name = _name(type_)
    return SchemaType(_RETURNS[name]) if name in _RETURNS else None


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


def _optional(inner: SchemaType) -> SchemaType:
    return SchemaType("", inner, True)


def _without_none(type_: PythonType) -> tuple[PythonType, bool]:
    if type_.kind != "union" or NONE not in type_.items:
        return type_, False
    return union(tuple(item for item in type_.items if item != NONE)), True


def _element(type_: PythonType, torch: Version) -> PythonType | None:
    builtin = type_.kind in ("builtin-list", "builtin-sequence") and torch >= BUILTIN_GENERICS
    return type_.items[0] if (builtin or type_.kind in ("list", "sequence")) and len(type_.items) == 1 else None


def _row(type_: PythonType, torch: Version) -> Row | None:
    name = _name(type_)
    if name == "torch.Tensor" and torch >= OPTIONAL_TENSOR_LISTS:
        return _TENSOR_SINCE_OPTIONAL_LISTS
    return _ROWS.get(name)


def _name(type_: PythonType) -> str:
    if type_.kind == "union" and tuple(item.name for item in type_.items) == NUMBER:
        return "Number"
    return type_.name if type_.kind == "name" else ""
