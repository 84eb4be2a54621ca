"""``opschema lint``.

It is one module because most of it declares the command's options and passes them on.
"""

from __future__ import annotations

import gc
import io
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import click
import msgspec

from opschema_cli.commands.baseline import save_baseline
from opschema_cli.commands.output import WHAT_IS_FOUND, ProgressBar, write_text
from opschema_cli.commands.plugins import no_plugins_option, open_workspace
from opschema_cli.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_INTERNAL, EXIT_USAGE, OpschemaError
from opschema_cli.file_kinds import is_python
from opschema_cli.lint.baseline import DEFAULT_NAME, BaselineFile, read_baseline
from opschema_cli.lint.diagnostic import Severity
from opschema_cli.lint.fix import Fixed, fix_all
from opschema_cli.lint.limits import shown_findings
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.replay import StaleRun, recall, remember, run_key
from opschema_cli.lint.runner import Job, Outcome, PackFindings, report_outcome, run, run_packs
from opschema_cli.lint.settings import Settings, resolve_settings
from opschema_cli.project import Project
from opschema_cli.regular_files import read_regular
from opschema_cli.reporters import FORMATS, Report, RuleInfo, Summary, load_writer
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.phrases import unchecked
from opschema_cli.root import check_output
from opschema_cli.session import Session, path_filter
from opschema_cli.source.text import DecodeError, decode

PARSED_IN_FORK = 4
"""Most changed Python files that the forked process parses; more are parsed by workers."""


class LintOptions(msgspec.Struct, frozen=True):
    """The options of one ``opschema lint``."""

    paths: tuple[Path, ...]
    select: str
    ignore: str
    fail_on: str | None
    fail_on_nothing: bool
    fix: bool
    unsafe_fixes: bool
    diff: bool
    output_format: str
    output_file: Path | None
    baseline: Path | None
    no_baseline: bool
    write_baseline: bool
    statistics: bool
    no_cache: bool
    no_plugins: bool
    jobs: int | None
    stdin_filename: Path | None
    show_settings: bool
    show_unresolved: bool
    as_implemented: tuple[str, ...]
    quiet: bool


_PATH = click.Path(path_type=Path)


@click.command(short_help="Check declarations against each other and against the code.")
@click.argument("paths", nargs=-1, type=_PATH)
@click.option(
    "--select",
    default="",
    metavar="RULES",
    help="Run only these codes, prefixes or names (comma-separated), even if the configuration ignores that code or name.",
)
@click.option("--ignore", default="", metavar="RULES", help="Skip these rules too.")
@click.option(
    "--fail-on",
    type=click.Choice(["info", "warning", "error"]),
    help="Exit 1 on findings of this severity or above [error].",
)
@click.option(
    "--fail-on-nothing", is_flag=True, help="Exit 2 if there is nothing to lint, for example in a wrong folder."
)
@click.option("--fix", is_flag=True, help="Apply safe fixes, then report what is left.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: also apply fixes that may change behaviour.")
@click.option("--diff", is_flag=True, help="Print what --fix would change; write nothing.")
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--output-file", type=_PATH, help="Write the report to this file.")
@click.option("--baseline", type=_PATH, help="Count only findings that are not in this file [.opschema-baseline.json].")
@click.option("--no-baseline", is_flag=True, help="Also count the findings in the baseline.")
@click.option("--write-baseline", is_flag=True, help="Write all findings to the baseline and exit 0.")
@click.option(
    "--statistics", is_flag=True, help="Print the number of findings and the time of each rule instead of the findings."
)
@click.option("--no-cache", is_flag=True, help="Read and parse all files again.")
@no_plugins_option
@click.option("--jobs", type=click.IntRange(1), help="Number of processes that parse [number of cores].")
@click.option("--stdin-filename", type=_PATH, help="Lint the text on standard input as if it were this file.")
@click.option("--show-settings", is_flag=True, help="Print the settings of this run and exit.")
@click.option("--show-unresolved", is_flag=True, help="List code that could not be resolved (text, concise and json).")
@click.option(
    "--as-implemented",
    multiple=True,
    metavar="OP",
    help="Judge a planned operator as if it were implemented, and report on it alone. Repeatable.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing when there is nothing to report.")
