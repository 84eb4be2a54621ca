"""Output of ``opschema lint --show-settings``."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path

from opschema_cli.commands.output import missing_from
from opschema_cli.lint.pack import Description
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.settings import Settings
from opschema_cli.reporters.escape import visible
from opschema_cli.session import Session

_NOTE = 24
"""Minimum number of columns for a note."""


def render_settings(session: Session, settings: Settings, baseline: Path | None) -> str:
    """Settings of a run: root, configuration, packs, rules with their severities, and facts of each pack."""
    project = session.project()
    registry = session.registry_for(project)
    detected = registry.packs
    lines = [
        f"root        {session.root}",
        f"config      {session.config_path or 'none'}",
        f"baseline    {baseline or 'none'}",
        f"packs       {', '.join(pack.name for pack in session.registry.packs) or 'none'}",
        f"detected    {', '.join(pack.name for pack in detected) or 'none'}",
        *(f"broken      {pack.message} ({pack.hint})" for pack in registry.broken),
        f"files       {len(session.workspace.files)}",
        f"fail-on     {settings.fail_on.value}",
        "rules",
    ]
    lines += _rules(session.registry, settings)
    for pack in detected:
        for description in pack.describe(project, settings.pack_options[pack.name]):
            lines += _described(pack.name, description)
    lines += [f"not read    {line}" for line in missing_from(project)]
    return "\n".join(map(visible, lines)) + "\n"


def _rules(registry: Registry, settings: Settings) -> Iterator[str]:
    """The number of rules of each pack, and the rules that are off or have another severity than their own."""
    width = max(map(len, registry.owners.values()))
    for owner in dict.fromkeys(registry.owners.values()):
        own = [rule for rule in registry.rules.values() if registry.owners[rule.code] == owner]
        off = [rule for rule in own if rule.code not in settings.enabled]
        yield f"  {owner:<{width}}  {len(own) - len(off)} on{f', {len(off)} off' if off else ''}"
        for rule in own if len(off) < len(own) else ():
            severity = settings.severity[rule.code]
            if rule in off or severity is not rule.severity:
                yield f"    {rule.code}  {rule.name:<28} {'off' if rule in off else severity.value}"


def _described(pack: str, description: Description) -> Iterator[str]:
    """Yield the facts in three columns, with their notes wrapped to the terminal. A note that has no room is put below its
    value; such values, and those without a note, do not count for the column width.
    """
    width = max(60, shutil.get_terminal_size((100, 24)).columns)
    names = max((len(fact.name) for fact in description.facts), default=0)
    word = max((len(word) for fact in description.facts for word in fact.note.split()), default=0)
    most = width - names - max(_NOTE, min(word, width // 2)) - 6
    values = max((len(fact.value) for fact in description.facts if fact.note and len(fact.value) <= most), default=0)
    yield f"{pack:<10}  {description.title}"
    for fact in description.facts:
        head = f"  {fact.name:<{names}}  {fact.value:<{values}}"
        column = names + 6 + values
        note = textwrap.wrap(fact.note, width - column, break_long_words=False, break_on_hyphens=False)
        if len(head) + 2 <= column:
            head = f"{head}  {note.pop(0)}" if note else head
        yield head.rstrip()
        yield from (f"{'':{column}}{line}" for line in note)
    yield from textwrap.wrap(description.hint, width - 2, initial_indent="  ", subsequent_indent="  ")
