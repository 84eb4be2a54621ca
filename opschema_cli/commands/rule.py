"""``opschema rule``."""

from __future__ import annotations

from pathlib import Path

import click

from opschema_cli.commands.completion import complete_rules
from opschema_cli.commands.output import report_broken, write_page
from opschema_cli.commands.plugins import open_workspace
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.docs import rule_page
from opschema_cli.reporters.escape import visible
from opschema_cli.suggestions import did_you_mean


@click.command(short_help="Explain one rule.")
@click.argument("selector", shell_complete=complete_rules)
def rule(selector: str) -> int:
    """Print the page of a rule, by code or name: why it matters, what it finds, examples, its fix."""
    session = open_workspace(Path.cwd(), no_plugins=True, cache=False)
    registry = session.registry
    report_broken(registry)
    found = registry.find(selector)
    if not found:
        # A plugin that does not run may well have it.
        names = ", ".join(map(visible, session.config.plugins))
        hint = f"; a rule of {names} is explained by its docstring there" if names else ""
        near = did_you_mean(registry.near(selector)) if names else registry.hint(selector)
        raise OpschemaError(f"no rule is called `{selector}`{hint}{near}")
    write_page("\n".join(rule_page(item, registry.owners[item.code]) for item in found))
    return 0