def lint(**options: object) -> int:
    """Check the declarations of operators against each other and against the code.

    Checks the entire workspace that contains PATHS (default: the current folder) and reports only findings with a place in
    PATHS. Does not import or run anything in the workspace, except plugins that its configuration names and you have allowed
    (`opschema plugins`).
    """
    chosen = LintOptions(**options)  # type: ignore[arg-type]
    if chosen.no_baseline and (chosen.baseline is not None or chosen.write_baseline):
        raise click.UsageError("--no-baseline goes with neither --baseline nor --write-baseline")
    if chosen.as_implemented and chosen.write_baseline:
        raise click.UsageError("--as-implemented does not go with --write-baseline")
    if chosen.unsafe_fixes and not (chosen.fix or chosen.diff):
        raise click.UsageError("--unsafe-fixes goes with --fix or --diff")
    return _lint(chosen)


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
        return _lint_in(session, options, started)


def _lint_in(session: Session, options: LintOptions, started: float) -> int:
    if options.output_file is not None:
        check_output(options.output_file, session.root)
    if options.show_settings:
        # Not at the top: a run that lints does without.
        from opschema_cli.commands.settings import render_settings

        write_text(
            render_settings(session, _settings(session, session.registry, options), _baseline(session, options)), None
        )
        return EXIT_CLEAN
    inputs = _inputs(session, options)
    outcome, project = _run(session, inputs, options)
    if options.write_baseline:
        return save_baseline(session, inputs.baseline_path, outcome, project)
    fixed = Fixed()
    if options.fix or options.diff:
        fixed, outcome, project, changed = _fix(
            session, _job(session, session.registry_for(project), inputs, options), outcome, project, options
        )
        if options.diff:
            failed = exit_code(outcome, None, on_nothing=options.fail_on_nothing)
            return failed or (EXIT_FINDINGS if changed else EXIT_CLEAN)
    report = make_report(session, project, outcome, fixed, time.perf_counter() - started, options)
    if not (options.fix and options.stdin_filename is not None and options.output_file is None):
        _print(report, outcome, options)
    return exit_code(outcome, Severity(options.fail_on or session.config.fail_on), on_nothing=options.fail_on_nothing)


def _start(options: LintOptions) -> Path:
    """The folder where the search for the workspace begins."""
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


def _split(words: str) -> list[str]:
    return [word.strip() for word in words.split(",") if word.strip()]


def _settings(session: Session, registry: Registry, options: LintOptions) -> Settings:
    return resolve_settings(
        session.config,
        registry,
        select=_split(options.select),
        ignore=_split(options.ignore),
        fail_on=options.fail_on,
    )


class Inputs(msgspec.Struct, frozen=True):
    """Inputs of a run besides the workspace: the given paths, the baseline, the stamp of opschema's code."""

    paths: frozenset[str] | None
    baseline_path: Path
    baseline: BaselineFile | None
    baseline_name: str
    baseline_text: str
    stamp: str


def _baseline(session: Session, options: LintOptions) -> Path | None:
    """The baseline of this run; None where it has none."""
    return None if options.no_baseline else options.baseline or session.baseline_path()


def _inputs(session: Session, options: LintOptions) -> Inputs:
    session.workspace.list_ahead()
    # Statistics are timings of rules that run, so nothing comes from the cache.
    stamp = "" if options.no_cache or options.statistics else session.code_stamp
    path = _baseline(session, options)
    asked = options.paths or ([options.stdin_filename] if options.stdin_filename is not None else [])
    # The baseline is of the whole workspace, whatever is reported.
    paths = None if options.write_baseline else path_filter(session, asked)
    if path is None or options.write_baseline:
        target = session.workspace.locate(DEFAULT_NAME) if options.write_baseline else session.root / DEFAULT_NAME
        return Inputs(paths, path or target, None, "", "", stamp)
    baseline = read_baseline(path)
    try:
        shown = session.workspace.relative(path)
    except OpschemaError:
        shown = str(path)
    return Inputs(paths, path, baseline, shown, read_regular(path).decode(), stamp)


def _job(session: Session, registry: Registry, inputs: Inputs, options: LintOptions) -> Job:
    held = (inputs.baseline, inputs.baseline_name, inputs.baseline_text)
    return Job(registry, _settings(session, registry, options), *held, inputs.paths, inputs.stamp)


