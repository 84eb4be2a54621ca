"""The queries about names and classes for which constants and patches need a program; the program itself depends on both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from opschema_cli.source.python import PythonFile, Scope
from opschema_cli.source.resolution import ClassRef, External, Member, Resolution, Unresolved


class Resolver(Protocol):
    """Interface of :class:`opschema_cli.source.program.Program`."""

    package_files: list[str]

    def load(self, path: str, /) -> PythonFile | None:
        """Return a file's facts; None if it cannot be parsed."""
        ...

    def resolve(self, file: PythonFile, dotted: str, scopes: tuple[Scope, ...] = ()) -> Resolution:
        """Return the definition that a dotted name refers to."""
        ...

    def mro(self, ref: ClassRef) -> list[ClassRef | External] | Unresolved:
        """Return the method resolution order of a class."""
        ...

    def lineage(self, ref: ClassRef) -> Sequence[ClassRef]:
        """Return a class and its bases in the workspace."""
        ...

    def own_member(self, owner: ClassRef, name: str) -> Member:
        """Return the attribute that a class itself defines."""
        ...

    def has_plain_metaclass(self, ref: ClassRef) -> bool:
        """Whether a class's metaclass leaves its attributes unchanged."""
        ...
