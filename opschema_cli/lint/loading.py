"""Installed packs, imported; one that cannot be used is left out, with the reason, and stops nobody else's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import TypeVar

import msgspec

from opschema_cli.errors import DISTRIBUTION
from opschema_cli.lint.diagnostic import NotChecked, Severity
from opschema_cli.lint.installed import InstalledPack
from opschema_cli.lint.lazy_pack import AnyPack, LazyPack
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.rule import Rule

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
        """What is wrong, as a sentence without an end."""
        return f"the pack `{self.name}` ({self.where}) cannot be used: {self.reason}"

    @property
    def hint(self) -> str:
        """How to get rid of it."""
        return f"repair it, or remove it: pip uninstall {self.distribution}" if self.distribution else "repair it"

    @property
    def not_checked(self) -> NotChecked:
        """The same for the report of a run."""
        level = Severity.ERROR if self.needed else Severity.WARNING
        return NotChecked(self.message, self.hint, module=self.module, severity=level)


class _UnusableError(Exception):
    """Why a pack cannot be used, though it can be imported."""


def load_packs(points: Sequence[InstalledPack], *, needed: bool) -> tuple[list[AnyPack], list[BrokenPack]]:
    """Import packs, or their heads. ``needed`` says that the configuration names them."""
    heads: list[AnyPack] = []
    broken: list[BrokenPack] = []
    for point in points:
        found = guarded(point, lambda point=point: _loaded(point, heads), needed=needed)  # type: ignore[misc]
        if isinstance(found, BrokenPack):
            broken.append(found)
        else:
            heads.append(found)
    return heads, broken


def guarded(point: InstalledPack, load: Callable[[], T], *, needed: bool) -> T | BrokenPack:
    """What ``load`` gives, or why it fails: it runs code of the pack, which may raise whatever it likes."""
    try:
        return load()
    except (Exception, SystemExit) as error:
        what = str(error) if isinstance(error, _UnusableError) else f"{type(error).__name__}: {error}"
        reason = " ".join(what.split())[:_LONGEST_REASON]
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        module = absent.partition(".")[0] if absent else point.top
        return BrokenPack(point.name, point.where, reason, point.distribution, module, needed)


def rules_of(head: AnyPack) -> tuple[Rule, ...]:
    """The rules of a pack; none of one that has no list of them and cannot be imported."""
    try:
        return head.rules
    except (Exception, SystemExit):  # foreign code
        return ()


def imported(head: LazyPack) -> Pack:
    """The pack that a head stands for."""
    pack = head.pack
    _refuse(_problems(pack))
    return pack


def _loaded(point: InstalledPack, others: Iterable[AnyPack]) -> AnyPack:
    module, _, attribute = point.where.partition(":")
    head: object = import_module(module)
    for name in attribute.split("."):
        head = getattr(head, name)
    if point.distribution != DISTRIBUTION:
        _refuse(_problems(head, point.name, others))
    assert isinstance(head, Pack | LazyPack)
    return head


def _refuse(problems: Iterator[str]) -> None:
    for problem in problems:
        raise _UnusableError(problem)


def _problems(head: object, name: str = "", others: Iterable[AnyPack] = ()) -> Iterator[str]:
    """What is wrong with a pack of another distribution, which may be made for another version of opschema."""
    if not isinstance(head, Pack | LazyPack):
        yield f"it is {type(head).__name__!r} and not an `opschema_cli.lint.pack.Pack`"
        return
    if name and head.name != name:
        yield f"it calls itself `{head.name}`"
    if name in {other.name for other in others}:
        yield "another installed pack has this name"
    if not callable(head.detect):
        yield "its `detect` cannot be called"
    if not (isinstance(head.options, type) and issubclass(head.options, msgspec.Struct)):
        yield "its `options` are not a `msgspec.Struct`"
    if not all(isinstance(item, Rule) for item in head.rules):
        yield "its `rules` are not all `opschema_cli.lint.rule.Rule`s"
    words = [word for item in head.rules for word in (item.code, item.name)]
    taken = {word for other in others for item in rules_of(other) for word in (item.code, item.name)}
    if shared := sorted(taken.intersection(words)):
        yield f"another installed pack has the rule {shared[0]}"
