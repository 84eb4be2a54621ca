"""``opschema baseline``."""

from __future__ import annotations

from pathlib import Path

import click

from opschema_cli.commands.output import ParseProgress, write_text
from opschema_cli.errors import EXIT_CLEAN, EXIT_INTERNAL, EXIT_USAGE
from opschema_cli.lint.baseline import DEFAULT_NAME, render_baseline
from opschema_cli.lint.builtin import CRASHED, UNREADABLE
from opschema_cli.lint.runner import Job, Outcome, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.reporters.escape import visible
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
    target = output_file or session.baseline_path() or session.workspace.locate(DEFAULT_NAME)
    if not session.config.baseline:
        click.echo(f'Set `baseline = "{target.name}"` in the configuration, so that `opschema lint` uses it.', err=True)
    return save_baseline(target, outcome, project)


def save_baseline(target: Path, outcome: Outcome, project: Project) -> int:
    """Write the baseline that accepts the findings in ``outcome``, and say so; the exit code.

    What says that something was not checked is told, not accepted.
    """
    failed = [item for item in outcome.diagnostics if item.code in (UNREADABLE.code, CRASHED.code)]
    found = [item for item in outcome.diagnostics if item not in failed]
    write_text(render_baseline(found, project.source), target)
    click.echo(f"Wrote {len(found)} finding{'s' * (len(found) != 1)} to {target}.", err=True)
    for item in failed:
        click.echo(f"Not in it: {visible(item.place.path)} {item.code} {visible(item.message)}", err=True)
    return EXIT_INTERNAL if outcome.crashed else EXIT_USAGE if failed else EXIT_CLEAN
