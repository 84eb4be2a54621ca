"""The queries about names and classes that constants and patches need of a program, which is built on both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from opschema_cli.source.python import PythonFile, Scope
from opschema_cli.source.resolution import ClassRef, External, Member, Resolution, Unresolved


class Resolver(Protocol):
    """See :class:`opschema_cli.source.program.Program`."""

    package_files: list[str]

    def load(self, path: str, /) -> PythonFile | None:
        """A file's facts; None if it does not parse."""
        ...

    def resolve(self, file: PythonFile, dotted: str, scopes: tuple[Scope, ...] = ()) -> Resolution:
        """The definition that a dotted name refers to."""
        ...

    def mro(self, ref: ClassRef) -> list[ClassRef | External] | Unresolved:
        """The method resolution order of a class."""
        ...

    def lineage(self, ref: ClassRef) -> Sequence[ClassRef]:
        """A class and its bases within the workspace."""
        ...

    def own_member(self, owner: ClassRef, name: str) -> Member:
        """The attribute that a class itself defines."""
        ...

    def has_plain_metaclass(self, ref: ClassRef) -> bool:
        """Whether a class's metaclass leaves its attributes unchanged."""
        ...
