"""Imports installed packs; an unusable one is left out, with the reason, and does not affect the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TypeVar

import msgspec

from opschema_cli.authoring import described, failure, refuse
from opschema_cli.errors import DISTRIBUTION
from opschema_cli.lint.collisions import collision
from opschema_cli.lint.diagnostic import NotChecked, Severity
from opschema_cli.lint.installed import InstalledPack
from opschema_cli.lint.lazy_pack import AnyPack, LazyPack
from opschema_cli.lint.pack import Pack

T = TypeVar("T")

_LONGEST_REASON = 300


class BrokenPack(msgspec.Struct, frozen=True):
    """An installed pack that cannot be used. It is ``needed`` where the configuration names it, or where it finds something.

    ``module`` is the module that could not be imported, or else the pack's own.
    """

    name: str
    where: str
    reason: str
    distribution: str
    module: str
    needed: bool = False

    @property
    def message(self) -> str:
        """The problem, as a sentence without a full stop."""
        return f"the pack `{self.name}` ({self.where}) cannot be used: {self.reason}"

    @property
    def hint(self) -> str:
        """Advice on how to fix it."""
        return f"repair it, or remove it: pip uninstall {self.distribution}" if self.distribution else "repair it"

    @property
    def not_checked(self) -> NotChecked:
        """Return this problem for the report of a run."""
        level = Severity.ERROR if self.needed else Severity.WARNING
        return NotChecked(self.message, self.hint, module=self.module, severity=level)


def load_packs(points: Sequence[InstalledPack], *, needed: bool) -> tuple[list[AnyPack], list[BrokenPack]]:
    """Import packs, or what detects them. ``needed`` says that the configuration names them."""
    packs: dict[InstalledPack, AnyPack] = {}
    broken: list[BrokenPack] = []
    for point in points:
        found = guarded(point, lambda point=point: _loaded(point, packs), needed=needed)  # type: ignore[misc]
        if isinstance(found, BrokenPack):
            broken.append(found)
        else:
            packs[point] = found
    return [*packs.values()], broken


def guarded(point: InstalledPack, load: Callable[[], T], *, needed: bool) -> T | BrokenPack:
    """The result of ``load``, or the reason of its failure: it runs code of the pack, which may raise anything."""
    try:
        return load()
    except (Exception, SystemExit) as error:
        reason = " ".join(failure(error).split())[:_LONGEST_REASON]
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        module = absent.partition(".")[0] if absent else point.top
        return BrokenPack(point.name, point.where, reason, point.distribution, module, needed)


def imported(pack: LazyPack) -> Pack:
    """Return the pack that a lazy one refers to.

    Raises:
        AuthorError: its module holds no pack.
    """
    found: object = pack.pack
    if not isinstance(found, Pack):
        refuse(f"`{pack.module}.PACK` is {described(found)}, not a `Pack`")
    return found


def _loaded(point: InstalledPack, others: Mapping[InstalledPack, AnyPack]) -> AnyPack:
    module, _, attribute = point.where.partition(":")
    found: object = import_module(module)
    for name in attribute.split("."):
        if not hasattr(found, name):
            refuse(f'`{module}` has no `{attribute}`; the entry point is `{point.name} = "MODULE:PACK"`')
        found = getattr(found, name)
    if not isinstance(found, Pack | LazyPack):
        refuse(f"it is {described(found)}, not a `Pack`")
    if point.distribution != DISTRIBUTION:
        _check_unique(found, point, others)
    return found


def _check_unique(pack: AnyPack, point: InstalledPack, others: Mapping[InstalledPack, AnyPack]) -> None:
    """Check that a pack has the name of its entry point, and shares no name with another.

    Raises:
        AuthorError: it does; with both.
    """
    if pack.name != point.name:
        refuse(f"it calls itself `{pack.name}`, its entry point `{point.name}`; give both one name")
    for other in others:
        if other.name == pack.name:
            refuse(
                f"{_owner(other)} has this name already ({other.where}); choose another, there and in the entry point"
            )
    if shared := collision(pack, [*others.values()]):
        refuse(f"{shared}; choose another")


def _owner(point: InstalledPack) -> str:
    return "a pack of opschema" if point.distribution == DISTRIBUTION else f"a pack of `{point.distribution}`"
