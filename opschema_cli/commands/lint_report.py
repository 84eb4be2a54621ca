"""Reports of ``opschema lint``: diagnostics, diffs of fixes, statistics, and the exit code."""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from opschema_cli.commands.lint_options import LintOptions
from opschema_cli.commands.output import WHAT_IS_FOUND, write_text
from opschema_cli.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_INTERNAL, EXIT_USAGE
from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.lint.fix import Fixed
from opschema_cli.lint.limits import shown_findings
from opschema_cli.lint.runner import Outcome
from opschema_cli.project import Project
from opschema_cli.reporters import DESCRIBING, Report, RuleInfo, Summary, load_writer
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.phrases import fixable, unchecked
from opschema_cli.session import Session


def print_fixes(before: Project, texts: Mapping[str, str], left: Sequence[Diagnostic], target: Path | None) -> None:
    """Print the changes of fixes, or write them to a file, as a unified diff; if there are none, also print a line on the
    findings that are ``left``.
    """
    if not texts:
        click.echo(f"opschema: {'; '.join(filter(None, ['nothing to fix', fixable(left)]))}", err=True)
        if target is None:
            return
    from opschema_cli.reporters.text import open_console
    from opschema_cli.reporters.unified import print_diff, unified_diff

    lines: list[str] = []
    for path, text in sorted(texts.items()):
        source = before.source(path)
        lines += unified_diff(path, "" if source is None else source.text, text)
    if target is None and sys.stdout.isatty():
        print_diff(open_console(sys.stdout), lines)
    else:
        write_text("".join(f"{line}\n" for line in lines), target)


def make_report(
    session: Session, project: Project, outcome: Outcome, fixed: Fixed, seconds: float, options: LintOptions
) -> Report:
    """Return the report of a lint run; it includes the pages of violated rules only for the format that shows them."""
    timed = outcome.timings if options.statistics else ()
    described = options.output_format in DESCRIBING or options.statistics
    report = report_of(session, project, outcome, seconds, described, timed)
    unresolved = outcome.unresolved if options.show_unresolved else ()
    return replace(report, summary=replace(report.summary, fixed=fixed.count), unresolved=unresolved)


def _mostly(outcome: Outcome) -> str:
    """The most frequent reason why a place is not understood."""
    reasons = Counter(item.reason for item in outcome.unresolved)
    return reasons.most_common(1)[0][0] if reasons else ""


def report_of(
    session: Session, project: Project, outcome: Outcome, seconds: float, described: bool, others: Iterable[str] = ()
) -> Report:
    """Return the outcome as reporters read it, with pages of the violated rules if they are to be ``described``, and of
    ``others``.
    """
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
        seconds=seconds,
        nothing=outcome.nothing,
        unresolved=len(outcome.unresolved),
        partly=outcome.partly,
        mostly=_mostly(outcome),
        not_shown=not_shown,
    )
    codes = {*others, *(item.code for item in diagnostics)} if described else set[str]()
    rules: Mapping[str, RuleInfo] = {
        rule.code: RuleInfo(
            rule.name, rule.summary, rule.doc, rule.severity, page, session.registry.owners.get(rule.code, "")
        )
        for rule, page in (session.registry.described(codes) if codes else ())  # a replayed run imports no pack
    }
    missed = [item for item in outcome.not_checked if not item.ignored]
    return Report(diagnostics, summary, project.source, rules, session.root, outcome.unread, missed)


def print_report(report: Report, outcome: Outcome, options: LintOptions) -> None:
    """Print a report, in the requested format, to the requested file."""
    if options.statistics:
        write_text(render_statistics(report, outcome), options.output_file)
    elif options.output_format != "text":
        write_text(load_writer(options.output_format)(report), options.output_file)
    elif not options.quiet or _says_something(report) or (outcome.nothing and options.fail_on_nothing):
        _print_text(report, outcome, options)


def report_unlisted(session: Session, paths: Iterable[Path]) -> None:
    """Name the given files and folders that exist but are not linted."""
    workspace = session.workspace
    for path in paths:
        name = workspace.relative(path)
        if name not in workspace.file_set and name not in workspace.folders and name not in workspace.overlay:
            empty = "it is empty, " if path.is_dir() else ""
            reason = f"{empty}git ignores it, or `exclude` of the configuration lists it"
            click.echo(f"opschema: {visible(str(path))} is not linted: {reason}", err=True)


def _says_something(report: Report) -> bool:
    return bool(report.diagnostics or report.not_checked or report.unresolved)


def load_reporter(options: LintOptions) -> None:
    """Import the reporter."""
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
    """Return the exit code: 3 if a rule failed; 2 if a file could not be read, if unchecked parts reach the failing level (None:
    they do not count), or, with ``on_nothing``, if nothing was linted; 1 if findings reach that level; otherwise 0.
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
