"""``opschema list``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from opschema_cli.commands.completion import complete_packs
from opschema_cli.commands.operators import Table, operator_table
from opschema_cli.commands.output import write_text
from opschema_cli.commands.plugins import no_plugins_option
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.registry import unknown_pack
from opschema_cli.operators.model import Operator
from opschema_cli.reporters.operators import json, listing
from opschema_cli.reporters.text import open_screen
from opschema_cli.session import path_filter
from opschema_cli.suggestions import did_you_mean, nearest


@click.command(short_help="List the operators: where each is declared and implemented.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--pack",
    "packs",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_packs,
    help="List only operators of this pack.",
)
@click.option("--unresolved", is_flag=True, help="List only operators with unresolved parts, with the reasons.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-o", "--output-file", type=click.Path(path_type=Path), help="Write the list to this file.")
@no_plugins_option
def list(  # noqa: A001 - the name of the command
    paths: tuple[Path, ...],
    packs: tuple[str, ...],
    unresolved: bool,
    output_format: str,
    output_file: Path | None,
    no_plugins: bool,
) -> int:
    """List the operators of the workspace, or those declared or implemented in PATHS.

    Each line has the numbers of kernels, fakes and workload rows, and of gaps: parts that could not be resolved.
    """
    with operator_table(no_plugins) as table:
        found = _chosen(table, paths, packs, unresolved)
        if output_format == "json":
            text = json.write(found, table.project.source)
        else:
            fit = output_file is None and (sys.stdout.isatty() or "COLUMNS" in os.environ)
            text = listing.write(found, table.project.source, open_screen(sys.stdout), fit=fit, reasons=unresolved)
    write_text(text, output_file)
    return 0


def _chosen(table: Table, paths: tuple[Path, ...], packs: tuple[str, ...], unresolved: bool) -> Sequence[Operator]:
    """The operators of the table that the options choose."""
    used = [pack.name for pack in table.packs]
    for name in packs:
        if name not in used:
            registry = table.session.registry
            known = [pack.name for pack in registry.all_packs]
            if name not in known and not registry.partial:
                raise OpschemaError(unknown_pack(name, known))
            near = did_you_mean(nearest(name, known)) if name not in known else ""
            hint = near or f"; these do: {', '.join(used)}"
            raise OpschemaError(f"the pack `{name}` finds nothing in {table.session.root}{hint}")
    found = [item for item in table.operators if not packs or item.pack in packs]
    chosen = path_filter(table.session, paths)
    return [item for item in _within(found, chosen) if not unresolved or any(item.gaps())]


def _within(operators: Iterable[Operator], paths: frozenset[str] | None) -> Iterable[Operator]:
    """Yield the operators of these files; without paths, those that the workspace defines at least in part."""
    if paths is None:
        return (item for item in operators if not item.is_foreign)
    return (item for item in operators if any(place.path in paths for place in item.places()))
