"""The migration API: a decorator, the record it makes, the sites a migration finds and the notes it leaves.

A migration rewrites an entire workspace. ``find`` says where it applies; the decorated function drafts the rewrite
of the sites that were chosen, and yields notes: places that it leaves to a person, and why.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from opschema_cli.authoring import at, described, is_options, refuse, with_options
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.diagnostic import Place
from opschema_cli.lint.rule import NAME

if TYPE_CHECKING:
    from opschema_cli.migrate.draft import Draft

OPERATOR = "operator"

Apply = Callable[..., "Iterable[Note] | None"]


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
    """Subjects that a migration works on, by ``types``; ``absent`` describes a tree without them."""

    types: tuple[type[Any], ...]
    absent: str


@dataclass(frozen=True)
class Migration:
    """A registered migration. ``options`` is the type of its options, filled from ``-o NAME=VALUE``.

    ``rewrites_trees`` says that it asks for the trees of many Python files (:meth:`~opschema_cli.migrate.draft.Draft.tree`),
    ``anywhere`` that it runs as well where its pack finds nothing yet, for it makes what the pack looks for. ``proof`` is the
    oracle that its rewrites are tested with, in words. ``scope`` and ``settled`` say why it finds nothing: there is nothing that it
    looks at, or all of that is as it should be. ``needs`` is what it cannot look without, such as
    :data:`~opschema_cli.lint.diagnostic.CPP`.
    """

    record_kind: ClassVar = "migration"
    name: str
    doc: str
    find: Callable[[Draft, Any], Iterable[Site]] = field(compare=False)
    apply: Callable[[Draft, Sequence[Site], Any], Iterable[Note] | None] = field(compare=False)
    options: type[Any] = NoMigrationOptions
    rewrites_trees: bool = False
    anywhere: bool = False
    proof: str = ""
    scope: Scope | None = None
    settled: str = ""
    needs: tuple[str, ...] = ()
    module: str = ""
    written: str = ""
    """Line and file of its function, in parentheses."""
    renames: str = ""
    """Kind of thing that it renames: :data:`OPERATOR`, or the role of an argument (``input``); empty if it renames nothing."""

    @property
    def summary(self) -> str:
        """The first line of its page."""
        return self.doc.partition("\n")[0]


def migration(
    name: str,
    *,
    find: Callable[..., Iterable[Site]],
    options: type[Any] = NoMigrationOptions,
    rewrites_trees: bool = False,
    anywhere: bool = False,
    proof: str = "",
    scope: Scope | None = None,
    settled: str = "",
    needs: tuple[str, ...] = (),
    renames: str = "",
) -> Callable[[Apply], Migration]:
    """Make a function a migration; its docstring is its page.

    Args:
        name: lower case with dashes.
        find: takes the draft, and the options if there are some; returns the sites that it would change.
        options: a subclass of ``Options``; fields without a default must be given on the command line.
        rewrites_trees: whether it asks for the trees of many Python files, which are then kept when these are parsed.
        anywhere: whether it runs, if it is named, where its pack finds nothing yet.
        proof: the oracle that shows its rewrites to be right, as a sentence without an end; see :mod:`opschema_cli.proof`.
        scope: what it looks at.
        settled: why it finds nothing though that is there, as a sentence without an end: "every list is in order".
        needs: what it cannot look without.
        renames: :data:`OPERATOR`, or the role of the arguments that it renames, for editors; its options are then ``old``, ``new``,
            and ``op`` if it renames an argument.

    Raises:
        AuthorError: an argument is malformed, or the function has no page.
    """
    if not isinstance(name, str) or not NAME.match(name):
        refuse(f"migration {name!r}: a name is lower-case-words", name)
    what = f"migration {name}"
    if not is_options(options):
        refuse(f"{what}: options={described(options)}; it is a subclass of `Options`")
    if scope is not None and not isinstance(scope, Scope):
        refuse(f'{what}: scope={scope!r}; it is `Scope((YourSubject,), "there is none here")`')
    if not isinstance(needs, tuple):
        refuse(f"{what}: needs={needs!r}; it is a tuple, such as (CPP,)")
    has_options = options is not NoMigrationOptions
    finds = with_options(find, f"{what}: `find`", "draft", needed=has_options)

    def record(apply: Apply) -> Migration:
        applies = with_options(apply, f"{what}: its function", "draft", "sites", needed=has_options)
        doc = inspect.getdoc(apply) or inspect.getdoc(sys.modules[apply.__module__]) or ""
        if not doc:
            refuse(f"{what}: it has no docstring, so no page", apply)
        return Migration(
            name,
            doc,
            finds,
            applies,
            options,
            rewrites_trees,
            anywhere,
            proof,
            scope,
            settled,
            needs,
            apply.__module__,
            at(apply),
            renames,
        )

    return record
