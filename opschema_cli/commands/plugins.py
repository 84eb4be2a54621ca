"""``opschema plugins``, and how other commands open the workspace with or without the plugins of its configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from opschema_cli.errors import OpschemaError
from opschema_cli.permissions import Permission, allow, as_digest, is_allowed, permissions, plugin_digest, revoke
from opschema_cli.regular_files import read_regular
from opschema_cli.reporters.escape import visible
from opschema_cli.root import find_root
from opschema_cli.session import Session, open_session

no_plugins_option = click.option(
    "--no-plugins",
    is_flag=True,
    envvar="OPSCHEMA_NO_PLUGINS",
    show_envvar=True,
    help="Do not run the plugins that the configuration names. Without this option, only plugins that you have allowed run.",
)


def open_workspace(
    start: Path,
    overlay: Mapping[Path, str] | None = None,
    *,
    no_plugins: bool,
    cache: bool = True,
    jobs: int | None = None,
    writes: bool = False,
) -> Session:
    """The session of the workspace of ``start``; plugins that are left out are named on standard error.

    Raises:
        OpschemaError: the configuration is wrong, or names a plugin that the user has not allowed.
    """
    session = open_session(start, overlay, cache=cache, jobs=jobs, run_plugins=not no_plugins, writes=writes)
    if session.partial:
        names = ", ".join(visible(name) for name in session.config.plugins)
        click.echo(f"opschema: these plugins and their rules do not run: {names}", err=True)
    elif session.config.plugins:
        _ = session.plugins  # before anything else is done: they are checked here
    return session


@click.group(short_help="Allow a repository's plugins to run; list and revoke permissions.")
def plugins() -> None:
    """Manage plugins: Python files of a repository that its configuration names under `plugins`.

    A plugin runs with your permissions, so it runs only after you have allowed it. The permission is for the bytes of the file: a
    changed file must be allowed again. Permissions are stored in your own state folder, not in the repository.
    OPSCHEMA_ALLOW_PLUGINS allows digests (sha256:..., separated by commas) in CI, or `all`.
    """


@plugins.command("allow")
@click.argument("subjects", nargs=-1, metavar="[PATH|DIGEST]...")
def allow_plugins(subjects: Sequence[str]) -> int:
    """Allow files or digests to run as plugins; without arguments, allow all plugins in the configuration.

    Read the files first. Nothing is run now.
    """
    found = dict(_asked(subjects) if subjects else _configured())
    if not found:
        raise OpschemaError("the configuration here names no plugin")
    for digest, path in found.items():
        allow(digest, path)
        click.echo(f"allowed  {_line(digest, path)}")
    return 0


@plugins.command("revoke")
@click.argument("subjects", nargs=-1, metavar="[PATH|DIGEST]...")
@click.option("--all", "every", is_flag=True, help="Revoke all permissions.")
def revoke_plugins(subjects: Sequence[str], every: bool) -> int:
    """Revoke permissions of files, including their earlier versions, and of digests."""
    if every == bool(subjects):
        raise click.UsageError("give files or digests, or --all")
    stored = permissions()
    for item in stored if every else [item for item in stored if _is_meant(item, subjects)]:
        revoke(item.digest)
        click.echo(f"revoked  {_line(item.digest, item.path)}")
    return 0


@plugins.command("list")
def list_plugins() -> int:
    """List the plugins in the configuration, then all other stored permissions."""
    here = list(_configured())
    root = find_root(Path.cwd())
    for digest, path in here:
        click.echo(f"{'allowed' if is_allowed(digest, root) else 'not allowed':<11}  {_line(digest, path)}")
    for item in permissions():
        if (item.digest, item.path) not in here:
            click.echo(f"{'allowed':<11}  {_line(item.digest, item.path)}")
    return 0


def _configured() -> Iterator[tuple[str, str]]:
    """The digests and paths of the plugins that the configuration of the current folder names."""
    session = open_session(Path.cwd(), cache=False, run_plugins=False)
    for plugin in session.read_plugins():
        yield plugin.digest, str(plugin.path)


def _asked(subjects: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the digests of files, or the given digests."""
    for subject in subjects:
        digest = as_digest(subject)
        if digest is not None:
            yield digest, ""
            continue
        try:
            path = Path(subject).resolve()
            yield plugin_digest(read_regular(path)), str(path)
        except (OSError, ValueError, RuntimeError) as error:
            raise OpschemaError(f"{subject} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _is_meant(item: Permission, subjects: Iterable[str]) -> bool:
    return any(
        digest == item.digest if (digest := as_digest(subject)) else str(Path(subject).resolve()) == item.path
        for subject in subjects
    )


def _line(digest: str, path: str) -> str:
    return f"{digest}  {visible(path)}".rstrip()
