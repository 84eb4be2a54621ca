"""Findings as articles: the message, both sides side by side, the ops, and the fix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from opschema_cli.lint.diagnostic import Diagnostic, Fix
from opschema_cli.phrases import count, some
from opschema_cli.reporters import Report
from opschema_cli.reporters.diff import Hunk, hunks
from opschema_cli.reporters.frame import frames
from opschema_cli.reporters.html.code import frame_table, hunk_table
from opschema_cli.reporters.html.elements import link, marked_text, prose, text
from opschema_cli.reporters.places import where

_RELATED_SHOWN = 12
_OPS_SHOWN = 50
_DIFF_LINES = 60


def article(report: Report, diagnostic: Diagnostic, anchor: str) -> str:
    """One finding; ``anchor`` is its address in the page."""
    parts = [
        f'<header><span class="severity {diagnostic.severity.value}">{diagnostic.severity.value}</span> ',
        f"{_rule(report, diagnostic)} ",
        f'<a class="place" href="#{anchor}">{text(where(report, diagnostic.place) or "no file")}</a></header>',
        f"<h3>{prose(diagnostic.message)}</h3>",
        f'<div class="sides">{"".join(map(frame_table, frames(report, diagnostic, _RELATED_SHOWN)))}</div>',
        "".join(f'<p class="unseen">{prose(line)}</p>' for line in _without_frame(report, diagnostic)),
        _ops(diagnostic.ops) if diagnostic.ops else "",
        _fix(report, diagnostic.fix) if diagnostic.fix else "",
    ]
    return f'<article id="{anchor}" {_data(report, diagnostic)}>{"".join(parts)}</article>\n'


def _data(report: Report, diagnostic: Diagnostic) -> str:
    """The values that the page is filtered and sorted by."""
    values = {
        "severity": diagnostic.severity.value,
        "pack": pack_of(report, diagnostic.code),
        "rule": f"{diagnostic.code} {diagnostic.name}",
        "path": diagnostic.place.path,
    }
    return " ".join(f'data-{name}="{text(value)}"' for name, value in values.items())


def pack_of(report: Report, code: str) -> str:
    """The pack of a rule; empty if it is not known."""
    rule = report.rules.get(code)
    return rule.pack if rule is not None else ""


def _rule(report: Report, diagnostic: Diagnostic) -> str:
    rule = report.rules.get(diagnostic.code)
    label = f"<b>{text(diagnostic.code)}</b> {text(diagnostic.name)}"
    return f'<span class="rule">{link(label, rule.uri if rule is not None else "")}</span>'


def _without_frame(report: Report, diagnostic: Diagnostic) -> Iterator[str]:
    """The places without a frame: their file cannot be read, or there are too many."""
    for other in diagnostic.related[:_RELATED_SHOWN]:
        if report.sources(other.place.path) is None:
            yield f"{other.place.path}: {other.message}"
    more = len(diagnostic.related) - _RELATED_SHOWN
    if more > 0:
        yield f"and {count(more, 'more place')}"


def _ops(ops: Sequence[str]) -> str:
    head = "op" if len(ops) == 1 else "ops"
    return f'<p class="ops"><b>{head}:</b> {marked_text(some(ops, _OPS_SHOWN))}</p>'


def _fix(report: Report, fix: Fix) -> str:
    how = "safe fix: --fix" if fix.safety == "safe" else f"unsafe fix: --unsafe-fixes; {fix.why_unsafe}".rstrip("; ")
    return f'<div class="fix"><p><b>Fix:</b> {prose(f"{fix.title} ({how})")}</p>{_diff(hunks(report, fix))}</div>'


def _diff(changes: Sequence[Hunk]) -> str:
    """The first hunks, with the number of changed lines that are left out."""
    lines = [*accumulate(len(hunk.old) + len(hunk.new) for hunk in changes)]
    shown = sum(1 for number in lines if number <= _DIFF_LINES)
    tables = "".join(map(hunk_table, changes[:shown]))
    if shown == len(changes):
        return tables
    more = lines[-1] - (lines[shown - 1] if shown else 0)
    return f"{tables}<p>{count(more, 'changed line')} {'more ' if shown else ''}with <code>--diff</code></p>"
