"""``opschema show``."""

from __future__ import annotations

import sys

import click

from opschema_cli.commands.operators import operator_table
from opschema_cli.commands.plugins import no_plugins_option
from opschema_cli.operators.lookup import named
from opschema_cli.reporters.operators import show as drawing
from opschema_cli.reporters.text import open_console


@click.command(short_help="Show one operator: its declaration beside its implementation.")
@click.argument("name")
@no_plugins_option
def show(name: str, no_plugins: bool) -> int:
    """Print each argument of operator NAME as declared and as implemented, with the places of both.

    Case and the namespace of a qualified name may be ignored unless several operators match.
    """
    with operator_table(no_plugins) as table:
        found = named(name, table.operators)
        console = open_console(sys.stdout)
        for operator in found:
            drawing.write(operator, console, table.project.source)
    return 0
