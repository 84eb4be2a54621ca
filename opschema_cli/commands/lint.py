"""``opschema lint``."""

from __future__ import annotations

import gc
import sys
import time
from contextlib import closing
from pathlib import Path

import click

from opschema_cli.commands.baseline import save_baseline
from opschema_cli.commands.completion import complete_rules
from opschema_cli.commands.lint_options import LintOptions
from opschema_cli.commands.lint_report import exit_code, make_report, print_fixes, print_report, report_unlisted
from opschema_cli.commands.lint_run import baseline_of, inputs_of, job_of, run_lint, settings_of
from opschema_cli.commands.output import write_text
from opschema_cli.commands.plugins import no_plugins_option, open_workspace
from opschema_cli.commands.torch_release import aim_at, torch_option
from opschema_cli.errors import EXIT_CLEAN, EXIT_FINDINGS, OpschemaError
from opschema_cli.lint.diagnostic import Severity
from opschema_cli.lint.fix import Fixed, fix_all
from opschema_cli.lint.runner import Job, Outcome
from opschema_cli.project import Project
from opschema_cli.reporters import FORMATS
from opschema_cli.reporters.escape import visible
from opschema_cli.root import check_output
from opschema_cli.session import Session
from opschema_cli.source.text import DecodeError, decode

_PATH = click.Path(path_type=Path)


@click.command(short_help="Check declarations against each other and against the code.")
@click.argument("paths", nargs=-1, type=_PATH)
@click.option(
    "--select",
    default="",
    metavar="RULES",
    shell_complete=complete_rules,
    help="Run only these codes, prefixes or names (comma-separated), even if the configuration ignores that code or name.",
)
@click.option("--ignore", default="", metavar="RULES", shell_complete=complete_rules, help="Also skip these rules.")
@click.option(
    "--fail-on",
    type=click.Choice(["info", "warning", "error"]),
    help="Exit 1 on findings of this severity or above [error].",
)
@click.option(
    "--fail-on-nothing", is_flag=True, help="Exit 2 if there is nothing to lint, for example in a wrong folder."
)
@click.option("--fix", is_flag=True, help="Apply safe fixes, then report the remaining findings.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: also apply fixes that may change behaviour.")
@click.option("--diff", is_flag=True, help="Print what --fix would change; write nothing.")
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("-o", "--output-file", type=_PATH, help="Write the report to this file.")
@click.option("--baseline", type=_PATH, help="Count only findings that are not in this file [.opschema-baseline.json].")
@click.option("--no-baseline", is_flag=True, help="Also count the findings in the baseline.")
@click.option("--write-baseline", is_flag=True, help="Write all findings to the baseline and exit 0.")
@click.option(
    "--statistics", is_flag=True, help="Print the number of findings and the time of each rule instead of the findings."
)
@click.option("--no-cache", is_flag=True, help="Read and parse all files again.")
@no_plugins_option
@click.option("--jobs", type=click.IntRange(1), help="Number of processes that parse and run rules [number of cores].")
@click.option("--stdin-filename", type=_PATH, help="Lint the text on standard input as if it were this file.")
@torch_option
@click.option("--preview", is_flag=True, help="Also run preview rules, which a later release may still change.")
@click.option("--show-settings", is_flag=True, help="Print the settings of this run and exit.")
@click.option("--show-unresolved", is_flag=True, help="List code that could not be resolved (text, concise and json).")
@click.option(
    "--as-implemented",
    multiple=True,
    metavar="OP",
    help="Check a planned operator as if it were implemented, and report only on it. Repeatable.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing when there is nothing to report.")
def lint(**options: object) -> int:
    """Check the declarations of operators against each other and against the code.

    Checks the entire workspace that contains PATHS (default: the current folder) and reports only findings with a place in
    PATHS. Does not import or run anything in the workspace, except plugins that its configuration names and you have allowed
    (`opschema plugins`).
    """
    chosen = LintOptions(**options)  # type: ignore[arg-type]
    _check_usage(chosen)
    return _lint(chosen)


