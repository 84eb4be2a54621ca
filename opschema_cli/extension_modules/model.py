"""The interface of extension modules, and the meaning of a name that Python code takes from one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

from opschema_cli.source.text import Place

Self = TypeVar("Self", bound="ExtensionModule")


class ExtensionModule(Protocol):
    """A module that is compiled from the source file ``path``."""

    @property
    def name(self) -> str:
        """The dotted name by which Python imports it; empty if that is not known."""

    @property
    def path(self) -> str:
        """Its source file."""

    @property
    def shown(self) -> str:
        """The name of the module in findings."""

    @property
    def place(self) -> Place:
        """The place of its definition."""

    @property
    def closed(self) -> bool:
        """Whether it has no names other than the known ones."""

    @property
    def known(self) -> frozenset[str]:
        """All names that it is known to have."""

    @property
    def by_name(self) -> Mapping[str, object]:
        """Its functions."""

    @property
    def submodules(self: Self) -> Mapping[str, Self]:
        """Its submodules."""

    def all(self: Self) -> Iterator[Self]:
        """The module and its submodules."""


M = TypeVar("M", bound=ExtensionModule)


class Target(msgspec.Struct, Generic[M], frozen=True):
    """The meaning of a dotted name: modules (builds of the same one) and a ``name`` in them, empty for the modules themselves.

    ``others`` are modules whose names are not known: any of them may be the one that is meant.
    """

    modules: tuple[M, ...]
    name: str = ""
    others: tuple[M, ...] = ()

    def member(self, name: str) -> Target[M] | None:
        """Return the meaning of a name in the modules; None in a function."""
        if self.name:
            return None
        inner, others = (
            tuple(module.submodules[name] for module in modules if name in module.submodules)
            for modules in (self.modules, self.others)
        )
        return Target(inner, "", others) if inner else Target(self.modules, name, self.others)

    @property
    def is_elsewhere(self) -> bool:
        """Whether one of the other modules has the name, too."""
        return any(self.name in item.known for item in self.others)

    @property
    def is_absent(self) -> bool:
        """Whether the name is known to be missing from every module."""
        modules = (*self.modules, *self.others)
        return all(item.closed for item in modules) and not any(self.name in item.known for item in modules)
