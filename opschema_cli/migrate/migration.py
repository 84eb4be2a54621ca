"""The migration API: a decorator, the record it makes, the sites a migration finds and the notes it leaves.

A migration rewrites a whole workspace. ``find`` says where it applies; the decorated function drafts the rewrite
of the sites that were chosen, and yields notes: places that it leaves to a person, and why.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.diagnostic import Place
from opschema_cli.lint.rule import NAME

if TYPE_CHECKING:
    from opschema_cli.migrate.draft import Draft

Apply = Callable[..., "Iterable[Note]"]


class MigrationError(TypeError):
    """A migration is badly made; the message says which and how to mend it."""


class OptionError(OpschemaError):
    """An option of a migration that does not fit the tree; the message names the option and the reason."""


class NoMigrationOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A migration without options of its own."""


@dataclass(frozen=True)
class Site:
    """One thing that a migration would change: an op's carrier, a key to rename.

    ``codes`` are the rules that report it: a suppression of one of them at ``place`` leaves the site alone.
    ``title`` is an imperative ("drop the carrier `x`"). ``subject`` is the migration's own; it is not shown. ``renamed`` is
    the name that the one op of ``ops`` gets.
    """

    place: Place
    title: str
    ops: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    subject: object = field(default=None, compare=False, repr=False)
    renamed: str = ""


class Note(msgspec.Struct, frozen=True):
    """A place that a migration leaves to a person, and why.

    The place is in the text that the draft settled on last when the note is yielded; it is followed through later edits.
    With ``leaves_site`` the chosen site at that very place is left as it is, and may be found again.
    """

    place: Place
    message: str
    leaves_site: bool = False


class Scope(msgspec.Struct, frozen=True):
    """What a migration looks at: subjects of these ``types``; ``absent`` says that there are none."""

    types: tuple[type[Any], ...]
    absent: str


@dataclass(frozen=True)
class Migration:
    """A registered migration. ``options`` is the type of its options, filled from ``-o NAME=VALUE``.

    ``rewrites_trees`` tells that it asks for the trees of many Python files (:meth:`~opschema_cli.migrate.draft.Draft.tree`),
    ``anywhere`` that it runs as well where its pack finds nothing yet, for it makes what the pack looks for. ``proof`` is the
    oracle that its rewrites are tested with, in words. ``scope`` and ``settled`` say why it finds nothing: there is nothing that it
    looks at, or all of that is as it should be. ``needs`` is what it cannot look without, such as
    :data:`~opschema_cli.lint.diagnostic.CPP`.
    """

    record_kind: ClassVar = "migration"
    name: str
    doc: str
    find: Callable[[Draft, Any], Iterable[Site]] = field(compare=False)
    apply: Callable[[Draft, Sequence[Site], Any], Iterable[Note]] = field(compare=False)
    options: type[Any] = NoMigrationOptions
    rewrites_trees: bool = False
    anywhere: bool = False
    proof: str = ""
    scope: Scope | None = None
    settled: str = ""
    needs: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """The module whose function it is."""
        return self.apply.__module__

    @property
    def summary(self) -> str:
        """The first line of its page."""
        return self.doc.partition("\n")[0]


def migration(
    name: str,
    *,
    find: Callable[[Draft, Any], Iterable[Site]],
    options: type[Any] = NoMigrationOptions,
    rewrites_trees: bool = False,
    anywhere: bool = False,
    proof: str = "",
    scope: Scope | None = None,
    settled: str = "",
    needs: tuple[str, ...] = (),
) -> Callable[[Apply], Migration]:
    """Make a function a migration; its docstring is its page.

    Args:
        name: lower case with dashes.
        find: the sites that it would change, none where nothing is left to do.
        options: a frozen msgspec struct; fields without a default must be given on the command line.
        rewrites_trees: whether it asks for the trees of many Python files, which are then kept when these are parsed.
        anywhere: whether it runs, if it is named, where its pack finds nothing yet.
        proof: the oracle that shows its rewrites to be right, as a sentence without an end; see :mod:`opschema_cli.proof`.
        scope: what it looks at.
        settled: why it finds nothing though that is there, as a sentence without an end: "every list is in order".
        needs: what it cannot look without.

    Raises:
        MigrationError: the name is malformed, or the function has no page.
    """
    if not NAME.match(name):
        raise MigrationError(f"migration {name!r}: a name is lower-case-words")

    def record(apply: Apply) -> Migration:
        doc = inspect.getdoc(apply) or inspect.getdoc(sys.modules[apply.__module__]) or ""
        if not doc:
            raise MigrationError(f"migration {name}: it has no docstring, so no page")
        return Migration(name, doc, find, apply, options, rewrites_trees, anywhere, proof, scope, settled, needs)

    return record
