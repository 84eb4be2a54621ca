"""A report as one page that needs no other file: findings to search, sort and filter, with both sides of each.

Without scripts everything is shown, in the order of the report. The same report gives the same bytes: no time is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import NotChecked, Severity
from opschema_cli.phrases import count
from opschema_cli.reporters import Report
from opschema_cli.reporters.html import page
from opschema_cli.reporters.html.elements import link, marked_text, options, prose, text
from opschema_cli.reporters.html.findings import article, pack_of
from opschema_cli.reporters.phrases import fixable, headline, missed, not_understood, notice
from opschema_cli.reporters.places import fingerprints

_FILTERS = """\
<form id="filters" role="search" aria-label="Findings" hidden>
<label>Text <input type="search" name="text"></label>
<label>Severity <select name="severity"><option value="">all</option>{severities}</select></label>
<label{no_packs}>Pack <select name="pack"><option value="">all</option>{packs}</select></label>
<label>Rule <select name="rule"><option value="">all</option>{rules}</select></label>
<label>Path <input type="search" name="path" list="paths"></label>
<datalist id="paths">{paths}</datalist>
<label>Sort by <select name="sort"><option value="">path</option><option value="severity">severity</option>
<option value="rule">rule</option><option value="pack">pack</option></select></label>
<button type="reset">Clear</button>
<output name="shown" aria-live="polite"></output>
</form>
"""

THEMES = """\
<label class="theme" hidden>Theme <select id="theme"><option value="">system</option><option>light</option>
<option>dark</option></select></label>
"""
"""The switch of the theme, which the script shows."""


def write(report: Report) -> str:
    """The page."""
    return page.render(_title(report), "".join(_body(report)), "report")


def _title(report: Report) -> str:
    return f"opschema: {report.root.name}" if report.root.name else "opschema"


def _body(report: Report) -> Iterator[str]:
    yield f'<header class="top"><h1>{text(_title(report))}</h1>{THEMES}</header>\n<main>\n'
    yield f'<p class="headline {_worst(report)}">{text(headline(report))}</p>\n'
    yield "".join(f"<p>{text(line)}</p>\n" for line in _facts(report))
    if report.diagnostics:
        yield _rules(report)
        yield _filters(report)
        yield '<section id="findings" aria-label="Findings">\n<h2>Findings</h2>\n'
        anchors = (f"f-{digest[:16]}" for digest in fingerprints(report))
        yield from (article(report, item, anchor) for item, anchor in zip(report.diagnostics, anchors, strict=True))
        yield "</section>\n"
    if report.not_checked:
        yield from ("<h2>Not checked</h2>\n", *map(_unchecked, report.not_checked))
    if report.unresolved:
        lines = "".join(f"<li>{marked_text(line)}</li>\n" for line in not_understood(report))
        yield f"<h2>Not understood</h2>\n<ul>\n{lines}</ul>\n"
    yield "</main>"


def _worst(report: Report) -> str:
    """The highest severity of all that is reported; empty if there is nothing."""
    levels = [item.severity for item in report.diagnostics] + [item.severity for item in report.not_checked]
    return max(levels, key=lambda level: level.rank).value if levels else "clean"


def _facts(report: Report) -> Iterator[str]:
    """Sentences on the files read, the findings fixed and hidden, and the places not understood."""
    summary = report.summary
    yield f"{count(summary.ops, 'op')}, {count(summary.files, 'file')} read."
    numbers = (
        (summary.fixed, "fixed"),
        (summary.suppressed, "suppressed"),
        (summary.baselined, "baselined"),
        (summary.not_shown, "not shown"),
    )
    hidden = ", ".join(f"{number} {word}" for number, word in numbers if number)
    found = "; ".join(filter(None, (fixable(report.diagnostics), hidden)))
    if found:
        yield f"{found[0].upper()}{found[1:]}."
    if summary.unresolved and not report.unresolved:
        yield f"{count(summary.unresolved, 'place')} not understood; list them with --show-unresolved."
    if notice(report):
        yield notice(report)


def _rules(report: Report) -> str:
    """The rules that found something, the most frequent first."""
    counts = Counter((item.code, item.name) for item in report.diagnostics)
    worst: dict[str, Severity] = {}
    for item in report.diagnostics:
        worst[item.code] = max(worst.get(item.code, item.severity), item.severity, key=lambda level: level.rank)
    rows = "".join(
        f"<tr><td>{_rule_link(report, code, name)}</td><td>{text(pack_of(report, code))}</td>"
        f'<td><span class="severity {worst[code].value}">{worst[code].value}</span></td><td class="number">{number}</td></tr>\n'
        for (code, name), number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("rule", "pack", "severity", "findings"))
    title = f"<summary>{count(len(counts), 'rule')} with findings</summary>"
    return f'<details>{title}<table class="rules"><tr>{head}</tr>\n{rows}</table></details>\n'


def _rule_link(report: Report, code: str, name: str) -> str:
    rule = report.rules.get(code)
    summary = f": {prose(rule.summary)}" if rule is not None and rule.summary else ""
    return f"{link(f'<b>{text(code)}</b> {text(name)}', rule.uri if rule is not None else '')}{summary}"


def _filters(report: Report) -> str:
    """The form that the script works with."""
    found = report.diagnostics
    packs = options(pack_of(report, item.code) for item in found)
    return _FILTERS.format(
        no_packs="" if packs else " hidden",
        severities=options(item.severity.value for item in found),
        packs=packs,
        rules=options(f"{item.code} {item.name}" for item in found),
        paths=options(item.place.path for item in found),
    )


def _unchecked(item: NotChecked) -> str:
    return (
        f'<article><header><span class="severity {item.severity.value}">{item.severity.value}</span> '
        f"<b>{text(item.code)}</b> {text(item.name)}</header><h3>{prose(missed(item))}</h3><p>{prose(item.hint)}</p></article>\n"
    )
