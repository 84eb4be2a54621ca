"""Looks up whether the tree's FlyDSL has a name, in its own copy of the package or in the table of releases."""

from __future__ import annotations

from functools import cached_property

import msgspec
from packaging.version import Version

from opschema_cli.source.bodies import Body
from opschema_cli.source.text import Place
from opschema_rules.flydsl.api_renames import MOVED, RENAMED, Renamed
from opschema_rules.flydsl.api_table import having, load_api, members, missing_from
from opschema_rules.flydsl.contract import known
from opschema_rules.flydsl.detection import ROOT
from opschema_rules.flydsl.model import FlyTree


class Absent(msgspec.Struct, frozen=True):
    """A name that FlyDSL does not have.

    ``where`` says which FlyDSL, and ``seen`` which releases have it; ``place`` is the module of the tree that lacks it. Some of
    the releases that the tree admits have it if it is not ``always`` absent. A ``member`` is one of an enumeration.
    """

    name: str
    where: str
    seen: str = ""
    place: Place | None = None
    always: bool = True
    member: bool = False

    @property
    def word(self) -> str:
        """Its last word."""
        return self.name.rpartition(".")[2]


class Lookup:
    """Looks up names for one tree."""

    def __init__(self, tree: FlyTree) -> None:
        self.tree = tree
        self._absent: dict[str, Absent | None] = {}

    @property
    def knows(self) -> bool:
        """Whether the FlyDSL of the tree is known."""
        return self.tree.contract.own or self._newest is not None

    def absent(self, body: Body, dotted: str) -> Absent | None:
        """Return the first part of a dotted name in a body that FlyDSL does not have."""
        full = self.tree.names.member(body, dotted)
        return self.absent_of(full) if full else None

    def absent_of(self, full: str) -> Absent | None:
        """Return the first part of a name that is missing from the tree's own FlyDSL, or from the newest admitted release."""
        if full not in self._absent:
            self._absent[full] = self._find_absent(full)
        return self._absent[full]

    def _find_absent(self, full: str) -> Absent | None:
        if self.tree.contract.own:
            name = self.tree.answers.first_absent(full)
            if not name or name.rpartition(".")[2].startswith("_"):  # made when it is built, perhaps
                return None
            owner, package = name.rpartition(".")[0], self.tree.package
            return Absent(name, "this FlyDSL", "", package.place(owner), member=owner not in package.api.paths)
        name = missing_from(full, self._newest) if self._newest is not None else ""
        return self._of_releases(name, having(name)) if name else None

    def absent_member(self, wrapper: str, word: str) -> Absent | None:
        """Return a method or attribute that is missing from the tensors that a function wraps."""
        if self.tree.contract.own:
            has = self.tree.answers.has_member(wrapper, word)
        else:
            names = members(wrapper, self._newest) if self._newest is not None else None
            has = word in names if names is not None else None
        if has is not False or word.startswith("__"):
            return None
        if self.tree.contract.own:
            return Absent(word, "this FlyDSL", "", self.tree.package.place(f"{ROOT}.compiler.jit_argument"))
        return self._of_releases(word, [item for item in load_api() if word in (members(wrapper, item) or ())])

    def renamed(self, name: str) -> Renamed | None:
        """Return the current name of an absent one, if the tree's FlyDSL has it."""
        rows = [row for row in RENAMED if row.old == name and row.removed]
        return next((row for row in rows if self.absent_of(row.new) is None), None)

    def moved(self, name: str) -> str:
        """The module of the tree's FlyDSL that has an absent name; empty if none is known."""
        module = MOVED.get(name, "")
        return module if module and self.absent_of(f"{module}.{name.rpartition('.')[2]}") is None else ""

    def _of_releases(self, name: str, seen: list[Version]) -> Absent:
        never = not any(item in seen for item in self.tree.contract.releases)
        return Absent(name, f"FlyDSL {self._newest}", known(seen), None, never)

    @cached_property
    def _newest(self) -> Version | None:
        """The newest admitted release, which a new installation gets; None if the table does not have it."""
        newest = max(self.tree.contract.releases, default=None)
        return newest if newest in load_api() else None
