"""Values that torch.library makes: handles of custom ops, libraries, names below ``torch.ops``, unfinished registrations."""

from __future__ import annotations

from typing import TypeAlias

from opschema_cli.evaluation.values import Arguments, PackValue, Text, Value, Values
from opschema_cli.source.keyed_struct import KeyedStruct
from opschema_rules.torchlib.apis import Api


class Handle(KeyedStruct, PackValue, frozen=True):
    """A custom op as a Python value: the call and function that made it, and its names."""

    key: HandleKey
    names: Text
    function: Value
    legacy: bool = False

    @property
    def replaces_methods(self) -> bool:
        """A class holds the custom op in the place of its method."""
        return True

    def merged(self, other: PackValue) -> Handle | None:
        """The custom ops that one factory makes are one, with all their names."""
        if not isinstance(other, Handle) or other.key[:3] != self.key[:3]:
            return None
        known = self.names.names is not None and other.names.names is not None
        names = (self.names.names or frozenset()) | (other.names.names or frozenset()) if known else None
        return Handle((*self.key[:3], names), Text(names), self.function, self.legacy)


HandleKey: TypeAlias = "tuple[str, int, int, frozenset[str] | tuple[tuple[str, int], ...] | None]"
"""The file and place of the registering call, the function, and the names or the calls on the way."""


class LibraryValue(PackValue, frozen=True):
    """A ``torch.library.Library``: its namespace, None when not known, its own dispatch key, and whether it may end early."""

    namespace: str | None
    key: str | None = ""
    scoped: bool = False

    @property
    def entered(self) -> Values:
        """A library is the value that its ``with`` statement binds."""
        return (self,)


class OpName(PackValue, frozen=True):
    """``torch.ops.namespace.name`` with or without overload, as ``namespace::name.overload``; or a part of it."""

    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The qualified name; empty when it is but a part."""
        namespace, *rest = self.parts or ("",)
        overload = [item for item in rest[1:] if item != "default"]
        return f"{namespace}::{'.'.join([rest[0], *overload])}" if rest and len(rest) < 3 else ""


class Method(PackValue, frozen=True):
    """A method of a library or of a custom op."""

    receiver: Handle | LibraryValue
    name: str


class Inferred(KeyedStruct, PackValue, frozen=True):
    """A schema that ``infer_schema`` makes from a function, after the operator's name if that precedes it."""

    function: Value
    arguments: Arguments
    name: Text | None = None

    @property
    def key(self) -> tuple[Value, Text | None]:
        """All but the arguments."""
        return self.function, self.name

    def appended_to(self, text: Text) -> Inferred | None:
        """The operator's name in front of its schema."""
        return Inferred(self.function, self.arguments, text) if self.name is None else None


class Waiting(PackValue, frozen=True):
    """A registering call that waits for its function: a decorator. ``late`` when it did not pass any, and that has come
    by a call of its own.
    """

    api: Api
    receiver: Value | None
    arguments: Arguments
    late: bool = False
