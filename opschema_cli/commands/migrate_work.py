"""The work of ``opschema migrate``: its options, the packs in use, and the requested migrations."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import click
import msgspec

from opschema_cli.commands.output import WHAT_IS_FOUND, report_broken
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.loaded import Loaded
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.pack_calls import loaded_by
from opschema_cli.lint.recognition import Recognition
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.migrate.choose import Choice
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.engine import Ground, Task, load_migrations
from opschema_cli.migrate.migration import Migration
from opschema_cli.migrate.options import fill
from opschema_cli.project import Project
from opschema_cli.reporters.escape import visible
from opschema_cli.session import Session
from opschema_cli.suggestions import did_you_mean, nearest

SHOWN_FILES = 5
"""Maximum number of files in a message."""

Mode: TypeAlias = Literal["list", "diff", "apply", "check", "recover", "explain"]


class MigrateOptions(msgspec.Struct, frozen=True):
    """The options of one ``opschema migrate``."""

    names: tuple[str, ...]
    list_only: bool
    diff: bool
    apply: bool
    check: bool
    recover: bool
    explain: bool
    only: tuple[str, ...]
    skip: tuple[str, ...]
    option: tuple[str, ...]
    verify: bool
    cells: int | None
    allow_unverified: bool
    allow_dirty: bool
    output_format: str
    no_cache: bool
    no_plugins: bool
    jobs: int | None

    @property
    def mode(self) -> Mode:
        """The requested mode.

        Raises:
            click.UsageError: more than one thing.
        """
        flags = {"list": self.list_only, "diff": self.diff, "apply": self.apply, "check": self.check}
        flags |= {"recover": self.recover, "explain": self.explain}
        asked = [name for name, given in flags.items() if given]
        if len(asked) > 1:
            raise click.UsageError(f"choose one of {' and '.join(f'--{name}' for name in asked)}")
        return asked[0] if asked else "diff" if self.names else "list"  # type: ignore[return-value]

    @property
    def asked(self) -> list[str]:
        """The requested migrations and their options, as on the command line."""
        told = {"--only": self.only, "--skip": self.skip, "-o": self.option}
        return [*self.names, *(word for name, values in told.items() for value in values for word in (name, value))]


class Work(msgspec.Struct, frozen=True):
    """A project, the packs that find something in it with their loaders, and the request."""

    project: Project
    packs: Sequence[Pack]
    loaders: Mapping[str, Callable[[Project], Loaded]]
    ground: Ground
    options: MigrateOptions

    @classmethod
    def of(cls, session: Session, project: Project, options: MigrateOptions) -> Work:
        """The work in a project, with the packs that apply to it.

        Raises:
            OpschemaError: a pack cannot be loaded, or the configuration is wrong.
        """
        registry = session.registry_for(project)
        unknown = set(options.names) - {item.name for pack in registry.packs for item in load_migrations(pack)}
        if unknown:
            begun = {pack.name for pack in session.registry.packs if _begins(pack, unknown)}
            registry = registry.narrowed({*(pack.name for pack in registry.packs), *begun})
        settings = resolve_settings(session.config, registry)
        packs = registry.packs
        registry.check_needed()
        report_broken(registry)
        if not packs:
            click.echo(f"opschema: found nothing to migrate here; {WHAT_IS_FOUND}", err=True)
        choice = Choice(options.only, options.skip, session.workspace.relative(Path.cwd()))
        loaders = {pack.name: _loader(pack, settings.pack_options[pack.name]) for pack in packs}
        return cls(project, packs, loaders, Ground(registry, settings, choice), options)

    def known(self) -> dict[str, tuple[Pack, Migration]]:
        """All migrations of the packs, by name.

        Raises:
            OpschemaError: a pack's migrations cannot be imported, or two packs have one of the same name.
        """
        found: dict[str, tuple[Pack, Migration]] = {}
        for pack in self.packs:
            for item in load_migrations(pack):
                if item.name in found:
                    other, first = found[item.name]
                    places = f"`{other.name}`{first.written} and `{pack.name}`{item.written}"
                    raise OpschemaError(f"two packs have a migration `{item.name}`: {places}; give one another name")
                found[item.name] = (pack, item)
        return found

    def tasks(self) -> list[Task]:
        """The requested migrations, in order.

        Raises:
            OpschemaError: a name or an option is not known, missing or wrong.
        """
        known = self.known()
        chosen = self.chosen()
        values = fill(chosen, self.options.option)
        return [Task(item, values[item.name], self.loaders[known[item.name][0].name]) for item in chosen]

    def chosen(self) -> list[Migration]:
        """The migrations that were named, in order.

        Raises:
            OpschemaError: a name is not known.
        """
        known = self.known()
        return [self._named(name, known)[1] for name in dict.fromkeys(self.options.names)]

    def _named(self, name: str, known: dict[str, tuple[Pack, Migration]]) -> tuple[Pack, Migration]:
        if name in known:
            return known[name]
        registry = msgspec.structs.replace(self.ground.registry, used=None)
        owners = {item.name: pack.name for pack in registry.packs for item in load_migrations(pack)}
        if name in owners:
            raise OpschemaError(f"the migration `{name}` is one of the pack `{owners[name]}`, which finds nothing here")
        hint = did_you_mean(nearest(name, known) or nearest(name, owners))
        raise OpschemaError(f"no migration is called `{name}`{hint or '; `opschema migrate` lists those that apply'}")

    def draft(self) -> Draft:
        """A new draft; what loads its subjects comes with the first task."""
        return Draft(self.project, lambda project: Loaded())


def _begins(pack: Pack, names: Container[str]) -> bool:
    """Whether a pack has a migration with one of these names that creates the files the pack looks for."""
    return any(item.anywhere and item.name in names for item in load_migrations(pack))


def _loader(pack: Pack, options: object) -> Callable[[Project], Loaded]:
    return lambda project: loaded_by(pack, project, options)


def problems_of(work: Work) -> list[Diagnostic]:
    """Problems of files that a migration needs."""
    project, ground = work.project, work.ground
    project.settle()
    packs = ground.registry.all_packs
    meant = dict.fromkeys((pack.name for pack in packs), project.claimed)
    recognition = Recognition(project, packs, ground.settings.pack_options, meant)
    problems = (item for item in project.problems.values() if recognition.reported(item.place.path))
    return sorted(problems, key=lambda item: (item.place.path, item.message))


def print_problems(work: Work) -> None:
    """Print which files could not be read or parsed: migrations do not see them."""
    found = problems_of(work)
    for item in found[:SHOWN_FILES]:
        click.echo(f"opschema: {visible(f'{item.place.path}: {item.message}')}; no migration sees it", err=True)
    if len(found) > SHOWN_FILES:
        click.echo(f"opschema: and {len(found) - SHOWN_FILES} more files", err=True)
