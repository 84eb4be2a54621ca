"""``opschema baseline``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click

from opschema_cli.commands.output import WHAT_IS_FOUND, ProgressBar, write_text
from opschema_cli.commands.plugins import no_plugins_option, open_workspace
from opschema_cli.errors import EXIT_CLEAN, EXIT_INTERNAL, EXIT_USAGE, OpschemaError
from opschema_cli.lint.baseline import DEFAULT_NAME, BaselineEntry, apply_baseline, read_baseline, render_baseline
from opschema_cli.lint.builtin import CRASHED, UNREADABLE
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.runner import Job, Outcome, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.phrases import count
from opschema_cli.project import Project
from opschema_cli.reporters.escape import visible
from opschema_cli.root import check_output
from opschema_cli.session import Session


@click.command(short_help="Accept the current findings, so that only new ones count.")
@click.option(
    "-o",
    "--output-file",
    type=click.Path(path_type=Path),
    help="Write the baseline to this file [the configured file, or .opschema-baseline.json].",
)
@no_plugins_option
def baseline(output_file: Path | None, no_plugins: bool) -> int:
    """Write all findings of the workspace into the baseline file.

    `opschema lint` then counts only new findings, and reports which entries are fixed. It reads `.opschema-baseline.json` at
    the root, or the file that the configuration names as `baseline`.
    """
    with closing(open_workspace(Path.cwd(), no_plugins=no_plugins)) as session:
        if output_file is not None:
            check_output(output_file, session.root)
        with ProgressBar("reading", "files") as progress:
            project = session.project(progress=progress)
            registry = session.registry_for(project)
            outcome = run(Job(registry, resolve_settings(session.config, registry)), project)
        target = output_file or session.baseline_path() or session.workspace.locate(DEFAULT_NAME)
        return save_baseline(session, target, outcome, project)


def save_baseline(session: Session, target: Path, outcome: Outcome, project: Project) -> int:
    """Write the baseline that accepts the findings in ``outcome``, and print how to use it. Return the exit code.

    Findings about unchecked files are reported, not accepted. Entries of the earlier file whose rules did not run, or did not
    see all, are kept.

    Raises:
        OpschemaError: there is nothing to lint; an existing baseline is left unchanged.
    """
    if outcome.nothing:
        raise OpschemaError(f"nothing to lint in {session.root}, so no baseline is written; {WHAT_IS_FOUND}")
    failed = [item for item in outcome.diagnostics if item.code in (UNREADABLE.code, CRASHED.code)]
    found = [item for item in outcome.diagnostics if item not in failed]
    kept = [entry for entry in _stale(target, found, project) if entry.code not in outcome.judged]
    write_text(render_baseline(found, project.source, kept), target)
    click.echo(f"Wrote {count(len(found), 'finding')} to {target}{_use(session, target)}", err=True)
    if kept:
        click.echo(f"Kept {count(len(kept), 'entry', 'entries')} that could not be judged in this run", err=True)
    for missed in outcome.not_checked:
        click.echo(f"Not checked: {visible(missed.reason)} ({missed.hint})", err=True)
    for item in failed:
        click.echo(f"Not in it: {visible(item.place.path)} {item.code} {visible(item.message)}", err=True)
    return EXIT_INTERNAL if outcome.crashed else EXIT_USAGE if failed else EXIT_CLEAN


def _stale(target: Path, found: Sequence[Diagnostic], project: Project) -> Sequence[BaselineEntry]:
    """Return the entries of the file to replace, if it is a baseline, that match no finding."""
    try:
        return apply_baseline(found, read_baseline(target), project.source)[2]
    except OpschemaError:
        return ()


def _use(session: Session, target: Path) -> str:
    """Return the configuration or option with which ``opschema lint`` reads a written baseline."""
    usual = session.root / (session.config.baseline or DEFAULT_NAME)
    if os.path.realpath(target) == os.path.realpath(usual):
        return "; `opschema lint` counts only findings that are not in it."
    try:
        name = session.workspace.relative(target)
    except OpschemaError:
        return f"; `opschema lint --baseline {target}` counts only findings that are not in it."
    own = session.config_path is None or session.config_path.name == "opschema.toml"
    where = "opschema.toml" if own else "[tool.opschema] of pyproject.toml"
    import json

    return f". `opschema lint` reads it once {where} says:\nbaseline = {json.dumps(name, ensure_ascii=False)}"