def _run(session: Session, inputs: Inputs, options: LintOptions) -> tuple[Outcome, Project]:
    """The outcome of an unchanged workspace from the cache, else of a run; only a run imports the packs."""
    workspace = session.workspace
    replay = bool(inputs.stamp) and not workspace.overlay
    key = run_key(workspace, _fingerprint(session, inputs, options), inputs.stamp) if replay else ""
    with ProgressBar("reading", "files", enabled=options.output_format == "text") as progress:
        project = session.project(progress=progress, stamp=inputs.stamp)
        known = recall(session.cache, key, workspace) if replay else None
        if isinstance(known, Outcome):
            return known, project
        outcome = _run_anew(session, project, inputs, options, known)
    if replay:
        remember(session.cache, key, workspace, outcome)
    return outcome, project


def _run_anew(
    session: Session, project: Project, inputs: Inputs, options: LintOptions, known: StaleRun | None
) -> Outcome:
    """Run all packs; if little has changed since the last run, some of them in a forked process."""
    if known is not None and session.spares_process(known.changed) and not (options.fix or options.diff):
        # The packs come in the order of their names.
        others = session.registry.narrowed(known.packs[1:])
        modules = [path for path in known.changed if is_python(path)]
        if others.used or 0 < len(modules) <= PARSED_IN_FORK:
            return _run_divided(session, project, inputs, options, others, modules)
    session.warm_up(known.changed if known is not None else None)
    registry = session.registry_for(project, prefetch=True)
    return run(_job(session, registry, inputs, options), project)


def _run_divided(
    session: Session,
    project: Project,
    inputs: Inputs,
    options: LintOptions,
    others: Registry,
    changed: Sequence[str],
) -> Outcome:
    """Run the packs of ``others`` in a forked process and the rest here. If few Python files have ``changed``, the child
    parses them for both: it starts before this process needs them, which then finds them in the cache.
    """
    # Not at the top: an unchanged workspace does not need it.
    from opschema_cli.lint.forked_run import ForkedRun

    few = len(changed) <= PARSED_IN_FORK

    def run_others(report_parsed: Callable[[], None]) -> tuple[PackFindings, Project]:
        with closing(session.forked()) as child:
            forked = child.project(stamp=inputs.stamp)
            for path in changed if few else ():
                forked.expect_file(path)
            forked.when_settled(report_parsed)
            if not others.used:
                forked.settle()
                return PackFindings(), forked
            child.prefetch(others, forked)
            job = _job(child, others, inputs, options)
            forked.settle()
            return run_packs(job, forked, share=True), forked

    run_of_others = ForkedRun(run_others)
    session.helpers.callback(run_of_others.close)
    if not few:
        session.warm_up(changed)
    job = _job(session, session.registry_for(project, prefetch=not few, but=others), inputs, options)
    run_of_others.wait_parsed()

    def join() -> PackFindings:
        # While the child is still busy.
        project.save_readings()
        _load_reporter(options)
        rest = run_of_others.join(project)
        return rest if rest is not None else run_packs(_job(session, others, inputs, options), project)

    return report_outcome(job, project, run_packs(job, project, join))


def _fingerprint(session: Session, inputs: Inputs, options: LintOptions) -> bytes:
    chosen = (
        options.select,
        options.ignore,
        sorted(inputs.paths) if inputs.paths is not None else None,
        sorted(options.as_implemented),
    )
    return msgspec.json.encode((session.config, session.partial, chosen, inputs.baseline_text, inputs.baseline_name))


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
        _print_diff(before, fixed.texts)
    elif options.stdin_filename is not None:
        path = session.workspace.relative(options.stdin_filename)
        source = project.source(path)
        write_text(fixed.texts.get(path, source.text if source else ""), None)
    else:
        # Not at the top: it imports what changes files, which a run that only looks does without.
        from opschema_cli.write import write_all

        write_all(session.workspace, fixed.texts)
    return fixed, outcome, project, bool(fixed.texts)


def _print_diff(before: Project, texts: Mapping[str, str]) -> None:
    from opschema_cli.reporters.text import open_console
    from opschema_cli.reporters.unified import print_diff, unified_diff

    lines: list[str] = []
    for path, text in sorted(texts.items()):
        source = before.source(path)
        lines += unified_diff(path, "" if source is None else source.text, text)
    if sys.stdout.isatty():
        print_diff(open_console(sys.stdout), lines)
    else:
        write_text("".join(f"{line}\n" for line in lines), None)


