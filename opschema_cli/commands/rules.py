"""``opschema rules``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click

from opschema_cli.commands.completion import complete_rules
from opschema_cli.commands.output import report_broken, write_text
from opschema_cli.commands.plugins import open_workspace
from opschema_cli.lint.rule import Rule


@click.command(short_help="List all rules.")
@click.argument("selector", default="ALL", shell_complete=complete_rules)
@click.option("--output-format", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
def rules(selector: str, output_format: str) -> int:
    """List all rules, or those of a code, prefix or name (SELECTOR)."""
    registry = open_workspace(Path.cwd(), no_plugins=True, cache=False).registry
    report_broken(registry)
    codes = registry.expand([selector])
    found = [rule for code, rule in registry.rules.items() if code in codes]
    write_text(_RENDER[output_format](found, registry.owners), None)
    return 0


def _text(found: list[Rule], owners: Mapping[str, str]) -> str:
    width = max(len(rule.name) for rule in found)
    pack = max(len(owners[rule.code]) for rule in found)
    return "".join(
        f"{rule.code}  {owners[rule.code]:<{pack}}  {rule.name:<{width}}  {rule.severity.value:<7}  "
        f"{'fix' if rule.fixable else '   '}  {_stage(rule)}{rule.summary}\n"
        for rule in found
    )


def _stage(rule: Rule) -> str:
    return f"({rule.stage}) " if rule.stage != "stable" else ""


def _json(found: list[Rule], owners: Mapping[str, str]) -> str:
    rows = [
        {
            "code": rule.code,
            "name": rule.name,
            "pack": owners[rule.code],
            "severity": rule.severity.value,
            "fix": rule.fixable,
            "stage": rule.stage,
            "summary": rule.summary,
        }
        for rule in found
    ]
    return json.dumps(rows, indent=2) + "\n"


def _markdown(found: list[Rule], owners: Mapping[str, str]) -> str:
    from opschema_cli.lint.docs import rules_table

    return rules_table(found)


_RENDER = {"text": _text, "json": _json, "markdown": _markdown}
