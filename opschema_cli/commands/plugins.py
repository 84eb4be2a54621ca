"""How commands open the workspace: with the plugins that its configuration names, or without running any."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from opschema_cli.reporters.escape import visible
from opschema_cli.session import Session, open_session

no_plugins_option = click.option(
    "--no-plugins",
    is_flag=True,
    envvar="OPSCHEMA_NO_PLUGINS",
    show_envvar=True,
    help="Do not run the plugins that the configuration names.",
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
    """The session of the workspace of ``start``; which plugins are left out is told on standard error.

    Raises:
        OpschemaError: the configuration is wrong.
    """
    session = open_session(start, overlay, cache=cache, jobs=jobs, run_plugins=not no_plugins, writes=writes)
    if session.partial:
        names = ", ".join(visible(name) for name in session.config.plugins)
        click.echo(f"opschema: these plugins are not run, nor are their rules: {names}", err=True)
    return session