def make_report(
    session: Session, project: Project, outcome: Outcome, fixed: Fixed, seconds: float, options: LintOptions
) -> Report:
    """The outcome as reporters read it; the pages of the rules that found something only for the format that shows them."""
    levels = [item.severity for item in outcome.diagnostics]
    diagnostics, not_shown = shown_findings(outcome.diagnostics)
    summary = Summary(
        errors=levels.count(Severity.ERROR),
        warnings=levels.count(Severity.WARNING),
        infos=levels.count(Severity.INFO),
        suppressed=outcome.suppressed,
        baselined=outcome.baselined,
        ops=outcome.ops,
        files=outcome.files,
        fixed=fixed.count,
        seconds=seconds,
        nothing=outcome.nothing,
        unresolved=len(outcome.unresolved),
        not_shown=not_shown,
    )
    described = options.output_format == "sarif" or options.statistics
    codes = {item.code for item in diagnostics} if described else set[str]()
    if options.statistics:
        codes.update(outcome.timings)
    rules: Mapping[str, RuleInfo] = {
        rule.code: RuleInfo(rule.name, rule.summary, rule.doc, rule.severity, page)
        for rule, page in (session.registry.described(codes) if codes else ())  # a replayed run imports no pack
    }
    missed = [item for item in outcome.not_checked if not item.ignored]
    unresolved = outcome.unresolved if options.show_unresolved else ()
    return Report(diagnostics, summary, project.source, rules, session.root, outcome.unread, missed, unresolved)


def _print(report: Report, outcome: Outcome, options: LintOptions) -> None:
    if options.statistics:
        write_text(render_statistics(report, outcome), options.output_file)
    elif options.output_format != "text":
        write_text(load_writer(options.output_format)(report), options.output_file)
    elif not options.quiet or _says_something(report) or (outcome.nothing and options.fail_on_nothing):
        _print_text(report, outcome, options)


def _says_something(report: Report) -> bool:
    return bool(report.diagnostics or report.not_checked or report.unresolved)


def _load_reporter(options: LintOptions) -> None:
    """Import what prints the report."""
    if options.output_format != "text":
        load_writer(options.output_format)
    else:
        import opschema_cli.reporters.text  # noqa: F401


def _print_text(report: Report, outcome: Outcome, options: LintOptions) -> None:
    from opschema_cli.reporters.text import write

    if outcome.nothing:
        click.echo(f"opschema: {WHAT_IS_FOUND}", err=True)
    if options.output_file is None:
        write(report, sys.stdout)
        return
    stream = io.StringIO()
    write(report, stream)
    write_text(stream.getvalue(), options.output_file)


def render_statistics(report: Report, outcome: Outcome) -> str:
    """A line for each rule that ran: findings, time, runs; most findings first, then the slowest."""
    counts: dict[str, int] = {}
    for item in outcome.diagnostics:
        counts[item.code] = counts.get(item.code, 0) + 1
    codes = sorted({*counts, *outcome.timings}, key=lambda code: (-counts.get(code, 0), -_seconds(outcome, code)))
    lines = [f"{'findings':>8}  {'time':>9}  {'runs':>6}  rule"]
    for code in codes:
        timing = outcome.timings.get(code)
        runs = str(timing.runs) if timing else "-"
        spent = f"{timing.seconds * 1000:.1f} ms" if timing else "-"
        lines.append(f"{counts.get(code, 0):>8}  {spent:>9}  {runs:>6}  {code} {report.rules[code].name}")
    total = sum(timing.seconds for timing in outcome.timings.values())
    lines.append(
        f"{len(outcome.diagnostics):>8}  {total * 1000:>6.1f} ms  {'':>6}  in {report.summary.seconds:.2f} s altogether"
    )
    lines += [f"{item.code} {unchecked(item)}" for item in report.not_checked]
    return "\n".join(lines) + "\n"


def _seconds(outcome: Outcome, code: str) -> float:
    return outcome.timings[code].seconds if code in outcome.timings else 0.0


def exit_code(outcome: Outcome, fail_on: Severity | None, *, on_nothing: bool = False) -> int:
    """3 when a rule failed, 2 when a file could not be read, when what could not be checked reaches the level that fails (None:
    it does not count) or, with ``on_nothing``, when nothing was linted, 1 when findings reach that level, else 0.
    """
    if outcome.crashed:
        return EXIT_INTERNAL
    if any(item.code == "OPS101" for item in outcome.diagnostics) or (on_nothing and outcome.nothing):
        return EXIT_USAGE
    if fail_on is not None and any(
        item.severity.rank >= fail_on.rank and not item.ignored for item in outcome.not_checked
    ):
        return EXIT_USAGE
    failed = fail_on is not None and any(item.severity.rank >= fail_on.rank for item in outcome.diagnostics)
    return EXIT_FINDINGS if failed else EXIT_CLEAN
