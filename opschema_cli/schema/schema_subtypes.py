"""Subtypes as torch's C++ defines them (``Type::isSubtypeOfExt`` in aten/src/ATen/core).

torch compares schemas by *fake* types: ``SymInt``, ``ScalarType``, ``Layout`` and ``MemoryFormat`` are ``int`` there. A type
is reduced to the set of its alternatives: an optional has ``None`` for one, and ``Scalar`` is ``int``, ``float`` and
``complex``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from opschema_cli.schema.operator_schema import SchemaType
from opschema_cli.schema.schema_defaults import BASE_TYPES

Member: TypeAlias = tuple[object, ...]
"""One alternative: its kind, and the types within it."""

Alternatives: TypeAlias = frozenset[Member]

_INTEGERS = frozenset(name for name, kind in BASE_TYPES.items() if kind == "int")
_NONE: Member = ("NoneType",)
_ANY: Member = ("Any",)
_NUMBERS: Alternatives = frozenset((("int",), ("float",), ("complex",)))
_COVARIANT = ("Tuple", "Future", "RRef", "Await")


@lru_cache(maxsize=4096)
def alternatives(of: SchemaType) -> Alternatives:
    """Return the alternatives of a type, without those covered by another."""
    if of.optional and of.inner is not None:
        return _reduced(alternatives(of.inner) | {_NONE})
    if of.inner is not None:
        return frozenset((("list", alternatives(of.inner)),))
    if of.name == "Union":
        return _reduced(frozenset().union(*map(alternatives, of.items)))
    if of.items or of.name == "Tuple":
        return frozenset(((of.name, *map(alternatives, of.items)),))
    return _of_base(of.name)


def _of_base(name: str) -> Alternatives:
    if name == "Scalar":
        return _NUMBERS
    if name in _INTEGERS:
        return frozenset((("int",),))
    if name == "None":
        return frozenset((_NONE,))
    if name not in BASE_TYPES and "." not in name and name[:1].islower():
        return frozenset((("type variable",),))  # torch takes all of them for one
    return frozenset(((name,),))


def _reduced(found: Alternatives) -> Alternatives:
    return frozenset(
        item for item in found if not any(item != other and _is_member_subtype(item, other) for other in found)
    )


def is_subtype(of: SchemaType, other: SchemaType) -> bool:
    """Whether a value of one type can be used where the other is expected."""
    return _is_subtype(alternatives(of), alternatives(other))


def _is_subtype(of: Alternatives, other: Alternatives) -> bool:
    return all(any(_is_member_subtype(item, wider) for wider in other) for item in of)


def _is_member_subtype(of: Member, other: Member) -> bool:
    if of == other or other == _ANY:
        return True
    if of[0] != other[0] or of[0] not in _COVARIANT or len(of) != len(other):
        return False
    pairs = zip(of[1:], other[1:], strict=True)
    return all(_is_subtype(one, wider) for one, wider in pairs)  # type: ignore[arg-type]
