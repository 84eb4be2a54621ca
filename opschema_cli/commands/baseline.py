"""``opschema baseline``."""

from __future__ import annotations

from pathlib import Path

import click

from opschema_cli.commands.output import ParseProgress
from opschema_cli.lint.baseline import DEFAULT_NAME, render_baseline
from opschema_cli.lint.runner import Job, Outcome, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.session import open_session


@click.command(short_help="Accept today's findings, so that only new ones count.")
@click.option("--output-file", type=click.Path(path_type=Path), help="Where to write it [as configured].")
def baseline(output_file: Path | None) -> int:
    """Write all findings of the workspace into the baseline file.

    With `baseline = ".opschema-baseline.json"` in the configuration, `opschema lint` then counts only what is new, and tells
    which entries are fixed.
    """
    session = open_session(Path.cwd())
    with ParseProgress() as progress:
        project = session.project(progress=progress)
        outcome = run(Job(session.registry, resolve_settings(session.config, session.registry)), project)
    target = output_file or session.root / (session.config.baseline or DEFAULT_NAME)
    save_baseline(target, outcome, project)
    if not session.config.baseline:
        click.echo(f'Set `baseline = "{target.name}"` in the configuration, so that `opschema lint` uses it.', err=True)
    return 0


def save_baseline(target: Path, outcome: Outcome, project: Project) -> None:
    """Write the baseline that accepts everything in ``outcome``, and say so."""
    target.write_text(render_baseline(outcome.diagnostics, project.source), encoding="utf-8")
    count = len(outcome.diagnostics)
    click.echo(f"Wrote {count} finding{'s' * (count != 1)} to {target}.", err=True)