def _check_usage(options: LintOptions) -> None:
    """Refuse options that contradict each other or have no effect."""
    if options.no_baseline and (options.baseline is not None or options.write_baseline):
        raise click.UsageError("--no-baseline goes with neither --baseline nor --write-baseline")
    if options.as_implemented and options.write_baseline:
        raise click.UsageError("--as-implemented does not go with --write-baseline")
    if options.unsafe_fixes and not (options.fix or options.diff):
        raise click.UsageError("--unsafe-fixes goes with --fix or --diff")
    others = {
        "--show-settings": options.show_settings,
        "--write-baseline": options.write_baseline,
        "--diff": options.diff,
        "--statistics": options.statistics,
    }
    asked = [name for name, given in others.items() if given]
    if len(asked) > 1:
        raise click.UsageError(f"choose one of {' and '.join(asked)}")
    if asked and options.output_format != "text":
        raise click.UsageError(f"{asked[0]} has no --output-format {options.output_format}")
    if options.write_baseline and (options.fix or options.output_file is not None):
        raise click.UsageError("--write-baseline goes with neither --fix nor --output-file; --baseline names its file")


def _lint(options: LintOptions) -> int:
    started = time.perf_counter()
    # Half a million small objects that live until the end: collecting garbage among them doubles their cost.
    gc.disable()
    overlay = {options.stdin_filename: _stdin()} if options.stdin_filename is not None else None
    writes = options.fix and not options.diff and overlay is None
    with closing(
        open_workspace(
            _start(options),
            overlay,
            no_plugins=options.no_plugins,
            cache=not options.no_cache,
            jobs=options.jobs,
            writes=writes,
        )
    ) as session:
        session.as_implemented = frozenset(options.as_implemented)
        if options.torch:
            aim_at(session, options.torch)
        return _lint_in(session, options, started)


def _lint_in(session: Session, options: LintOptions, started: float) -> int:
    if options.output_file is not None:
        check_output(options.output_file, session.root)
    if options.show_settings:
        # Not at the top: a run that lints does without.
        from opschema_cli.commands.settings import render_settings

        write_text(
            render_settings(session, settings_of(session, session.registry, options), baseline_of(session, options)),
            options.output_file,
        )
        return EXIT_CLEAN
    inputs = inputs_of(session, options)
    outcome, project = run_lint(session, inputs, options)
    if outcome.nothing:
        report_unlisted(session, options.paths)
    if options.write_baseline:
        return save_baseline(session, inputs.baseline_path, outcome, project)
    fixed = Fixed()
    if options.fix or options.diff:
        fixed, outcome, project, changed = _fix(
            session, job_of(session, session.registry_for(project), inputs, options), outcome, project, options
        )
        if options.diff:
            failed = exit_code(outcome, None, on_nothing=options.fail_on_nothing)
            return failed or (EXIT_FINDINGS if changed else EXIT_CLEAN)
    report = make_report(session, project, outcome, fixed, time.perf_counter() - started, options)
    if not (options.fix and options.stdin_filename is not None and options.output_file is None):
        print_report(report, outcome, options)
    if outcome.traces:
        # Not at the top: hardly any run fails.
        from opschema_cli.crash_report import report_crash

        report_crash(outcome.traces)
    return exit_code(outcome, Severity(options.fail_on or session.config.fail_on), on_nothing=options.fail_on_nothing)


def _start(options: LintOptions) -> Path:
    """Return the folder where the search for the workspace begins."""
    if options.paths:
        return options.paths[0]
    if options.stdin_filename is None:
        return Path.cwd()
    return next(folder for folder in options.stdin_filename.absolute().parents if folder.exists())


def _stdin() -> str:
    try:
        return decode(sys.stdin.buffer.read())[0]
    except DecodeError as error:
        raise OpschemaError(f"standard input cannot be read: {error.reason}") from None


def _fix(
    session: Session, job: Job, outcome: Outcome, project: Project, options: LintOptions
) -> tuple[Fixed, Outcome, Project, bool]:
    before = project
    overlay = session.workspace.overlay
    fixed, outcome, project = fix_all(
        job, project, outcome, lambda texts: session.project({**overlay, **texts}), unsafe=options.unsafe_fixes
    )
    for path in fixed.unsettled:
        click.echo(f"opschema: the fixes of {visible(path)} do not settle, or break it; it is left as it was", err=True)
    if options.diff:
        print_fixes(before, fixed.texts, outcome.diagnostics, options.output_file)
    elif options.stdin_filename is not None:
        path = session.workspace.relative(options.stdin_filename)
        source = project.source(path)
        write_text(fixed.texts.get(path, source.text if source else ""), None)
    else:
        # Not at the top: it imports what changes files, which a run that only looks does without.
        from opschema_cli.write import write_all

        write_all(session.workspace, fixed.texts)
    return fixed, outcome, project, bool(fixed.texts)
