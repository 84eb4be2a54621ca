"""A pack that is only imported if it finds something, and the catalogue of its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.lint.pack import Pack, Speed, claims_all
from opschema_cli.lint.pack_checks import check_detection
from opschema_cli.lint.rule import Rule
from opschema_cli.lint.unread import Sighting
from opschema_cli.project import Project

CATALOGUE = "rules.json"
"""The file beside a pack's module that lists its rules, so that they are known without importing it."""

MIGRATIONS = "migrations.json"
"""The file beside it that lists the pack's migrations, for completing their names in a shell."""


class _Listed(msgspec.Struct, array_like=True):
    code: str
    name: str
    severity: Severity
    summary: str


class LazyPack(msgspec.Struct, frozen=True, dict=True):
    """A pack whose module is imported only where it finds something: its detection, and the module (``ours.pack``), which
    holds the :class:`Pack` as ``PACK``.

    ``catalogue`` is the file that lists its rules (:func:`catalogue_text` writes it); the other fields are the pack's.
    """

    name: str
    detect: Callable[[Project, Any], bool]
    options: type[Any]
    module: str
    catalogue: Path
    speed: Speed = Speed()
    unread: tuple[Sighting, ...] = ()
    pages: str = ""
    claims: Callable[[Project, Any, str], bool] = claims_all
    releases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the author's definition.

        Raises:
            AuthorError: a field is not what it should be.
        """
        check_detection(self)

    @cached_property
    def pack(self) -> Pack:
        """The pack itself; its module is imported."""
        found: Pack = import_module(self.module).PACK
        return found

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Its rules as listed in the catalogue, without their functions; those of the pack if the catalogue cannot be read."""
        try:
            listed = msgspec.json.decode(self.catalogue.read_bytes(), type=list[_Listed])
        except (OSError, msgspec.DecodeError):
            return self.pack.rules
        return tuple(Rule(item.code, item.name, item.severity, item.summary) for item in listed)


AnyPack: TypeAlias = Pack | LazyPack


def catalogue_text(rules: Iterable[Rule]) -> str:
    """Text of the catalogue of a pack with these rules."""
    listed = [_Listed(rule.code, rule.name, rule.severity, rule.summary) for rule in rules]
    return "[\n" + ",\n".join(msgspec.json.encode(item).decode() for item in listed) + "\n]\n"
