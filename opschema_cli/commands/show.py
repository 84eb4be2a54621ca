"""``opschema show``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click

from opschema_cli.commands.output import WHAT_IS_FOUND, ProgressBar, report_broken, report_missing
from opschema_cli.commands.plugins import no_plugins_option, open_workspace
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.names import meant_name
from opschema_cli.lint.pack import Pack, Shown
from opschema_cli.lint.settings import pack_options


@click.command(short_help="Show one operator: its declaration beside its implementation.")
@click.argument("name")
@no_plugins_option
def show(name: str, no_plugins: bool) -> int:
    """Print operator NAME, argument by argument: what is declared beside what the code takes, each with its place.

    Upper and lower case, and the namespace of a qualified name, only matter where several operators differ in nothing else.
    """
    session = open_workspace(Path.cwd(), no_plugins=no_plugins)
    options = pack_options(session.config, session.registry)
    with ProgressBar("reading", "files") as progress:
        project = session.project(progress=progress)
        registry = session.registry_for(project)
        packs = registry.packs

        def ask(wanted: str) -> Shown | list[str]:
            return _ask(packs, lambda pack: pack.show(project, options[pack.name], wanted))

        found = ask(name)
        if not isinstance(found, Shown) and (meant := meant_name(name, found)):
            found = ask(meant)
    report_broken(registry)
    report_missing(project)
    if not packs:
        raise OpschemaError(f"nothing to show in {session.root}: opschema reads no operator here; {WHAT_IS_FOUND}")
    if not isinstance(found, Shown):
        hint = f"; did you mean {' or '.join(f'`{item}`' for item in found)}?" if found else ""
        raise OpschemaError(f"no operator here is called `{name}`{hint}")
    _print(found)
    return 0


def _ask(packs: Iterable[Pack], show: Callable[[Pack], Shown | Sequence[str]]) -> Shown | list[str]:
    """Description by the first pack that knows the name, or the closest names that any pack knows."""
    close: list[str] = []
    for pack in packs:
        found = show(pack)
        if isinstance(found, Shown):
            return found
        close += found
    return [*dict.fromkeys(close)]


def _print(shown: Shown) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from opschema_cli.reporters.text import open_console

    console = open_console(sys.stdout)
    console.print(Text(shown.title, style="bold"))
    for what, place in shown.places:
        console.print(Text.assemble((f"  {what:<12}", "dim"), place), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in (*shown.headings, ""):
        table.add_column(heading, overflow="fold")
    for row in shown.rows:
        missing = row.implemented in ("absent", "unresolved") or row.declared == "-" or bool(row.note)
        cells = (row.slot, row.declared, row.implemented, row.note)
        table.add_row(*(Text(cell, style="yellow" if missing else "") for cell in cells))
    if shown.rows:
        console.print(table)
    if shown.text:
        console.print(Text(shown.text), soft_wrap=True)
